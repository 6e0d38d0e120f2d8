// cli/simulate/trace_ranks.h - which GPUs a trace shows: --trace-ranks, as in "0-7,64".
#pragma once

#include "base/status.h"

#include <stdbool.h>

// Reads a list of ranks and ranges, or "all", into shown[num_gpus]. Refuses (STATUS_INVALID) what
// is no such list, and ranks that the plan does not have.
Status trace_ranks_read(const char *text, int num_gpus, bool *shown);
