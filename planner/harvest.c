#include "planner/harvest.h"

#include "workload/schedule.h"

#include <math.h>
#include <string.h>

// --- Bounds

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

// The formulas of costmodel/estimate.c. Of memory nothing is known from times.
double objective_bound(const Scenario *scenario, PlanObjective objective, double step_time_s,
                       double busy_s) {
    const Cluster *cluster = &scenario->cluster;
    double tokens = (double)scenario->training.seq_len * (double)scenario->training.global_batch;
    double idle_watts = fmin(cluster->gpu.idle_power_watts, cluster->power_watts_per_gpu);
    double extra_watts = cluster->power_watts_per_gpu - idle_watts;
    switch (objective) {
    case OBJECTIVE_COST:
        return cluster->price_usd_per_gpu_hour * cluster->num_gpus / 3600 * step_time_s / tokens *
               1e9;
    case OBJECTIVE_ENERGY:
        return (idle_watts * step_time_s + extra_watts * busy_s) * cluster->num_gpus / tokens;
    case OBJECTIVE_MEMORY:
        return 0;
    case OBJECTIVE_THROUGHPUT:
    case NUM_OBJECTIVES:
        break;
    }
    return step_time_s;
}

double mean_busy_s(const Plan *plan, const Prices *prices) {
    const bool mixes = schedule_find(plan->schedule)->mixes_backwards;
    const double each = (double)plan_chunk_microbatches(plan), all = (double)plan->num_microbatches;
    double chunks_s = 0, optimizers_s = 0;
    for (int c = 0; c < plan_all_chunks(plan); c++) {
        const double times = c < plan->num_chunks ? each : plan->pp * all;
        double backward_s = prices->backward[c].term_s[TERM_COMPUTE];
        if (mixes)
            backward_s = fmin(backward_s, prices->backward_input[c].term_s[TERM_COMPUTE] +
                                              prices->backward_weight[c].term_s[TERM_COMPUTE]);
        chunks_s += times * (prices->forward[c].term_s[TERM_COMPUTE] + backward_s);
    }
    for (int rank = 0; rank < plan->pp; rank++) optimizers_s += prices->optimizer_s[rank];
    return (chunks_s + optimizers_s) / plan->pp;
}

