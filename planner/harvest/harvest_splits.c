// Plans that stand for all splits of their layers: kept unless no split can be fast enough, or
// fits, as far as that is known without looking for one.
#include "planner/harvest/harvest_walker.h"

#include "costmodel/memory/memory_interval.h"
#include "costmodel/memory/memory_static.h"
#include "planner/harvest/split_search.h"
#include "planner/stages/split_bound.h"

#include <math.h>

// Where a plan stands for several numbers of recomputed layers, the one that is fastest.
static Plan fastest_of(const Plan *plan, int most_layers) {
    return most_layers > 0 ? space_first_layers(plan, 1) : *plan;
}

static Plan leanest_of(const Plan *plan, int most_layers) {
    return most_layers > 0 ? space_first_layers(plan, most_layers) : *plan;
}

static double bound_s(HarvestWalker *w, const Plan *plan) {
    return split_bound_s(w->task->space->scenario, plan, group_costs_of(&w->pricing, plan));
}

// Whether every split takes longer than the limit; what first layers compute again is not counted.
static bool is_slow(HarvestWalker *w, const Plan *plan) {
    const double limit_s = step_limit_s(w->task);
    if (limit_s == INFINITY) return false;
    if (sketch_splits_slow(w, plan)) return true;
    const GroupCosts *costs = group_costs_of(&w->pricing, plan);
    return split_bound_exceeds(w->task->space->scenario, plan, costs, limit_s);
}

// What the mean rank computes depends on no split but in what first layers are recomputed: that is
// not counted.
static double busy_s(HarvestWalker *w, const Plan *plan, int most_layers) {
    if (w->task->objective != OBJECTIVE_ENERGY) return 0;
    Plan none = *plan;
    if (most_layers > 0 || plan->recompute_layers != ABSENT) none.recompute = RECOMPUTE_NONE;
    Arena scratch = {0};
    const Workload workload = pieces_workload(&w->pricing.pieces, &none, &scratch);
    const Prices prices = pieces_prices(&w->pricing.pieces, &none, &workload, &scratch);
    const double mean_s = mean_busy_s(&none, &prices);
    arena_free(&scratch);
    return mean_s;
}

// --- Memory

// Whether what all ranks hold of weights, gradients and optimizer throughout the step is more than
// they have together: it is the same however layers are split, and whatever the micro-batch.
static bool states_miss(const HarvestWalker *w, const Plan *plan, const Workload *workload) {
    const Scenario *scenario = w->task->space->scenario;
    const double outside = plan->pp * scenario->execution.stack.residency.context_bytes;
    const double counted = (memory_states_bytes(scenario, plan, workload) + outside) *
                           exp(scenario->fit_deviates * memory_spread(scenario, plan));
    return counted > plan->pp * w->available_bytes;
}

// Whether no split of a plan fits, as far as that is known without looking for one: where layers
// are alike and no rank has room for as many as it has in the default split, none has for more.
//   *fits   the default split does
static bool is_hopeless(HarvestWalker *w, const SpaceFamily *family, const Plan *plan,
                        int most_layers, bool *fits) {
    const Scenario *scenario = w->task->space->scenario;
    const Plan leanest = leanest_of(plan, most_layers);
    const Workload *workload = family_workload(&w->parts, &leanest);
    *fits = false;
    if (states_miss(w, &leanest, workload)) {
        const uint64_t bit = (uint64_t)1
                             << (NUM_SCHEDULES * plan_zero_level(plan) + (int)plan->schedule);
        if (plan->zero_group == family->plans[0].zero_group) w->missed[family->series] |= bit;
        if (w->out->missing_bytes == 0) plan_fits(w, &leanest, &(RankMemory){0});
        return true;
    }
    RankMemory memory;
    *fits = plan_fits(w, &leanest, &memory);
    if (*fits || scenario->model.num_kinds > 1) return false;
    if (most_layers == 0) return family_all_miss(&w->parts, &leanest);
    // What the floor of the most layers misses, fewer miss too.
    return workload_layers_hold_less(scenario, workload) &&
           family_floor_all_misses(&w->parts, &leanest);
}

static bool fit_visit(HarvestWalker *w, const Plan *plan, int most_layers) {
    Plan found;
    if (!split_fits(&w->pricing, plan, most_layers, &w->out->chunks, &found)) {
        w->out->pruned_by_memory++;
        return true;
    }
    return !fit_add(w, &found);
}

bool splits_visit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan, int most_layers) {
    const HarvestTask *task = w->task;
    Harvest *out = w->out;
    const int num = most_layers > 0 ? most_layers : 1;
    const Plan fastest = fastest_of(plan, most_layers);
    out->considered += num;
    out->any_split = true;
    if (is_missed(w, family, plan)) {
        out->pruned_by_memory += num;
        return true;
    }
    if (task->goal == HARVEST_BOUND && loosely_excluded(task, &fastest)) {
        out->pruned_by_bound += num;
        return true;
    }
    const Plan leanest = leanest_of(plan, most_layers);
    if (sketch_splits_full(w, &leanest)) {
        out->pruned_by_memory += num;
        return true;
    }
    if (is_slow(w, &fastest)) {
        out->pruned_by_bound += num;
        return true;
    }
    const double step_time_s = task->goal == HARVEST_BOUND ? bound_s(w, &fastest) : 0;
    const double busy = busy_s(w, plan, most_layers);
    const double value = least_value(task, step_time_s, busy);
    if (value > task->value_limit) {
        out->pruned_by_bound += num;
        return true;
    }
    bool fits;
    if (is_hopeless(w, family, plan, most_layers, &fits)) {
        out->pruned_by_memory += num;
        return true;
    }
    if (task->goal == HARVEST_FIT && fits && most_layers == 0) return !fit_add(w, plan);
    if (task->goal == HARVEST_FIT) return fit_visit(w, plan, most_layers);
    candidate_keep(w, &(Candidate){.plan = *plan,
                                   .value = value,
                                   .step_time_s = step_time_s,
                                   .busy_s = busy,
                                   .any_split = true,
                                   .most_layers = most_layers});
    return true;
}
