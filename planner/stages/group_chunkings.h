// planner/stages/group_chunkings.h - a few splits of the layers where ranks of different machines
// hold several chunks each.
//
// Source: giving layer after layer to the rank that it loads least minimises the largest load of
//         equal layers, as in planner/stages/partition.c, with ranks of different speed and room.
#pragma once

#include "planner/stages/group_costs.h"

enum { MAX_GROUP_CHUNKINGS = 3 };

// No step of any split of the layers is shorter; 0 where layers are of several kinds.
double group_chunkings_bound_s(GroupPricing *pricing, const Plan *plan, const GroupCosts *costs,
                               Arena *arena);

// The plan's own chunks; what the busiest rank works least with; the same where that does not fit
// and less of a rank's layers do. Those that are equal once.
//   out      [returned] <= MAX_GROUP_CHUNKINGS, in the arena
int group_chunkings(GroupPricing *pricing, const Plan *plan, const GroupCosts *costs, Arena *arena,
                    const PlanChunk **out);
