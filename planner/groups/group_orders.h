// planner/groups/group_orders.h - groups of different machines along the pipeline, in every order
// that makes a difference.
#pragma once

#include "config/job/scenario.h"
#include "plan/plan.h"
#include "planner/planner.h"

enum { MAX_GROUP_ORDERS = 720 };

// All orders of a cluster's groups: of groups that are alike and as large only one stands for all
// their exchanges. Where the scenario states a placement, that one.
//   out      [returned][num_pools] in the arena, that of the cluster first
//   returns  their number; 0 where there are more than MAX_GROUP_ORDERS
int group_orders(const Scenario *scenario, Arena *arena, const int *const **out);

// The scenario in which a search asks whether plans fit, with its groups in this order:
// planner_limited of unlike groups.
Scenario group_limited(const Scenario *scenario, const PlannerOptions *options, const int *order,
                       Arena *arena);

// The scenario with its groups in a plan's order (Plan.node_order), of which it may be another; of
// a cluster without such groups the scenario itself.
Scenario group_plan_scenario(const Scenario *scenario, const Plan *plan, Arena *arena);

// The scenario in which a search asked whether this plan fits, with the groups in its order.
Scenario plan_limited(const Scenario *scenario, const PlannerOptions *options, const Plan *plan,
                      Arena *arena);
