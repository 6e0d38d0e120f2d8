// planner/miss.h - what would have to change for anything to fit.
#pragma once

#include "base/arena.h"
#include "planner/planner.h"

// The smallest change after which a configuration fits, as the end of "it would fit ...": one
// constraint given up, two, all of them, or more GPUs (2x, 4x, ...). NULL where none of them helps.
// Of options only the progress matters.
const char *miss_would_fit_if(const Scenario *scenario, const PlannerOptions *options,
                              Arena *arena);
