#include "planner/stages/group_configuration.h"

#include "costmodel/step/step_time.h"
#include "planner/stages/group_chunkings.h"

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
    double bound_s; // of all splits that fit, where it is known
    double least_s; // of the prices, those beyond the limit among them
    int *best;      // [num_chunks] items of the best split's chunks, once one is known
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

// A split of the plan's layers, with what is made of it; it lies in the scratch arena.
typedef struct {
    Plan plan;
    Workload workload;
    Prices prices;
} Attempt;

static Attempt attempt_start(Splitter *s, const PlanChunk *chunks) {
    Attempt attempt = {.plan = *s->plan};
    attempt.plan.chunks = chunks;
    attempt.workload = pieces_workload(&s->pricing->pieces, &attempt.plan, &s->scratch);
    return attempt;
}

static double attempt_bound_s(Splitter *s, Attempt *attempt) {
    attempt->prices =
        pieces_prices(&s->pricing->pieces, &attempt->plan, &attempt->workload, &s->scratch);
    return estimate_lower_bound_s(s->pricing->scenario, &attempt->plan, &attempt->workload,
                                  &attempt->prices);
}

static RankMemory attempt_memory(const Splitter *s, const Attempt *attempt, double *missing_bytes) {
    return estimate_memory(s->pricing->scenario, &attempt->plan, &attempt->workload, missing_bytes);
}

// INFINITY of one that is slower than the best so far, too.
static Status step_time_find(Splitter *s, const Attempt *attempt, double *step_time_s) {
    *step_time_s = NAN;
    if (!s->task->exhaustive)
        *step_time_s =
            plan_step_time_below_s(s->pricing->scenario, &attempt->plan, &attempt->workload,
                                   &attempt->prices, s->least_s, &s->scratch);
    if (!isnan(*step_time_s)) return status_ok();
    Estimate estimate;
    TRY(estimate_plan(s->pricing->scenario, &attempt->plan, &s->scratch, &estimate, NULL));
    *step_time_s = estimate.step_time_s;
    return status_ok();
}

