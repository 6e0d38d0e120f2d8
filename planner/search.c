#include "planner/conflict.h"
#include "planner/explain.h"
#include "planner/harvest.h"
#include "planner/miss.h"
#include "planner/planner.h"
#include "planner/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const OBJECTIVE_NAMES[NUM_OBJECTIVES + 1] = {"throughput", "cost", "energy", "memory",
                                                         NULL};

enum { DEFAULT_TOP = 5, PROGRESS_EVERY = 64 };

// Bounds and prices are sums of the same seconds in another order: a bound counts as worse only
// beyond their rounding.
static const double ROUNDING_FRAC = 1e-9;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// --- The best K so far

typedef struct {
    const Candidate *candidate;
    Estimate estimate;
    double value;
} Priced;

typedef struct {
    Priced *items; // [num_items], best first
    int num_items, top;
} Best;

static int compare_doubles(double a, double b) {
    return (a > b) - (a < b);
}

static int compare_priced(const Priced *a, const Priced *b) {
    int order = compare_doubles(a->value, b->value);
    if (order == 0) order = compare_doubles(a->estimate.step_time_s, b->estimate.step_time_s);
    if (order == 0)
        order = compare_doubles(a->estimate.memory.device_bytes, b->estimate.memory.device_bytes);
    if (order == 0) order = a->candidate->index < b->candidate->index ? -1 : 1;
    return order;
}

static void best_insert(Best *best, const Priced *priced) {
    int place = best->num_items;
    while (place > 0 && compare_priced(priced, &best->items[place - 1]) < 0) place--;
    if (place == best->top) return;
    if (best->num_items < best->top) best->num_items++;
    memmove(&best->items[place + 1], &best->items[place],
            (size_t)(best->num_items - 1 - place) * sizeof *best->items);
    best->items[place] = *priced;
}

// Whether a candidate with these bounds cannot enter the best K any more.
static bool best_excludes(const Best *best, const Candidate *candidate) {
    if (best->num_items < best->top) return false;
    const Priced *last = &best->items[best->top - 1];
    if (candidate->value * (1 - ROUNDING_FRAC) > last->value) return true;
    return candidate->value >= last->value &&
           candidate->step_time_s * (1 - ROUNDING_FRAC) > last->estimate.step_time_s;
}

// --- Pricing

static int compare_candidates(const void *a, const void *b) {
    const Candidate *x = a, *y = b;
    int order = compare_doubles(x->value, y->value);
    if (order == 0) order = compare_doubles(x->step_time_s, y->step_time_s);
    if (order == 0) order = x->index < y->index ? -1 : 1;
    return order;
}

typedef struct {
    const Scenario *scenario;
    const PlannerOptions *options;
    double start_s;
} Search;

// Prices in the order of the bounds. Candidates that cannot enter are passed over one by one: for
// OBJECTIVE_MEMORY the next may still be a tie that is faster.
static Status price_all(const Search *search, const Harvest *harvest, Best *best,
                        SearchStats *stats) {
    const PlannerOptions *options = search->options;
    Arena scratch = {0};
    Status status = status_ok();
    stats->optimal = true;
    for (size_t i = 0; i < harvest->num_candidates; i++) {
        const Candidate *candidate = &harvest->candidates[i];
        if (!options->exhaustive && best_excludes(best, candidate)) continue;
        bool late = options->budget_s > 0 && now_s() - search->start_s > options->budget_s;
        if (late && best->num_items > 0) {
            stats->optimal = false;
            stats->gap_frac = fmax(0, 1 - candidate->value / best->items[0].value);
            break;
        }
        if (options->progress && i % PROGRESS_EVERY == 0)
            options->progress(options->progress_context, "pricing", (int64_t)i,
                              (int64_t)harvest->num_candidates);
        Priced priced = {.candidate = candidate};
        arena_reset(&scratch);
        status =
            estimate_plan(search->scenario, &candidate->plan, &scratch, &priced.estimate, NULL);
        if (status.code != STATUS_OK) break;
        priced.value = objective_value(options->objective, &priced.estimate);
        best_insert(best, &priced);
        stats->priced++;
    }
    arena_free(&scratch);
    return status;
}

