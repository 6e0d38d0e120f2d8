#include "planner/search/search_check.h"

#include "plan/plan.h"

Status search_constraints_check(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    TRY(scenario_refuse_unsupported(scenario));
    if (spec->num_layer_overrides > 0)
        return status_at(STATUS_INVALID, scenario->file, "parallel.layers",
                         "a list of what some layers do differently is of one plan; expected none, "
                         "or plan --layerwise, which chooses it");
    PlanOrder order;
    TRY(plan_order_find(scenario, &order));
    if (spec->schedule != SCHEDULE_FILE) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "parallel.schedule",
                     "file:%.200s is an order for one number of ranks and micro-batches, which a "
                     "search has to vary; expected a schedule by name, or estimate or simulate",
                     spec->schedule_file);
}

Status search_objective_check(const Scenario *scenario, PlanObjective objective) {
    const Pool *pool = cluster_only_pool(&scenario->cluster);
    if (objective == OBJECTIVE_COST && pool->price_usd_per_gpu_hour <= 0)
        return status_at(STATUS_INVALID, scenario->file, "cluster.price_usd_per_gpu_hour",
                         "unknown for %s; needed for objective cost", pool->gpu.name);
    if (objective == OBJECTIVE_ENERGY && pool->power_watts_per_gpu <= 0)
        return status_at(STATUS_INVALID, scenario->file, "cluster.power_watts_per_gpu",
                         "unknown for %s; needed for objective energy", pool->gpu.name);
    return status_ok();
}
