#include "planner/questions/frontier.h"

#include "base/clock.h"
#include "base/share.h"
#include "planner/harvest/harvest.h"
#include "planner/questions/nondominated.h"
#include "planner/why/explain.h"
#include "planner/why/miss.h"
#include "planner/why/robust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_SPLITS = 16 };

typedef struct {
    const Scenario *scenario;
    const PlannerOptions *options;
    Deadline deadline;
    double raise_frac; // robust: the upper end is above the step by at least this
    Space space;
    LooseCosts loose;
    double *split_bound_s; // [num_splits]
    int *split_order;      // [num_splits] by loose bound
    Nondominated set;
    Candidate *open; // [num_open] kept, not priced
    size_t num_open, capacity;
    SearchStats stats;
    Arena arena;
} Frontier;

// --- Points

static Point price_point(const Frontier *f, const Estimate *estimate) {
    const double raise = f->options->robust ? robust_raise(estimate) : 1;
    return (Point){{[AXIS_TIME] = estimate->step_time_s * raise,
                    [AXIS_MEMORY] = estimate->memory.device_bytes,
                    [AXIS_ENERGY] = estimate->joules_per_token}};
}

// What the price of a configuration cannot be below.
static Point bound_point(const Frontier *f, double memory_bytes, double step_time_s,
                         double busy_s) {
    return (Point){
        {[AXIS_TIME] = step_time_s * (1 + f->raise_frac),
         [AXIS_MEMORY] = memory_bytes,
         [AXIS_ENERGY] = objective_bound(f->scenario, OBJECTIVE_ENERGY, step_time_s, busy_s)}};
}

static bool is_covered(const void *context, double memory_bytes, double step_time_s,
                       double busy_s) {
    const Frontier *f = context;
    const Point point = bound_point(f, memory_bytes, step_time_s, busy_s);
    return nondominated_covers(&f->set, &point);
}

static bool candidate_is_covered(const Frontier *f, const Candidate *candidate) {
    return !f->options->exhaustive &&
           is_covered(f, candidate->memory_bytes, candidate->step_time_s, candidate->busy_s);
}

static Status candidate_price(Frontier *f, Candidate *candidate) {
    FrontierItem item = {.plan = candidate->plan};
    Arena scratch = {0};
    Status status = estimate_plan(f->scenario, &candidate->plan, &scratch, &item.estimate, NULL);
    arena_free(&scratch);
    if (status.code != STATUS_OK) return status;
    item.point = price_point(f, &item.estimate);
    nondominated_add(&f->set, &item);
    candidate->priced = true;
    f->stats.priced++;
    return status;
}

// What is left out of the answer, with these bounds.
static void leave_out(Frontier *f, const Point *point) {
    f->stats.stopped_early = true;
    f->stats.gap_frac = fmax(f->stats.gap_frac, nondominated_gap_frac(&f->set, point));
}

// --- Splits

