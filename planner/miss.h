// planner/miss.h - what would have to change for anything to fit.
#pragma once

#include "base/arena.h"
#include "planner/planner.h"

// The smallest change after which a configuration fits, as the end of "it would fit ...": one
// constraint given up, all of them, or more GPUs: twice, four times, ... and from there down to the
// fewest whole nodes that bisection finds. NULL where none of them helps.
// Of options only threads, budget (for the bisection) and progress matter.
const char *miss_would_fit_if(const Scenario *scenario, const PlannerOptions *options,
                              Arena *arena);