int candidate_compare(const Candidate *a, const Candidate *b) {
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    if (a->step_time_s != b->step_time_s) return a->step_time_s < b->step_time_s ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

// --- The walk

typedef struct {
    const HarvestTask *task;
    int split;
    double available_bytes; // on one GPU
    Harvest *out;
    Pieces pieces;
    Arena scratch; // of one family
    // Bit 10 zero_stage + schedule: not even what does not shrink with a larger micro_batch fits.
    uint64_t missed[SPACE_MAX_SERIES];
} Walker;

_Static_assert(4 * NUM_SCHEDULES <= 64, "a bit for each ZeRO stage and schedule");

// What plans of a family share: blocks change only where ZeRO 2 scatters gradients and ZeRO 3
// gathers weights in every micro-batch, prices also with the optimizer's share,
// split backwards and hidden messages.
// tests/planner/test_harvest.c holds this to be true.
typedef struct {
    int workload_key, prices_key;
    Workload workload;
    Prices prices;
} Shared;

// Chunks of dual pipelines are never those of another schedule (space.h), but lie like a V's.
static int placement_key(const Plan *plan) {
    return plan_is_dual(plan) ? 2 : plan_is_v(plan);
}

static const Workload *shared_workload(Walker *w, const Plan *plan, Shared *shared) {
    int key = (plan->zero_stage >= 2 ? plan->zero_stage : 0) + 4 * placement_key(plan);
    if (shared->workload_key != key) {
        shared->workload = pieces_workload(&w->pieces, plan, &w->scratch);
        shared->workload_key = key;
        shared->prices_key = -1;
    }
    return &shared->workload;
}

static const Prices *shared_prices(Walker *w, const Plan *plan, Shared *shared) {
    int optimizer = plan->zero_stage > 2 ? 2 : plan->zero_stage;
    const Schedule *schedule = schedule_find(plan->schedule);
    int key = 2 * (2 * optimizer + schedule->mixes_backwards) + schedule->splits_backward;
    key = 2 * key + program_hides_messages(w->task->space->scenario, plan);
    key = 3 * key + placement_key(plan);
    if (shared->prices_key != key) {
        shared->prices = pieces_prices(&w->pieces, plan, &shared->workload, &w->scratch);
        shared->prices_key = key;
    }
    return &shared->prices;
}

static Candidate *candidate_add(Harvest *harvest) {
    if (harvest->num_candidates == harvest->capacity) {
        size_t capacity = harvest->capacity ? 2 * harvest->capacity : 64;
        Candidate *grown = ARENA_ARRAY(&harvest->arena, capacity, Candidate);
        if (harvest->num_candidates)
            memcpy(grown, harvest->candidates, harvest->num_candidates * sizeof *grown);
        harvest->candidates = grown;
        harvest->capacity = capacity;
    }
    return &harvest->candidates[harvest->num_candidates++];
}

static void miss_keep(Harvest *out, const Plan *plan, const RankMemory *memory, double missing) {
    if (out->missing_bytes > 0 && missing >= out->missing_bytes) return;
    out->miss = *plan;
    out->miss_memory = *memory;
    out->missing_bytes = missing;
}

// Whether a plan fits. Most do not, and most of those not even on the first rank: where that misses
// by more than the closest miss so far, the other ranks are not asked.
static bool plan_fits(const Walker *w, const Plan *plan, const Workload *workload,
                      RankMemory *memory) {
    const Scenario *scenario = w->task->space->scenario;
    Harvest *out = w->out;
    *memory = memory_closed_form(scenario, plan, workload, 0);
    double missing = memory->device_bytes - w->available_bytes;
    if (missing <= 0 || out->missing_bytes == 0 || missing < out->missing_bytes)
        *memory = estimate_memory(scenario, plan, workload, &missing);
    if (missing <= 0) return true;
    miss_keep(out, plan, memory, missing);
    return false;
}

static bool is_excluded(const HarvestTask *task, double memory_bytes, double step_time_s,
                        double busy_s) {
    return task->excludes &&
           task->excludes(task->excludes_context, memory_bytes, step_time_s, busy_s);
}

// The least that a plan can have of what the search ranks by.
static double least_value(const HarvestTask *task, double step_time_s, double busy_s) {
    return objective_bound(task->space->scenario, task->objective, step_time_s, busy_s) *
           (1 + task->raise_frac);
}

// Bounds a plan that fits; keeps it unless the bound is above the limit.
static void plan_bound(Walker *w, const Plan *plan, const RankMemory *memory, Shared *shared) {
    const HarvestTask *task = w->task;
    const Scenario *scenario = task->space->scenario;
    if (task->excludes && task->loose &&
        is_excluded(task, memory->device_bytes, loose_bound_s(task->loose, plan), 0)) {
        w->out->pruned_by_bound++;
        return;
    }
    const Prices *prices = shared_prices(w, plan, shared);
    const double busy_s = mean_busy_s(plan, prices);
    double step_time_s = estimate_lower_bound_s(scenario, plan, &shared->workload, prices);
    double value = least_value(task, step_time_s, busy_s);
    if (task->objective == OBJECTIVE_MEMORY) value = memory->device_bytes;
    if (value > task->value_limit || is_excluded(task, memory->device_bytes, step_time_s, busy_s)) {
        w->out->pruned_by_bound++;
        return;
    }
    if (task->deadline) deadline_arm(task->deadline);
    *candidate_add(w->out) = (Candidate){.plan = *plan,
                                         .value = value,
                                         .step_time_s = step_time_s,
                                         .memory_bytes = memory->device_bytes,
                                         .busy_s = busy_s,
                                         .index = (int64_t)w->split << 32 | w->out->considered};
}

static bool loosely_excluded(const HarvestTask *task, const Plan *plan) {
    if (!task->loose || task->goal != HARVEST_BOUND) return false;
    return least_value(task, loose_bound_s(task->loose, plan), 0) > task->value_limit;
}

static bool family_visit(void *context, const Plan *plans, int num_plans, int series) {
    Walker *w = context;
    Harvest *out = w->out;
    if (w->task->deadline && deadline_is_over(w->task->deadline)) {
        out->cut_short = true;
        return false;
    }
    if (w->task->goal == HARVEST_LEGAL) {
        out->considered++;
        return false;
    }
    if (loosely_excluded(w->task, &plans[0])) {
        out->considered += num_plans;
        out->pruned_by_bound += num_plans;
        return true;
    }
    Shared shared = {.workload_key = -1, .prices_key = -1};
    arena_reset(&w->scratch);
    for (int i = 0; i < num_plans; i++) {
        const Plan *plan = &plans[i];
        uint64_t bit = (uint64_t)1 << (NUM_SCHEDULES * plan->zero_stage + (int)plan->schedule);
        RankMemory memory;
        out->considered++;
        if (w->missed[series] & bit) {
            out->pruned_by_memory++;
        } else if (!plan_fits(w, plan, shared_workload(w, plan, &shared), &memory)) {
            // What lasts never needs less memory with more sequences at once (a law of
            // tests/planner/test_harvest.c); activations may, by a little.
            const double outside = memory.device_bytes - memory.peak_bytes;
            if (memory_lasting_bytes(w->task->space->scenario, &memory) + outside >
                w->available_bytes)
                w->missed[series] |= bit;
            out->pruned_by_memory++;
        } else if (w->task->goal == HARVEST_FIT) {
            *candidate_add(out) = (Candidate){.plan = *plan};
            return false;
        } else {
            plan_bound(w, plan, &memory, &shared);
        }
    }
    return true;
}

bool harvest_split(const HarvestTask *task, int split, Harvest *out) {
    *out = (Harvest){0};
    Walker *walker = ARENA_NEW(&out->arena, Walker);
    walker->task = task;
    walker->split = split;
    walker->available_bytes = task->space->scenario->cluster.gpu.memory_available_bytes;
    walker->out = out;
    walker->pieces.scenario = task->space->scenario;
    bool walked = space_visit(task->space, split, &out->chunks, family_visit, walker);
    pieces_free(&walker->pieces);
    arena_free(&walker->scratch);
    return !walked && !out->cut_short;
}

void harvest_free(Harvest *harvest) {
    arena_free(&harvest->chunks);
    arena_free(&harvest->arena);
    *harvest = (Harvest){0};
}