// --- The result

static Plan plan_copy(const Plan *plan, Arena *arena) {
    Plan copy = *plan;
    PlanChunk *chunks = ARENA_ARRAY(arena, plan->num_chunks, PlanChunk);
    memcpy(chunks, plan->chunks, (size_t)plan->num_chunks * sizeof *chunks);
    copy.chunks = chunks;
    return copy;
}

static void entries_build(const Scenario *scenario, PlanObjective objective, const Best *best,
                          Arena *arena, PlannerResult *out) {
    PlannedEntry *entries = ARENA_ARRAY(arena, best->num_items, PlannedEntry);
    for (int i = 0; i < best->num_items; i++) {
        const Priced *priced = &best->items[i];
        PlannedEntry *entry = &entries[i];
        entry->plan = plan_copy(&priced->candidate->plan, arena);
        entry->estimate = priced->estimate;
        entry->loses_frac = priced->value / best->items[0].value - 1;
        entry->within_noise_of_best =
            i == 0 || explain_within_noise(scenario, objective, &entries[0], entry);
        entry->why = i == 0 ? arena_printf(arena, "best of %lld legal configurations",
                                           (long long)out->stats.considered)
                            : explain_loss(objective, &entries[0], entry, arena);
    }
    out->entries = entries;
    out->num_entries = best->num_items;
}

static Status search_price(const Search *search, Harvest *harvest, Arena *arena,
                           PlannerResult *out) {
    const PlannerOptions *options = search->options;
    qsort(harvest->candidates, harvest->num_candidates, sizeof *harvest->candidates,
          compare_candidates);
    Best best = {.top = options->top > 0 ? options->top : DEFAULT_TOP};
    if ((size_t)best.top > harvest->num_candidates) best.top = (int)harvest->num_candidates;
    Arena kept = {0};
    best.items = ARENA_ARRAY(&kept, best.top, Priced);
    Status status = price_all(search, harvest, &best, &out->stats);
    out->stats.pruned_by_bound = (int64_t)harvest->num_candidates - out->stats.priced;
    if (status.code == STATUS_OK)
        entries_build(search->scenario, options->objective, &best, arena, out);
    arena_free(&kept);
    return status;
}

static Status objective_check(const Scenario *scenario, PlanObjective objective) {
    const Cluster *cluster = &scenario->cluster;
    if (objective == OBJECTIVE_COST && cluster->price_usd_per_gpu_hour <= 0)
        return status_at(STATUS_INVALID, scenario->file, "cluster.price_usd_per_gpu_hour",
                         "unknown for %s; needed for objective cost", cluster->gpu.name);
    if (objective == OBJECTIVE_ENERGY && cluster->power_watts_per_gpu <= 0)
        return status_at(STATUS_INVALID, scenario->file, "cluster.power_watts_per_gpu",
                         "unknown for %s; needed for objective energy", cluster->gpu.name);
    return status_ok();
}

Status planner_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                      PlannerResult *out) {
    TRY(objective_check(scenario, options->objective));
    Search search = {.scenario = scenario, .options = options, .start_s = now_s()};
    PlannerResult result = {.objective = options->objective};
    Arena scratch = {0};
    Space space;
    space_build(scenario, &scratch, &space);
    Harvest harvest;
    harvest_run(&space, HARVEST_BOUND, options, &harvest);
    result.stats.considered = harvest.considered;
    result.stats.pruned_by_memory = harvest.pruned_by_memory;

    Status status = status_ok();
    if (harvest.considered == 0) {
        status = conflict_explain(scenario, options);
    } else if (harvest.num_candidates == 0) {
        result.stats.optimal = true;
        result.miss.plan = plan_copy(&harvest.miss, arena);
        result.miss.memory = harvest.miss_memory;
        result.miss.missing_bytes = harvest.missing_bytes;
        if (!options->brief) result.miss.would_fit_if = miss_would_fit_if(scenario, options, arena);
    } else {
        status = search_price(&search, &harvest, arena, &result);
    }
    harvest_free(&harvest);
    arena_free(&scratch);
    result.stats.wall_s = now_s() - search.start_s;
    if (status.code == STATUS_OK) *out = result;
    return status;
}
