#include "planner/harvest.h"

#include <math.h>
#include <string.h>

// --- Bounds

double memory_limit_bytes(const Scenario *scenario, const PlannerOptions *options) {
    double available = scenario->cluster.gpu.memory_available_bytes;
    return options->max_memory_bytes > 0 ? fmin(options->max_memory_bytes, available) : available;
}

double objective_value(PlanObjective objective, const Estimate *estimate) {
    switch (objective) {
    case OBJECTIVE_COST:
        return estimate->usd_per_1e9_tokens;
    case OBJECTIVE_ENERGY:
        return estimate->joules_per_token;
    case OBJECTIVE_MEMORY:
        return estimate->memory.device_bytes;
    case OBJECTIVE_THROUGHPUT:
    case NUM_OBJECTIVES:
        break;
    }
    return estimate->step_time_s;
}

// Least time any rank computes in a step: what the energy model counts as busy.
static double least_busy_s(const Plan *plan, const Prices *prices) {
    double least = INFINITY;
    for (int rank = 0; rank < plan->pp; rank++) {
        double busy = 0;
        for (int c = rank; c < plan->num_chunks; c += plan->pp)
            busy +=
                prices->forward[c].term_s[TERM_COMPUTE] + prices->backward[c].term_s[TERM_COMPUTE];
        least = fmin(least, busy * (double)plan->num_microbatches + prices->optimizer_s[rank]);
    }
    return least;
}

// The cost model's energy (costmodel/estimate.c) with the least time of either kind.
static double energy_bound(const Scenario *scenario, const Plan *plan, const Prices *prices,
                           double step_time_s) {
    const Cluster *cluster = &scenario->cluster;
    double tokens = (double)scenario->training.seq_len * (double)scenario->training.global_batch;
    double idle = fmin(cluster->gpu.idle_power_watts, cluster->power_watts_per_gpu);
    double joules =
        idle * step_time_s + (cluster->power_watts_per_gpu - idle) * least_busy_s(plan, prices);
    return joules * cluster->num_gpus / tokens;
}

void plan_bounds(const Scenario *scenario, const Plan *plan, const Workload *workload,
                 const Prices *prices, const RankMemory *memory, PlanObjective objective,
                 Candidate *out) {
    const Cluster *cluster = &scenario->cluster;
    double tokens = (double)scenario->training.seq_len * (double)scenario->training.global_batch;
    out->step_time_s = estimate_lower_bound_s(scenario, plan, workload, prices);
    switch (objective) {
    case OBJECTIVE_COST:
        out->value = cluster->price_usd_per_gpu_hour * cluster->num_gpus / 3600 * out->step_time_s /
                     tokens * 1e9;
        return;
    case OBJECTIVE_ENERGY:
        out->value = energy_bound(scenario, plan, prices, out->step_time_s);
        return;
    case OBJECTIVE_MEMORY:
        out->value = memory->device_bytes;
        return;
    case OBJECTIVE_THROUGHPUT:
    case NUM_OBJECTIVES:
        break;
    }
    out->value = out->step_time_s;
}

// --- The walk

typedef struct {
    const Space *space;
    HarvestGoal goal;
    const PlannerOptions *options;
    double limit_bytes;
    int split;     // walked now
    Arena scratch; // of one family
    Harvest *out;
} Walker;

// What plans of a family share: blocks change only where ZeRO 3 gathers weights between them,
// prices also with the optimizer's share. tests/planner/test_harvest.c holds this to be true.
typedef struct {
    int workload_key, prices_key;
    Workload workload;
    Prices prices;
} Shared;

static const Workload *shared_workload(Walker *w, const Plan *plan, Shared *shared) {
    int key = plan->zero_stage >= 3;
    if (shared->workload_key != key) {
        shared->workload = workload_build(w->space->scenario, plan, &w->scratch);
        shared->workload_key = key;
        shared->prices_key = -1;
    }
    return &shared->workload;
}

