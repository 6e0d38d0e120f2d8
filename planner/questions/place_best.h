// planner/questions/place_best.h - the placement of the best plan of a search.
#pragma once

#include "planner/planner.h"

// Searches for the best placement of the first entry, which gets it, and compares the others, whose
// nodes stay in their own order, with that. What the search left out was judged in the nodes' own
// order as well. Does nothing where nothing fits, or where there is an obstacle, and where it
// is not asked for.
//   options  those of the search; in use are placement, num_threads and end_soon
Status planner_place_best(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                          PlannerResult *result);
