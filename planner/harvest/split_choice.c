#include "planner/harvest/split_choice.h"

#include "plan/layer_plans.h"
#include "planner/harvest/split_search.h"
#include "planner/space/space.h"

static bool split_is_open(const Scenario *scenario, const Plan *plan) {
    return plan->pp > 1 && !scenario->parallel.stages && scenario->cluster.num_pools == 1 &&
           !plan->vocab_barriers && !plan_is_dual(plan) && !plan->schedule_file &&
           !plan_mixes_recompute(plan) && space_splits_any(&scenario->model, plan->vpp);
}

void split_choose(GroupPricing *pricing, const RulesInForce *rules, Plan *plan, Arena *arena) {
    const Scenario *scenario = pricing->scenario;
    Plan found;
    if (!split_is_open(scenario, plan) || !split_fits(pricing, plan, 0, arena, &found)) return;
    if (plan_check(scenario, &found).code == STATUS_OK && plan_obeys(scenario, rules, &found))
        *plan = found;
}
