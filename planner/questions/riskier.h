// planner/questions/riskier.h - plans that are faster than the best, but may not fit.
//
// A plan counts as fitting where it does with a given probability (planner/planner.h). Those that
// do with less, but with a half or more, and are better than the best by RISKIER_MIN_GAIN_FRAC or
// more, are found by another search with a half, which the best bounds: what it finds fits with
// less than was asked for, or the first search would have found it.
#pragma once

#include "planner/planner.h"

enum { RISKIER_MAX_ENTRIES = 3 };
#define RISKIER_MIN_GAIN_FRAC 0.01 // nobody takes a risk for less
#define RISKIER_PROBABILITY_FRAC 0.5

// Sets riskier of a search's result, best first; where nothing fits, the best of those that may.
// Does nothing where all of them were asked for, or the least memory. Their loses_frac is below 0
// by what they gain on the best; 0 where there is none.
Status planner_find_riskier(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                            PlannerResult *result);
