// sim/client_answer.h - reads what meshwright-sim answers.
#pragma once

#include "sim/sim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Whether it is the document of this version's refusal of a scenario.
bool sim_answer_refuses(const char *text, size_t size, Arena *arena);

// text: its document; times: its third file, or NULL, and what it was asked to write there.
Status sim_answer_read(const char *text, size_t size, SimKeep keep, FILE *times, Arena *arena,
                       SimResult *out);
