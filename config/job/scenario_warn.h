// config/job/scenario_warn.h - what is legal in a scenario, but most likely a slip.
#pragma once

#include "config/job/scenario.h"

// Sentences "FILE: PATH: ..." for whoever reads the answer: a batch that looks like tokens,
// sequences beyond the model's positions, keys of a model's file that nearly are keys that matter,
// a NIC that is faster than any. They change no answer and no exit code.
//   out      [returned value]
int scenario_warnings(const Scenario *scenario, Arena *arena, const char *const **out);
