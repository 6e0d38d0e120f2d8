// cli/calibrate/calibrate.h - what `calibrate` does beside fitting kernels.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

// --steps: fits whole-step parameters and spreads to a file of published steps; output (or NULL)
// receives the spreads as hw-profiles/steps.json has them.
//   by  also the errors of groups: bits 1 << StepBy (calibrate/step_groups.h)
Status calibrate_steps(const char *steps, const char *output, unsigned by, bool json, Arena *arena);

// --run: updates the scenario's calibration by a training log; output (or NULL) receives the new
// document, which a scenario's key `calibration` names.
Status calibrate_run(const char *log, const char *scenario, const char *output, bool json,
                     Arena *arena);
