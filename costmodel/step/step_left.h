// costmodel/step/step_left.h - when a step that is under way can end at the earliest. Included by
// step_*.c only.
//
// Model:  what a rank has not run yet comes after what it has; its last gradient then goes back
//         through the ranks before it. So the earliest end is the largest, over all ranks, of
//             when it is free + its work that is left + the way of that gradient to the first rank.
// Limits: whole backwards, chunks in a line (SteadyOrder is of such orders only).
#pragma once

#include "costmodel/step/step_run.h"

// In ticks, without the optimizer and what follows it.
//   left_out  micro-batches that every rank has to run besides those of the run
double step_least_ticks(const StepRun *run, double left_out);