static int compare_candidates(const void *a, const void *b) {
    const Candidate *x = a, *y = b;
    if (x->step_time_s != y->step_time_s) return x->step_time_s < y->step_time_s ? -1 : 1;
    if (x->memory_bytes != y->memory_bytes) return x->memory_bytes < y->memory_bytes ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void candidates_sort_by_step(Candidate *candidates, size_t num_candidates) {
    if (num_candidates > 1)
        qsort(candidates, num_candidates, sizeof *candidates, compare_candidates);
}

// Prices what bounds a split from below on each axis, so that the rounds to come keep less.
static Status harvest_seed(Frontier *f, const Harvest *harvest) {
    Candidate *candidates = harvest->candidates;
    size_t least[MAX_AXES] = {0};
    for (size_t i = 1; i < harvest->num_candidates; i++) {
        const Candidate *one = &candidates[i];
        if (one->step_time_s < candidates[least[AXIS_TIME]].step_time_s) least[AXIS_TIME] = i;
        if (one->memory_bytes < candidates[least[AXIS_MEMORY]].memory_bytes) least[AXIS_MEMORY] = i;
        if (one->busy_s < candidates[least[AXIS_ENERGY]].busy_s) least[AXIS_ENERGY] = i;
    }
    for (int k = 0; k < f->set.num_axes && harvest->num_candidates > 0; k++) {
        Candidate *one = &candidates[least[k]];
        if (!one->priced && !candidate_is_covered(f, one)) TRY(candidate_price(f, one));
    }
    return status_ok();
}

static void candidates_keep(Frontier *f, const Harvest *harvest) {
    if (f->num_open + harvest->num_candidates > f->capacity) {
        const size_t capacity = 2 * (f->num_open + harvest->num_candidates);
        Candidate *grown = ARENA_ARRAY(&f->arena, capacity, Candidate);
        if (f->num_open) memcpy(grown, f->open, f->num_open * sizeof *grown);
        f->open = grown;
        f->capacity = capacity;
    }
    for (size_t i = 0; i < harvest->num_candidates; i++) {
        const Candidate *one = &harvest->candidates[i];
        if (!one->priced && !candidate_is_covered(f, one)) f->open[f->num_open++] = *one;
    }
}

static void chunks_free(void *chunks) {
    arena_free(chunks);
    free(chunks);
}

// Takes over what a split holds; the chunks of its plans move into the search's arena.
static Status harvest_take(Frontier *f, Harvest *harvest) {
    f->stats.considered += harvest->considered;
    f->stats.pruned_by_memory += harvest->pruned_by_memory;
    if (harvest->num_candidates == 0) return status_ok();
    TRY(harvest_seed(f, harvest));
    candidates_keep(f, harvest);
    Arena *chunks = malloc(sizeof *chunks);
    if (!chunks) return status_error(STATUS_MACHINE, "out of memory");
    *chunks = harvest->chunks;
    harvest->chunks = (Arena){0};
    arena_own(&f->arena, chunks_free, chunks);
    return status_ok();
}

typedef struct {
    HarvestTask task;
    const int *splits;
    Harvest harvests[ROUND_SPLITS];
} Round;

static void round_work(void *context, int worker, int item) {
    (void)worker;
    Round *round = context;
    harvest_split(&round->task, round->splits[item], &round->harvests[item]);
}

static Status harvest_round(Frontier *f, int first) {
    Round round = {.splits = f->split_order + first};
    int num_splits = f->space.num_splits - first;
    if (num_splits > ROUND_SPLITS) num_splits = ROUND_SPLITS;
    round.task = (HarvestTask){.space = &f->space,
                               .goal = HARVEST_BOUND,
                               .loose = &f->loose,
                               .value_limit = INFINITY,
                               .deadline = &f->deadline,
                               .excludes = f->options->exhaustive ? NULL : is_covered,
                               .excludes_context = f};
    share_work(num_splits, f->options->num_threads, round_work, &round);
    Status status = status_ok();
    for (int i = 0; i < num_splits; i++) {
        if (round.harvests[i].cut_short) leave_out(f, &(Point){{0}});
        if (status.code == STATUS_OK) status = harvest_take(f, &round.harvests[i]);
        harvest_free(&round.harvests[i]);
    }
    return status;
}

static void progress_call(const Frontier *f, const char *what, int64_t done, int64_t total) {
    if (f->options->standing) *f->options->standing = (SearchStanding){INFINITY, 0};
    if (f->options->progress) f->options->progress(f->options->progress_context, what, done, total);
}

static Status frontier_run(Frontier *f) {
    for (int first = 0; first < f->space.num_splits; first += ROUND_SPLITS) {
        if (deadline_is_over(&f->deadline)) {
            leave_out(f, &(Point){{0}});
            break;
        }
        progress_call(f, "configurations of the frontier", f->stats.considered, 0);
        TRY(harvest_round(f, first));
    }
    candidates_sort_by_step(f->open, f->num_open);
    for (size_t i = 0; i < f->num_open; i++) {
        Candidate *one = &f->open[i];
        if (candidate_is_covered(f, one)) continue;
        if (deadline_is_over(&f->deadline)) {
            const Point point = bound_point(f, one->memory_bytes, one->step_time_s, one->busy_s);
            leave_out(f, &point);
            continue;
        }
        progress_call(f, "pricing the frontier", (int64_t)i, (int64_t)f->num_open);
        TRY(candidate_price(f, one));
    }
    f->stats.optimal = !f->stats.stopped_early;
    f->stats.pruned_by_bound = f->stats.considered - f->stats.pruned_by_memory - f->stats.priced;
    return status_ok();
}

// --- The result

static int compare_items(const void *a, const void *b) {
    const FrontierItem *x = a, *y = b;
    for (int k = 0; k < MAX_AXES; k++)
        if (x->point.value[k] != y->point.value[k])
            return x->point.value[k] < y->point.value[k] ? -1 : 1;
    return 0;
}

static void entries_build(const Frontier *f, Arena *arena, PlannerResult *out) {
    const int n = f->set.num_items;
    qsort(f->set.items, (size_t)n, sizeof *f->set.items, compare_items);
    PlannedEntry *entries = ARENA_ARRAY(arena, n, PlannedEntry);
    for (int i = 0; i < n; i++) {
        const FrontierItem *item = &f->set.items[i];
        PlannedEntry *entry = &entries[i];
        *entry = (PlannedEntry){
            .plan = plan_copy(&item->plan, arena), .estimate = item->estimate, .variant_of = -1};
        entry->loses_frac =
            item->point.value[AXIS_TIME] / f->set.items[0].point.value[AXIS_TIME] - 1;
        entry->within_noise_of_best =
            i == 0 || explain_within_noise(f->scenario, OBJECTIVE_THROUGHPUT, &entries[0], entry);
        entry->why = i == 0 ? "the fastest"
                     : f->options->robust
                         ? explain_robust(&entries[0], entry, arena)
                         : explain_loss(OBJECTIVE_THROUGHPUT, &entries[0], entry, arena);
    }
    out->entries = entries;
    out->num_entries = n;
    out->num_axes = f->set.num_axes;
}

// --- Set-up

// Where power while computing and waiting is the same or unknown, energy ranks like time.
static int count_axes(const Pool *pool) {
    const double watts = pool->power_watts_per_gpu;
    return watts > 0 && pool->gpu.idle_power_watts < watts ? 3 : 2;
}

static void frontier_init(Frontier *f, const PlannedEntry *fastest, double budget_s) {
    f->set.num_axes = count_axes(cluster_only_pool(&f->scenario->cluster));
    if (f->options->robust) f->raise_frac = robust_least_raise(f->scenario->calibration) - 1;
    deadline_start(&f->deadline, budget_s, f->options->end_soon);
    deadline_arm(&f->deadline);
    nondominated_add(&f->set, &(FrontierItem){.plan = fastest->plan,
                                              .estimate = fastest->estimate,
                                              .point = price_point(f, &fastest->estimate)});
    space_build(f->scenario, &f->arena, &f->space);
    f->split_bound_s = ARENA_ARRAY(&f->arena, f->space.num_splits, double);
    loose_build(&f->space, f->options->num_threads, &f->deadline, NULL, &f->loose,
                f->split_bound_s);
    f->split_order = loose_order(f->split_bound_s, f->space.num_splits, &f->arena);
}

Status planner_frontier(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                        PlannerResult *out) {
    TRY(scenario_refuse_unlike_groups(scenario, "plan --pareto"));
    PlannerOptions one = *options;
    one.top = 1;
    one.objective = OBJECTIVE_THROUGHPUT;
    one.exhaustive = false;
    one.worst_value = 0;
    const double start_s = clock_now_s();
    PlannerResult fastest;
    TRY(planner_search(scenario, &one, arena, &fastest));
    if (fastest.num_entries == 0) {
        *out = fastest;
        miss_narrow(scenario, options, arena, &out->miss);
        return status_ok();
    }
    const Scenario limited = planner_limited(scenario, options, arena);
    const double left_s = options->budget_s - (clock_now_s() - start_s);
    Frontier f = {.scenario = &limited, .options = options};
    frontier_init(&f, &fastest.entries[0], options->budget_s > 0 ? fmax(left_s, 1e-9) : 0);
    Status status = frontier_run(&f);
    PlannerResult result = {.robust = options->robust,
                            .fit_probability_frac = fastest.fit_probability_frac};
    if (status.code == STATUS_OK) entries_build(&f, arena, &result);
    result.stats = f.stats;
    result.stats.wanted = result.num_entries;
    result.stats.wall_s = clock_now_s() - start_s;
    nondominated_free(&f.set);
    loose_free(&f.loose);
    arena_free(&f.arena);
    if (status.code == STATUS_OK) *out = result;
    return status;
}
