// config/job/scenario_inputs.h - the files that a scenario is made of, so that none is written
// over.
#pragma once

#include "config/job/scenario.h"

typedef struct {
    const char *what; // it is: "scenario", "model", "GPU profile", ...
    const char *path; // that opens it from the current folder
} ScenarioInput;

// The document itself and the files that its keys name; presets go by names and are none.
//   returns how many, in *out
int scenario_inputs(const Scenario *scenario, Arena *arena, const ScenarioInput **out);