// Whether a bound rules out that a split is as fast as the best so far.
static bool is_slower(const Splitter *s, double bound_s) {
    return !s->task->exhaustive && bound_s > s->least_s * (1 + ROUNDING_FRAC);
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

static void price_keep(Splitter *s, const Attempt *attempt, double step_time_s,
                       double memory_bytes) {
    s->out->verdict = GROUP_PRICED;
    s->least_s = fmin(s->least_s, step_time_s);
    if (step_time_s <= s->task->limit_s) split_keep(s, &attempt->plan, step_time_s, memory_bytes);
}

// Prices a split that fits, unless its bound says that it is not the best.
static void split_price(Splitter *s, const Attempt *attempt, double bound_s, double memory_bytes) {
    double step_time_s;
    s->out->num_splits++;
    if (is_slower(s, bound_s)) return;
    s->status = step_time_find(s, attempt, &step_time_s);
    if (s->status.code == STATUS_OK) price_keep(s, attempt, step_time_s, memory_bytes);
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

static Attempt items_start(Splitter *s, const int *items) {
    arena_reset(&s->scratch);
    return attempt_start(s, chain_chunks(s->pricing, s->plan, items, &s->scratch));
}

static void best_note(Splitter *s, const int *items, double before_s) {
    if (s->least_s < before_s) memcpy(s->best, items, (size_t)s->plan->num_chunks * sizeof *items);
}

// Prices a split if it fits.
//   items  [num_chunks] of the chain
static void split_try(Splitter *s, const int *items) {
    const double before_s = s->least_s;
    double missing_bytes;
    Attempt attempt = items_start(s, items);
    const RankMemory memory = attempt_memory(s, &attempt, &missing_bytes);
    if (missing_bytes > 0) return;
    split_price(s, &attempt, attempt_bound_s(s, &attempt), memory.device_bytes);
    best_note(s, items, before_s);
}

// Tries a split that is of interest only where it is as fast as the best: few are, so that memory
// is asked last.
static void neighbour_try(Splitter *s, const int *items) {
    const double before_s = s->least_s;
    double step_time_s, missing_bytes;
    Attempt attempt = items_start(s, items);
    if (is_slower(s, attempt_bound_s(s, &attempt))) return;
    s->status = step_time_find(s, &attempt, &step_time_s);
    if (s->status.code != STATUS_OK || step_time_s > s->least_s) return;
    const RankMemory memory = attempt_memory(s, &attempt, &missing_bytes);
    if (missing_bytes > 0) return;
    price_keep(s, &attempt, step_time_s, memory.device_bytes);
    best_note(s, items, before_s);
}

// What a bound leaves out - exchanges of gradients, waiting for messages - is about the same in all
// splits: where it is little, and the best of the first few would have to lose more than this part
// of it, the others are not looked at.
static const double HOPELESS_FRAC = 0.3, LITTLE_FRAC = 0.03;
enum { HOPELESS_SPLITS = 3, MAX_CLIMB_CHUNKS = 512 };

static bool is_far(const Splitter *s) {
    const double left_out_s = s->least_s - s->bound_s;
    return left_out_s < LITTLE_FRAC * s->least_s &&
           s->least_s - s->task->limit_s > HOPELESS_FRAC * left_out_s;
}

static bool is_enough(const Splitter *s) {
    const int most = s->task->max_splits > 0 ? s->task->max_splits : GROUP_MAX_SPLITS;
    const int64_t num = s->out->num_splits;
    if (s->task->exhaustive) return s->task->max_splits > 0 && num >= most;
    const bool far = s->task->max_steps > 0 && num >= HOPELESS_SPLITS && is_far(s);
    return num >= most || far || (num > 0 && deadline_is_over(s->task->deadline));
}

static bool stage_visit(void *context, const int *items, double bound_s) {
    Splitter *s = context;
    (void)bound_s;
    if (is_enough(s)) return false;
    split_try(s, items);
    return s->status.code == STATUS_OK;
}

// Where no split fits: by how much the plan's own does not, and that with the least bound.
static void staged_misses(Splitter *s, const int *layers) {
    for (int i = 0; i < 2; i++) {
        double missing_bytes;
        arena_reset(&s->scratch);
        const Attempt attempt = i == 0 ? attempt_start(s, s->plan->chunks) : items_start(s, layers);
        const RankMemory memory = attempt_memory(s, &attempt, &missing_bytes);
        miss_keep(s, &attempt.plan, &memory, missing_bytes);
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

// Whether a neighbour of the best split may be better: its bound is not above it.
static bool may_be_better(const Splitter *s, const StageProblem *problem, const int *items) {
    for (int r = 0, from = 0; problem->most && r < problem->num_stages; from += items[r++])
        if (from + items[r] > problem->most[r][from]) return false;
    return stage_split_bound_s(problem, items) <= s->limit_s;
}

// may_be_better of several chunks a rank: by the work of the busiest.
static bool chunks_may_be_better(const Splitter *s, const int *items) {
    const Plan *plan = s->plan;
    const GroupCosts *costs = group_costs_of(s->pricing, plan);
    const double limit_s = s->limit_s / (double)plan_chunk_microbatches(plan);
    double load_s[MAX_CLIMB_CHUNKS] = {0};
    for (int c = 0, from = 0; c < plan->num_chunks; from += items[c++]) {
        const int rank = plan_chunk_rank(plan, c);
        const StageMachine *machine =
            &costs->machines[plan_rank_pool(&s->pricing->scenario->cluster, plan, rank)];
        for (int pass = 0; pass < NUM_PASSES; pass++) {
            if (!machine->device_s[pass]) continue;
            load_s[rank] +=
                machine->device_s[pass][from + items[c]] - machine->device_s[pass][from];
            if (c == 0) load_s[rank] += machine->first_s[pass];
            if (c == plan->num_chunks - 1) load_s[rank] += machine->last_s[pass];
        }
        if (load_s[rank] > limit_s) return false;
    }
    return true;
}

// One item more on one chunk and one less on another, until no such split is faster.
//   problem  of one chunk a rank; else NULL
static void splits_climb(Splitter *s, const StageProblem *problem) {
    const int num = s->plan->num_chunks;
    int left = s->task->max_steps, items[MAX_CLIMB_CHUNKS];
    if (num > MAX_CLIMB_CHUNKS || s->least_s == INFINITY || is_far(s)) return;
    for (int from = 0, unchanged = 0; unchanged < num && left > 0; from = (from + 1) % num) {
        unchanged++;
        for (int to = 0; to < num && left > 0; to++) {
            memcpy(items, s->best, (size_t)num * sizeof *items);
            if (from == to || items[from] == 0) continue;
            items[from]--;
            items[to]++;
            if (problem ? !may_be_better(s, problem, items) : !chunks_may_be_better(s, items))
                continue;
            const double before_s = s->least_s;
            neighbour_try(s, items);
            if (s->status.code != STATUS_OK) return;
            left--;
            if (s->least_s < before_s) unchanged = 0;
        }
    }
}

// Of very many micro-batches the split whose busiest stage does least has the least bound; of few
// ones it may be far behind others whose early stages do more, though its step is shorter.
static void steady_try(Splitter *s, const StageProblem *with_room, Arena *own) {
    static const double MANY = 1e6;
    FirstSplit first = {ARENA_ARRAY(own, with_room->num_stages, int), with_room->num_stages};
    const double any_s = INFINITY;
    StageProblem steady = *with_room;
    if (is_far(s)) return;
    steady.num_microbatches = MANY;
    steady.limit_s = 0;
    const StageBounds bounds = stage_bounds_solve(&steady, own);
    if (bounds.bound_s == INFINITY) return; // none of those whose room is known
    stage_splits_visit(&bounds, &any_s, first_take, &first, own);
    if (may_be_better(s, with_room, first.layers)) split_try(s, first.layers);
}

static void staged_visit(Splitter *s, const StageProblem *with_room, Arena *own) {
    const StageBounds bounds = stage_bounds_solve(with_room, own);
    s->bound_s = bounds.bound_s;
    s->best = ARENA_ARRAY(own, s->plan->num_chunks, int);
    s->out->has_room = true;
    s->out->open_s = stage_splits_visit(&bounds, &s->limit_s, stage_visit, s, own);
    const bool open = s->out->open_s < s->limit_s && s->task->max_steps > 0;
    if (open && s->status.code == STATUS_OK) steady_try(s, with_room, own);
    if (open && s->status.code == STATUS_OK) splits_climb(s, with_room);
    if (s->out->open_s >= s->limit_s) s->out->open_s = INFINITY;
}

static void staged_split(Splitter *s) {
    const Plan *plan = s->plan;
    const GroupCosts *costs = group_costs_of(s->pricing, plan);
    Arena own = {0};
    StageProblem problem = group_stage_problem(s->pricing->scenario, plan, costs, &own);
    if (isfinite(s->limit_s)) problem.limit_s = s->limit_s;
    const StageBounds free_bounds =
        s->task->fits ? stage_starts(&problem, &own) : stage_bounds_solve(&problem, &own);
    if (free_bounds.bound_s > s->limit_s) {
        arena_free(&own);
        return;
    }
    if (s->task->fits || group_stages_fit(s->pricing, plan)) {
        StageProblem with_room = problem;
        with_room.most = group_stage_room(s->pricing, plan, &free_bounds, &own);
        staged_visit(s, &with_room, &own);
    } else {
        FirstSplit first = {ARENA_ARRAY(&own, plan->pp, int), plan->pp};
        const double any_s = INFINITY;
        s->out->verdict = GROUP_NO_ROOM;
        stage_splits_visit(&free_bounds, &any_s, first_take, &first, &own);
        staged_misses(s, first.layers);
    }
    arena_free(&own);
}

// --- Several chunks a rank, or stated stages: a few splits

// The chain's items of each chunk of a split that is listed.
static void items_of(const Splitter *s, const PlanChunk *chunks, int *items) {
    for (int c = 0; c < s->plan->num_chunks; c++) items[c] = chunks[c].num_layers;
    items[0] -= s->pricing->scenario->model.num_front_layers;
}

static void listed_split(Splitter *s) {
    const PlanChunk *list[MAX_GROUP_CHUNKINGS] = {s->plan->chunks};
    Arena own = {0};
    int num = 1;
    if (!s->task->even)
        num = group_chunkings(s->pricing, s->plan, group_costs_of(s->pricing, s->plan), &own, list);
    s->best = ARENA_ARRAY(&own, s->plan->num_chunks, int);
    for (int i = 0; i < num && s->status.code == STATUS_OK; i++) {
        if (s->out->num_splits > 0 && deadline_is_over(s->task->deadline)) {
            s->out->open_s = fmin(s->out->open_s, s->bound_s);
            break;
        }
        double missing_bytes;
        arena_reset(&s->scratch);
        Attempt attempt = attempt_start(s, list[i]);
        const RankMemory memory = attempt_memory(s, &attempt, &missing_bytes);
        if (missing_bytes > 0) {
            miss_keep(s, &attempt.plan, &memory, missing_bytes);
            continue;
        }
        s->out->has_room = true;
        const double bound_s = attempt_bound_s(s, &attempt), before_s = s->least_s;
        s->bound_s = s->bound_s > 0 ? fmin(s->bound_s, bound_s) : bound_s;
        if (!s->task->exhaustive && bound_s > s->limit_s) continue;
        split_price(s, &attempt, bound_s, memory.device_bytes);
        if (s->least_s < before_s) items_of(s, list[i], s->best);
    }
    if (!s->out->has_room) s->out->verdict = GROUP_NO_ROOM;
    if (s->status.code == STATUS_OK) splits_climb(s, NULL);
    arena_free(&own);
}

Status group_configuration_split(GroupPricing *pricing, const Plan *plan, const GroupTask *task,
                                 Arena *arena, GroupSplit *out) {
    Splitter s = {.pricing = pricing,
                  .plan = plan,
                  .task = task,
                  .arena = arena,
                  .limit_s = task->exhaustive ? INFINITY : task->limit_s,
                  .least_s = INFINITY,
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
