#include "planner/group_configuration.h"

#include "costmodel/step_time.h"
#include "planner/group_chunkings.h"
#include "planner/group_search.h"

#include <math.h>
#include <string.h>

// Bounds and prices are sums of the same seconds in another order.
static const double ROUNDING_FRAC = 1e-9;

typedef struct {
    GroupPricing *pricing;
    const Plan *plan;
    const GroupTask *task;
    Arena *arena;
    Arena scratch; // of one price
    double limit_s;
    Status status;
    GroupSplit *out;
} Splitter;

static bool is_staged(const GroupPricing *pricing, const Plan *plan) {
    return group_plan_is_staged(plan) && !pricing->scenario->parallel.stages;
}

double group_configuration_mean_s(GroupPricing *pricing, const Plan *plan) {
    return group_costs_bound_s(pricing->scenario, plan, group_costs_of(pricing, plan));
}

// Of the plan's own split.
static double own_bound_s(GroupPricing *pricing, const Plan *plan, Arena *scratch) {
    const Workload workload = pieces_workload(&pricing->pieces, plan, scratch);
    const Prices prices = pieces_prices(&pricing->pieces, plan, &workload, scratch);
    return estimate_lower_bound_s(pricing->scenario, plan, &workload, &prices);
}

double group_configuration_bound_s(GroupPricing *pricing, const Plan *plan, bool even) {
    const Scenario *scenario = pricing->scenario;
    Arena scratch = {0};
    double bound_s;
    if (even || scenario->parallel.stages || plan_is_dual(plan)) {
        bound_s = own_bound_s(pricing, plan, &scratch);
    } else if (is_staged(pricing, plan)) {
        const StageProblem problem =
            group_stage_problem(scenario, plan, group_costs_of(pricing, plan), &scratch);
        bound_s = stage_bounds_solve(&problem, &scratch).bound_s;
    } else {
        bound_s = group_chunkings_bound_s(pricing, plan, group_costs_of(pricing, plan), &scratch);
    }
    arena_free(&scratch);
    return bound_s;
}

// --- Prices

static Status step_time_find(Splitter *s, const Plan *plan, const Workload *workload,
                             const Prices *prices, double *step_time_s) {
    *step_time_s = NAN;
    if (!s->task->exhaustive)
        *step_time_s = plan_step_time_s(s->pricing->scenario, plan, workload, prices, &s->scratch);
    if (!isnan(*step_time_s)) return status_ok();
    Estimate estimate;
    TRY(estimate_plan(s->pricing->scenario, plan, &s->scratch, &estimate, NULL));
    *step_time_s = estimate.step_time_s;
    return status_ok();
}

static void split_keep(Splitter *s, const Plan *plan, double step_time_s, double memory_bytes) {
    GroupSplit *out = s->out;
    const bool ties = step_time_s == out->step_time_s;
    if (step_time_s > out->step_time_s || (ties && memory_bytes >= out->memory_bytes)) return;
    out->step_time_s = step_time_s;
    out->memory_bytes = memory_bytes;
    out->plan = plan_copy(plan, s->arena);
    if (!s->task->exhaustive) s->limit_s = fmin(s->limit_s, step_time_s * (1 - ROUNDING_FRAC));
}

// A plan with its own chunks, which fits.
static void split_price(Splitter *s, const Plan *plan, const Workload *workload,
                        const RankMemory *memory) {
    const Prices prices = pieces_prices(&s->pricing->pieces, plan, workload, &s->scratch);
    double step_time_s;
    s->status = step_time_find(s, plan, workload, &prices, &step_time_s);
    if (s->status.code != STATUS_OK) return;
    s->out->verdict = GROUP_PRICED;
    s->out->num_splits++;
    if (step_time_s <= s->task->limit_s) split_keep(s, plan, step_time_s, memory->device_bytes);
}

static void miss_keep(Splitter *s, const Plan *plan, const RankMemory *memory, double missing) {
    GroupSplit *out = s->out;
    const double least = out->missing_bytes > 0 ? out->missing_bytes : s->task->least_missing_bytes;
    if (least > 0 && missing >= least) return;
    out->miss = plan_copy(plan, s->arena);
    out->miss_memory = *memory;
    out->missing_bytes = missing;
}

// --- One chunk a rank: all splits

static bool stage_visit(void *context, const int *layers, double bound_s) {
    Splitter *s = context;
    Plan plan = *s->plan;
    double missing_bytes;
    (void)bound_s;
    if (!s->task->exhaustive && s->out->num_splits >= GROUP_MAX_SPLITS) return false;
    if (s->out->num_splits > 0 && deadline_is_over(s->task->deadline)) return false;
    arena_reset(&s->scratch);
    plan.chunks = group_chunks(&plan, layers, &s->scratch);
    const Workload workload = pieces_workload(&s->pricing->pieces, &plan, &s->scratch);
    const RankMemory memory =
        estimate_memory(s->pricing->scenario, &plan, &workload, &missing_bytes);
    if (missing_bytes <= 0) split_price(s, &plan, &workload, &memory);
    return s->status.code == STATUS_OK;
}

