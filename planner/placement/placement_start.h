// planner/placement/placement_start.h - placements to begin with, built block by block.
//
// Method: beam search: of all ways to put nodes on the first k blocks the cheapest are kept, by the
//         sum of what their edges take from the step. Where links are fast or slow at random, a
//         ring of a few fast ones after the other, blocks are taken in an order in which each has
//         as many edges as can be to those before it, and the draw decides between equal ways.
//         Where nodes stand in racks they are taken in their order, and the node goes first that
//         has the fewest fast links left.
// Source: Lowerre, "The HARPY speech recognition system", 1976 (beam search); Warnsdorff, "Des
//         Roesselsprunges einfachste und allgemeinste Loesung", 1823 (the fewest ways on first).
#pragma once

#include "planner/placement/placement_price.h"

typedef enum { BUILD_CLOSING, BUILD_IN_ORDER, NUM_BUILDS } PlacementBuild;

// The best placement that was found that way.
//   start  [num_blocks] filled
void placement_start(const PlacementLinks *links, const PlacementModel *model, PlacementBuild build,
                     uint64_t seed, int *start);
