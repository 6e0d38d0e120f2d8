#include "planner/harvest/harvest_walker.h"
#include "planner/harvest/split_search.h"

#include "plan/plan_orders.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A limit divided and multiplied again.
static const double ROUNDING_FRAC = 1e-12;

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

// Where a GPU waits when it is not busy.
static double pool_joules(const Pool *pool, double step_time_s, double busy_s) {
    double idle_watts = fmin(pool->gpu.idle_power_watts, pool->power_watts_per_gpu);
    double extra_watts = pool->power_watts_per_gpu - idle_watts;
    return (idle_watts * step_time_s + extra_watts * busy_s) * pool->num_gpus;
}

// The formulas of costmodel/step/estimate.c. Of memory nothing is known from times.
double objective_bound(const Scenario *scenario, PlanObjective objective, double step_time_s,
                       double busy_s) {
    const Cluster *cluster = &scenario->cluster;
    double tokens = (double)scenario->training.seq_len * (double)scenario->training.global_batch;
    double sum = 0;
    switch (objective) {
    case OBJECTIVE_COST:
        for (int i = 0; i < cluster->num_pools; i++)
            sum += cluster->pools[i].price_usd_per_gpu_hour *
                   (cluster->pools[i].num_gpus + cluster->pools[i].idle_gpus);
        return sum / 3600 * step_time_s / tokens * 1e9;
    case OBJECTIVE_ENERGY:
        for (int i = 0; i < cluster->num_pools; i++)
            sum += pool_joules(&cluster->pools[i], step_time_s, busy_s);
        return sum / tokens;
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

static int compare_candidates(const void *a, const void *b) {
    return candidate_compare(a, b);
}

void candidates_sort(Candidate *candidates, size_t num_candidates) {
    if (num_candidates > 1)
        qsort(candidates, num_candidates, sizeof *candidates, compare_candidates);
}

// --- The walk

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

bool plan_fits(HarvestWalker *w, const Plan *plan, RankMemory *memory) {
    double missing;
    *memory = family_memory(&w->parts, plan, &missing);
    if (missing <= 0) return true;
    miss_keep(w->out, plan, memory, missing);
    return false;
}

void candidate_keep(HarvestWalker *w, const Candidate *candidate) {
    if (w->task->deadline && !candidate->any_split) deadline_arm(w->task->deadline);
    Candidate *kept = candidate_add(w->out);
    *kept = *candidate;
    kept->index = (int64_t)w->split << 32 | w->out->considered;
}

bool fit_add(HarvestWalker *w, const Plan *plan) {
    if (w->task->goal != HARVEST_FIT) return false;
    *candidate_add(w->out) = (Candidate){.plan = *plan};
    return true;
}

static bool is_excluded(const HarvestTask *task, double memory_bytes, double step_time_s,
                        double busy_s) {
    return task->excludes &&
           task->excludes(task->excludes_context, memory_bytes, step_time_s, busy_s);
}

double least_value(const HarvestTask *task, double step_time_s, double busy_s) {
    return objective_bound(task->space->scenario, task->objective, step_time_s, busy_s) *
           (1 + task->raise_frac);
}

double step_limit_s(const HarvestTask *task) {
    const double per_s = least_value(task, 1, 0);
    if (task->goal != HARVEST_BOUND || task->value_limit == INFINITY || per_s <= 0) return INFINITY;
    return task->value_limit / per_s * (1 + ROUNDING_FRAC);
}

void plan_bound(HarvestWalker *w, const Plan *plan, const RankMemory *memory) {
    const HarvestTask *task = w->task;
    const Scenario *scenario = task->space->scenario;
    if (task->excludes && task->loose &&
        is_excluded(task, memory->device_bytes, loose_bound_s(task->loose, plan), 0)) {
        w->out->pruned_by_bound++;
        return;
    }
    const Prices prices = family_prices(&w->parts, plan);
    const double busy_s = mean_busy_s(plan, &prices);
    double step_time_s =
        estimate_lower_bound_s(scenario, plan, family_workload(&w->parts, plan), &prices);
    double value = least_value(task, step_time_s, busy_s);
    if (task->objective == OBJECTIVE_MEMORY) value = memory->device_bytes;
    if (value > task->value_limit || is_excluded(task, memory->device_bytes, step_time_s, busy_s)) {
        w->out->pruned_by_bound++;
        return;
    }
    candidate_keep(w, &(Candidate){.plan = *plan,
                                   .value = value,
                                   .step_time_s = step_time_s,
                                   .memory_bytes = memory->device_bytes,
                                   .busy_s = busy_s});
}

bool loosely_excluded(const HarvestTask *task, const Plan *plan) {
    if (!task->loose || task->goal != HARVEST_BOUND) return false;
    if (task->value_limit == INFINITY) return false;
    return least_value(task, loose_first_bound_s(task->loose, plan), 0) > task->value_limit ||
           least_value(task, loose_bound_s(task->loose, plan), 0) > task->value_limit;
}

// With ZeRO 2 and 3 experts may be in no group, and are not gathered then.
bool smaller_groups_hold_more(const HarvestWalker *w, const Plan *plan) {
    return plan->zero_stage < 2 || !model_is_moe(&w->task->space->scenario->model);
}

bool is_missed(const HarvestWalker *w, const SpaceFamily *family, const Plan *plan) {
    const uint64_t bit = (uint64_t)1
                         << (NUM_SCHEDULES * plan_zero_level(plan) + (int)plan->schedule);
    if (!(w->missed[family->series] & bit)) return false;
    return plan->zero_group == family->plans[0].zero_group || smaller_groups_hold_more(w, plan);
}

// Whether the plan with the next larger group missed.
static bool group_missed(const HarvestWalker *w, const Plan *plan) {
    const GroupMiss *last = &w->group_misses[plan->schedule];
    return last->known && last->zero_level == plan_zero_level(plan) &&
           smaller_groups_hold_more(w, plan);
}

// The plan of a family itself. Returns false to end the walk.
static bool plan_visit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan) {
    Harvest *out = w->out;
    const uint64_t bit = (uint64_t)1
                         << (NUM_SCHEDULES * plan_zero_level(plan) + (int)plan->schedule);
    RankMemory memory;
    out->considered++;
    if (is_missed(w, family, plan) || group_missed(w, plan)) {
        out->pruned_by_memory++;
    } else if (sketch_misses(w, plan)) {
        w->group_misses[plan->schedule] = (GroupMiss){plan_zero_level(plan), true};
        out->pruned_by_memory++;
    } else if (!plan_fits(w, plan, &memory)) {
        // What lasts never needs less memory with more sequences at once (a law of
        // tests/planner/test_harvest.c); activations may, by a little.
        if (plan->zero_group == family->plans[0].zero_group &&
            memory_lasting_counted_bytes(w->task->space->scenario, plan, &memory) >
                w->available_bytes)
            w->missed[family->series] |= bit;
        w->group_misses[plan->schedule] = (GroupMiss){plan_zero_level(plan), true};
        out->pruned_by_memory++;
    } else {
        if (fit_add(w, plan)) return false;
        layers_note_fit(w, family, plan);
        plan_bound(w, plan, &memory);
    }
    return true;
}

// A plan that stands for all splits, and what recomputes its first layers.
static bool splits_family_visit(HarvestWalker *w, const SpaceFamily *family, int i, bool excluded) {
    const Plan *plan = &family->plans[i];
    const int most = family->num_layers[i];
    // With another split more layers may take less time, but never compute less.
    const bool ranks_by_time =
        w->task->first_layers_by_time && w->task->objective != OBJECTIVE_ENERGY;
    const bool by_time = ranks_by_time || w->task->goal == HARVEST_FIT;
    if (most > 0 && by_time && !splits_visit(w, family, plan, most)) return false;
    for (int k = 1; k <= most && !by_time; k++) {
        const Plan some = space_first_layers(plan, k);
        if (!splits_visit(w, family, &some, 0)) return false;
    }
    if (!excluded) return splits_visit(w, family, plan, 0);
    w->out->considered++;
    w->out->pruned_by_bound++;
    return true;
}

static bool family_visit(void *context, const SpaceFamily *family) {
    HarvestWalker *w = context;
    Harvest *out = w->out;
    if (w->task->deadline && deadline_is_over(w->task->deadline)) {
        out->cut_short = true;
        return false;
    }
    if (w->task->goal == HARVEST_LEGAL) {
        out->considered++;
        *candidate_add(out) = (Candidate){.plan = family->plans[0]};
        return false;
    }
    arena_reset(&w->scratch);
    family_start(&w->parts, family);
    memset(w->group_misses, 0, sizeof w->group_misses);
    layers_start(w, family);
    sketch_start(w);
    const bool excluded = loosely_excluded(w->task, &family->plans[0]);
    for (int i = 0; i < family->num_plans; i++) {
        const Plan *plan = &family->plans[i];
        if (family->any_split) {
            if (!splits_family_visit(w, family, i, excluded)) return false;
            continue;
        }
        if (family->num_layers[i] > 0 && !layers_visit(w, family, plan)) return false;
        if (excluded || layers_beat(w, family, plan) || sketch_excludes(w, plan)) {
            out->considered++;
            out->pruned_by_bound++;
        } else if (!plan_visit(w, family, plan)) {
            return false;
        }
    }
    return true;
}

bool harvest_split(const HarvestTask *task, int split, Harvest *out) {
    *out = (Harvest){0};
    HarvestWalker *walker = ARENA_NEW(&out->arena, HarvestWalker);
    walker->task = task;
    walker->split = split;
    walker->available_bytes = cluster_most_memory_bytes(&task->space->scenario->cluster);
    walker->out = out;
    walker->pricing = group_pricing_start(task->space->scenario);
    sketch_open(walker);
    walker->parts = (FamilyParts){.scenario = task->space->scenario,
                                  .pieces = &walker->pricing.pieces,
                                  .arena = &walker->scratch};
    const SpaceFilter filter = {task->uncounted ? sketch_skips : NULL, walker};
    const bool walked =
        space_visit_wanted(task->space, split, &out->chunks, &filter, family_visit, walker);
    group_pricing_free(&walker->pricing);
    arena_free(&walker->scratch);
    arena_free(&walker->layers_arena);
    sketch_end(walker);
    return !walked && !out->cut_short;
}

void harvest_free(Harvest *harvest) {
    arena_free(&harvest->chunks);
    arena_free(&harvest->arena);
    *harvest = (Harvest){0};
}