// Where no split fits: by how much the plan's own does not, and that with the least bound.
static void staged_misses(Splitter *s, const int *layers) {
    Plan plan = *s->plan;
    for (int i = 0; i < 2; i++) {
        double missing_bytes;
        arena_reset(&s->scratch);
        if (i == 1) plan.chunks = group_chunks(&plan, layers, &s->scratch);
        const Workload workload = pieces_workload(&s->pricing->pieces, &plan, &s->scratch);
        const RankMemory memory =
            estimate_memory(s->pricing->scenario, &plan, &workload, &missing_bytes);
        miss_keep(s, &plan, &memory, missing_bytes);
    }
}

typedef struct {
    int *layers; // [num_stages]
    int num_stages;
} FirstSplit;

static bool first_take(void *context, const int *layers, double bound_s) {
    FirstSplit *first = context;
    (void)bound_s;
    memcpy(first->layers, layers, (size_t)first->num_stages * sizeof *layers);
    return false;
}

static void staged_split(Splitter *s) {
    const Plan *plan = s->plan;
    GroupSplit *out = s->out;
    const GroupCosts *costs = group_costs_of(s->pricing, plan);
    Arena own = {0};
    StageProblem problem = group_stage_problem(s->pricing->scenario, plan, costs, &own);
    const StageBounds free_bounds = stage_bounds_solve(&problem, &own);
    if (!s->task->exhaustive && free_bounds.bound_s > s->limit_s) {
        arena_free(&own);
        return;
    }
    StageProblem with_room = problem;
    with_room.most = group_stage_room(s->pricing, plan, &own);
    const StageBounds bounds = stage_bounds_solve(&with_room, &own);
    if (bounds.bound_s == INFINITY) {
        FirstSplit first = {ARENA_ARRAY(&own, plan->pp, int), plan->pp};
        const double any_s = INFINITY;
        out->verdict = GROUP_NO_ROOM;
        stage_splits_visit(&free_bounds, &any_s, first_take, &first, &own);
        staged_misses(s, first.layers);
    } else {
        out->open_s = stage_splits_visit(&bounds, &s->limit_s, stage_visit, s, &own);
    }
    arena_free(&own);
}

// --- Several chunks a rank, or stated stages: a few splits

static void listed_split(Splitter *s) {
    const PlanChunk *list[MAX_GROUP_CHUNKINGS] = {s->plan->chunks};
    const Scenario *scenario = s->pricing->scenario;
    Arena own = {0};
    int num = 1;
    bool fits = false;
    if (!s->task->even)
        num = group_chunkings(s->pricing, s->plan, group_costs_of(s->pricing, s->plan), &own, list);
    for (int i = 0; i < num && s->status.code == STATUS_OK; i++) {
        Plan plan = *s->plan;
        double missing_bytes;
        plan.chunks = list[i];
        arena_reset(&s->scratch);
        const Workload workload = pieces_workload(&s->pricing->pieces, &plan, &s->scratch);
        const RankMemory memory = estimate_memory(scenario, &plan, &workload, &missing_bytes);
        if (missing_bytes > 0) {
            miss_keep(s, &plan, &memory, missing_bytes);
            continue;
        }
        fits = true;
        const Prices prices = pieces_prices(&s->pricing->pieces, &plan, &workload, &s->scratch);
        if (!s->task->exhaustive &&
            estimate_lower_bound_s(scenario, &plan, &workload, &prices) > s->limit_s)
            continue;
        split_price(s, &plan, &workload, &memory);
    }
    if (!fits) s->out->verdict = GROUP_NO_ROOM;
    arena_free(&own);
}

Status group_configuration_split(GroupPricing *pricing, const Plan *plan, const GroupTask *task,
                                 Arena *arena, GroupSplit *out) {
    Splitter s = {.pricing = pricing,
                  .plan = plan,
                  .task = task,
                  .arena = arena,
                  .limit_s = task->exhaustive ? INFINITY : task->limit_s,
                  .status = status_ok(),
                  .out = out};
    *out = (GroupSplit){.verdict = GROUP_ABOVE_LIMIT, .step_time_s = INFINITY, .open_s = INFINITY};
    if (task->even || !is_staged(pricing, plan))
        listed_split(&s);
    else
        staged_split(&s);
    if (out->verdict != GROUP_NO_ROOM) out->missing_bytes = 0;
    arena_free(&s.scratch);
    return s.status;
}