static const Prices *shared_prices(Walker *w, const Plan *plan, Shared *shared) {
    int sharded = plan->zero_stage > 0;
    int key = 2 * sharded + schedule_find(plan->schedule)->splits_backward;
    if (shared->prices_key != key) {
        shared->prices = chunks_price(w->space->scenario, plan, &shared->workload, &w->scratch);
        shared->prices_key = key;
    }
    return &shared->prices;
}

static Candidate *candidate_add(Harvest *harvest) {
    if (harvest->num_candidates == harvest->capacity) {
        size_t capacity = harvest->capacity ? 2 * harvest->capacity : 256;
        Candidate *grown = ARENA_ARRAY(&harvest->arena, capacity, Candidate);
        if (harvest->num_candidates)
            memcpy(grown, harvest->candidates, harvest->num_candidates * sizeof *grown);
        harvest->candidates = grown;
        harvest->capacity = capacity;
    }
    return &harvest->candidates[harvest->num_candidates++];
}

static void miss_keep(Harvest *out, const Plan *plan, const RankMemory *memory, double missing) {
    out->pruned_by_memory++;
    if (out->missing_bytes > 0 && missing >= out->missing_bytes) return;
    out->miss = *plan;
    out->miss_memory = *memory;
    out->missing_bytes = missing;
}

// Whether a plan fits. Most do not, and most of those not even on the first rank: where that misses
// by more than the closest miss so far, the other ranks are not asked.
static bool plan_fits(const Walker *w, const Plan *plan, const Workload *workload,
                      RankMemory *memory) {
    const Scenario *scenario = w->space->scenario;
    Harvest *out = w->out;
    *memory = memory_closed_form(scenario, plan, workload, 0);
    double missing = memory->device_bytes - w->limit_bytes;
    if (missing <= 0 || out->missing_bytes == 0 || missing < out->missing_bytes) {
        double ignored;
        *memory = estimate_memory(scenario, plan, workload, &ignored);
        missing = memory->device_bytes - w->limit_bytes;
    }
    if (missing <= 0) return true;
    miss_keep(out, plan, memory, missing);
    return false;
}

static bool family_visit(void *context, const Plan *plans, int num_plans) {
    Walker *w = context;
    Harvest *out = w->out;
    const Scenario *scenario = w->space->scenario;
    Shared shared = {.workload_key = -1, .prices_key = -1};
    arena_reset(&w->scratch);
    for (int i = 0; i < num_plans; i++) {
        const Plan *plan = &plans[i];
        out->considered++;
        if (w->goal == HARVEST_LEGAL) return false;
        const Workload *workload = shared_workload(w, plan, &shared);
        RankMemory memory;
        if (!plan_fits(w, plan, workload, &memory)) continue;
        Candidate *candidate = candidate_add(out);
        *candidate = (Candidate){.plan = *plan, .index = (int64_t)w->split << 32 | out->considered};
        if (w->goal == HARVEST_FIT) return false;
        plan_bounds(scenario, plan, workload, shared_prices(w, plan, &shared), &memory,
                    w->options->objective, candidate);
    }
    return true;
}

void harvest_run(const Space *space, HarvestGoal goal, const PlannerOptions *options,
                 Harvest *out) {
    *out = (Harvest){0};
    Walker walker = {.space = space, .goal = goal, .options = options, .out = out};
    walker.limit_bytes = memory_limit_bytes(space->scenario, options);
    for (int split = 0; split < space->num_splits; split++) {
        walker.split = split;
        if (options->progress)
            options->progress(options->progress_context, "configurations", out->considered, 0);
        if (!space_visit(space, split, &out->arena, family_visit, &walker)) break;
    }
    arena_free(&walker.scratch);
}

void harvest_free(Harvest *harvest) {
    arena_free(&harvest->arena);
    *harvest = (Harvest){0};
}
