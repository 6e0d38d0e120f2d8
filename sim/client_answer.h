// sim/client_answer.h - reads what meshwright-sim answers.
#pragma once

#include "sim/sim.h"

#include <stddef.h>
#include <stdio.h>

// text: its document; times: its third file, or NULL.
Status sim_answer_read(const char *text, size_t size, FILE *times, Arena *arena, SimResult *out);
