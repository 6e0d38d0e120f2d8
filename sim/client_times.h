// sim/client_times.h - the times of instructions, which come in a file beside the answer.
#pragma once

#include "base/json.h"
#include "sim/sim.h"

// Notes what the file holds, and reads the times of the last lane. root: the answer.
Status sim_times_open(const JsonNode *root, FILE *file, SimKeep keep, Arena *arena, SimResult *out);
