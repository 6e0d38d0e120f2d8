// planner/why/miss.h - what would have to change for anything to fit.
#pragma once

#include "base/arena.h"
#include "planner/planner.h"

// Looks for a configuration, with any split of its layers, that misses by fewer bytes than the one
// that a search kept: halves what is missing for as long as something fits with so much more, until
// it is known to MISS_CLOSE_FRAC of what there is. A search passes over what surely misses without
// asking by how much.
// Of options only threads, the limit, the probability, budget and end_soon matter.
static const double MISS_CLOSE_FRAC = 0.002;
void miss_narrow(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                 ClosestMiss *miss);

// The smallest change after which a configuration fits, as the end of "it would fit ...": one
// constraint given up, all of them, or more GPUs: twice, four times, ... and from there down to the
// fewest whole nodes that bisection finds. NULL where none of them helps.
// Of options only threads, budget (for the bisection) and progress matter.
const char *miss_would_fit_if(const Scenario *scenario, const PlannerOptions *options,
                              Arena *arena);
