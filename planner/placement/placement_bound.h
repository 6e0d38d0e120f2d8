// planner/placement/placement_bound.h - a step that no placement is faster than.
#pragma once

#include "planner/placement/placement_price.h"

// Seconds of the step with every traffic at the least that any placement gives it
// (PlacedTraffic.least_slowdown) and, for each of the nodes with the worst links, the traffics at
// the block where it does least harm at what this node's best links leave them. Valid because the
// step grows with every slowdown.
//   least  [num_traffics] filled with the former
double placement_bound_s(const PlacementPricer *pricer, double *least);
