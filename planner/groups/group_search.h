// planner/groups/group_search.h - the best plans on groups of different machines: pipelines across
// the groups, all other parallelism inside them, stages sized by the speed of their machines.
//
// Method: every order of the groups, with every configuration of the space (planner/space/space.h)
// whose
//         stages fill whole groups. For each the best split of its layers:
//           one chunk a rank   of all splits: those whose bound (planner/stages/stage_split.h) can
//           beat
//                              the best so far are priced, lowest bound first, up to
//                              GROUP_MAX_SPLITS; where more are left, their least bound is kept
//                              and the answer says how much better than the best they could be
//           several chunks     the default split, and that of the least busiest rank
//                              (planner/stages/group_chunkings.h)
//         Configurations come in the order of their bounds, until the next is above the K-th best
//         price, as in planner/planner.h. One configuration counts once, whatever its splits.
// Limits: objectives that rank like the step time; stages have the same number of GPUs in each
//         group, and all of them are used (planner/groups/group_answer.h looks at fewer groups).
#pragma once

#include "planner/planner.h"
#include "planner/stages/group_costs.h"

// As planner_search, of a scenario with groups of different machines; planner_search calls it.
Status group_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    PlannerResult *out);

// The best plan whose stages are the default ones: what nobody sized.
//   returns  as group_search; at most one entry
Status group_search_even(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                         PlannerResult *out);
