#include "planner/groups/group_search.h"

#include "base/clock.h"
#include "costmodel/step/estimate.h"

#include "planner/groups/group_answer.h"
#include "planner/groups/group_heap.h"
#include "planner/groups/group_orders.h"
#include "planner/harvest/best.h"
#include "planner/space/space.h"
#include "planner/stages/group_configuration.h"
#include "planner/why/conflict.h"
#include "planner/why/explain.h"

#include <math.h>

enum {
    DEFAULT_TOP = 5,
    PROGRESS_EVERY = 64,
    ORDER_SHIFT = 48,
    FIRST_TRIM = 1 << 17, // open configurations, before some are priced to rule others out
    NUM_SEEDS = 64,       // of these, each time
};

// The groups in one order along the pipeline.
typedef struct {
    Scenario scenario; // limited
    GroupPricing pricing;
} GroupOrder;

typedef struct {
    const PlannerOptions *options;
    bool even;
    GroupOrder *orders; // [num_orders]
    int num_orders;
    GroupHeap open; // configurations that were neither priced nor ruled out
    size_t trim_at;
    int64_t num_settled; // priced, or without room
    Deadline deadline;
    Best best;
    double open_s; // no split that was left out is below
    SearchStats stats;
    Plan miss;
    RankMemory miss_memory;
    double missing_bytes;
    Arena arena;
} GroupSearch;

// --- Configurations

typedef struct {
    GroupSearch *search;
    int order;
} Collector;

static double limit_of(const GroupSearch *s) {
    return s->options->exhaustive ? INFINITY : best_value_limit(&s->best);
}

static bool family_collect(void *context, const SpaceFamily *family) {
    const Collector *c = context;
    GroupSearch *s = c->search;
    const double limit_s = limit_of(s);
    if (deadline_is_over(&s->deadline)) return false;
    for (int i = 0; i < family->num_plans; i++) {
        const GroupOpen open = {
            .plan = family->plans[i],
            .bound_s = group_configuration_mean_s(&s->orders[c->order].pricing, &family->plans[i]),
            .index = (int64_t)c->order << ORDER_SHIFT | s->stats.considered++};
        if (open.bound_s <= limit_s) group_heap_add(&s->open, &open, &s->arena);
    }
    return true;
}

static void progress_call(GroupSearch *s, const char *what, int64_t done, int64_t total,
                          double bound_s) {
    const bool known = s->best.num_items > 0;
    if (s->options->standing)
        *s->options->standing =
            (SearchStanding){known ? s->best.items[0].value : INFINITY, bound_s};
    if (s->options->progress) s->options->progress(s->options->progress_context, what, done, total);
}

// --- Prices

static GroupOrder *order_of(const GroupSearch *s, int64_t index) {
    return &s->orders[index >> ORDER_SHIFT];
}

static void split_take(GroupSearch *s, const GroupOpen *open, const GroupSplit *split) {
    s->open_s = fmin(s->open_s, split->open_s);
    if (split->verdict == GROUP_NO_ROOM) {
        s->stats.pruned_by_memory++;
        if (split->missing_bytes > 0) {
            s->miss = split->miss;
            s->miss_memory = split->miss_memory;
            s->missing_bytes = split->missing_bytes;
        }
    }
    if (split->verdict != GROUP_PRICED) return;
    s->stats.priced++;
    deadline_arm(&s->deadline);
    if (split->step_time_s == INFINITY) return;
    const Priced priced = {.candidate = {.plan = split->plan, .index = open->index},
                           .estimate = {.step_time_s = split->step_time_s,
                                        .memory = {.device_bytes = split->memory_bytes}},
                           .value = split->step_time_s};
    best_insert(&s->best, &priced);
}

// The next configuration that may be among the best; of the others only the first was asked for
// its own bound, which is dearer than that of the mean rank. NULL where there is none.
static const GroupOpen *next_open(GroupSearch *s, double limit_s) {
    while (s->open.num > 0 && s->open.items[0].bound_s <= limit_s) {
        GroupOpen *first = &s->open.items[0];
        if (first->bounded || deadline_is_over(&s->deadline)) return first;
        const double bound_s =
            group_configuration_bound_s(&order_of(s, first->index)->pricing, &first->plan, s->even);
        first->bounded = true;
        first->bound_s = fmax(first->bound_s, bound_s);
        group_heap_settle(&s->open);
    }
    return NULL;
}

// The next of them, until none is left that may be among the best.
//   most  of them; below 0: all
static Status configurations_price(GroupSearch *s, int most) {
    for (; most != 0; most--) {
        const GroupOpen *open = next_open(s, limit_of(s));
        if (!open) break;
        if (deadline_is_over(&s->deadline)) {
            s->stats.stopped_early = true;
            s->open_s = fmin(s->open_s, open->bound_s);
            break;
        }
        if (s->num_settled++ % PROGRESS_EVERY == 0)
            progress_call(s, "pricing", s->num_settled, s->stats.considered, open->bound_s);
        const GroupTask task = {.even = s->even,
                                .exhaustive = s->options->exhaustive,
                                .limit_s = limit_of(s),
                                .least_missing_bytes = s->missing_bytes,
                                .deadline = &s->deadline};
        GroupSplit split;
        TRY(group_configuration_split(&order_of(s, open->index)->pricing, &open->plan, &task,
                                      &s->arena, &split));
        split_take(s, open, &split);
        group_heap_drop(&s->open);
    }
    return status_ok();
}

// --- All of them

// Prices the most promising of many, so that others need not be kept: until as many as are wanted
// are known, most of which have no room, and then some. Of few only where somebody waits for the
// first.
static Status open_trim(GroupSearch *s) {
    const bool is_late = s->best.num_items == 0 && deadline_is_past(&s->deadline);
    if ((s->open.num < s->trim_at && !is_late) || s->options->exhaustive) return status_ok();
    while (s->best.num_items < s->best.top && s->open.num > 0 && !s->stats.stopped_early)
        TRY(configurations_price(s, NUM_SEEDS));
    TRY(configurations_price(s, NUM_SEEDS));
    group_heap_trim(&s->open, limit_of(s));
    s->trim_at = 2 * s->open.num > FIRST_TRIM ? 2 * s->open.num : FIRST_TRIM;
    return status_ok();
}

static Status configurations_collect(GroupSearch *s) {
    s->trim_at = FIRST_TRIM;
    for (int order = 0; order < s->num_orders; order++) {
        Collector c = {s, order};
        Space space;
        space_build(&s->orders[order].scenario, &s->arena, &space);
        for (int split = 0; split < space.num_splits; split++) {
            progress_call(s, "configurations", s->stats.considered, 0, 0);
            if (!space_visit(&space, split, &s->arena, family_collect, &c)) {
                s->stats.stopped_early = true;
                s->open_s = fmin(s->open_s, estimate_least_step_s(&s->orders[order].scenario));
                return status_ok();
            }
            TRY(open_trim(s));
        }
    }
    return status_ok();
}

// What was left out matters where it could be below the last of the best.
static void proof_set(GroupSearch *s) {
    const Best *best = &s->best;
    if (best->num_items == 0) return;
    const double last_s = best->items[best->num_items - 1].value;
    const bool full = best->num_items == best->top;
    s->stats.optimal = s->open_s == INFINITY || (full && s->open_s >= last_s);
    if (!s->stats.optimal) s->stats.gap_frac = fmax(0, 1 - s->open_s / best->items[0].value);
}

// --- The result

static const char *best_text(const GroupSearch *s, Arena *arena) {
    const long long considered = (long long)s->stats.considered;
    const char *of = s->even ? "with even stages" : "and of the splits of their layers";
    if (s->stats.optimal)
        return arena_printf(arena, "best of %lld configurations %s", considered, of);
    return arena_printf(arena,
                        "best of what was priced of %lld configurations %s; the rest is at most "
                        "%.1f %% better",
                        considered, of, s->stats.gap_frac * 100);
}

static Status entry_estimate(const Scenario *scenario, const Plan *plan, Arena *arena,
                             PlannedEntry *entry) {
    Arena scratch = {0};
    EstimateParts parts;
    entry->plan = plan_copy(plan, arena);
    const Status status = estimate_plan(scenario, plan, &scratch, &entry->estimate, &parts);
    if (status.code == STATUS_OK) {
        entry->shares = group_shares_make(scenario, plan, &parts, arena);
        entry->num_shares = scenario->cluster.num_pools;
    }
    arena_free(&scratch);
    return status;
}

static Status entries_build(const GroupSearch *s, Arena *arena, PlannerResult *out) {
    const int num = s->best.num_items;
    PlannedEntry *entries = ARENA_ARRAY(arena, num, PlannedEntry);
    for (int i = 0; i < num; i++) {
        const Candidate *candidate = &s->best.items[i].candidate;
        const Scenario *scenario = &order_of(s, candidate->index)->scenario;
        PlannedEntry *entry = &entries[i];
        TRY(entry_estimate(scenario, &candidate->plan, arena, entry));
        entry->loses_frac = entry->estimate.step_time_s / entries[0].estimate.step_time_s - 1;
        entry->within_noise_of_best =
            i == 0 || explain_within_noise(scenario, s->options->objective, &entries[0], entry);
        entry->variant_of = -1;
        for (int k = 0; k < i && entry->variant_of < 0; k++)
            if (plans_are_variants(&entries[k].plan, &entry->plan)) entry->variant_of = k;
        entry->why = i == 0 ? best_text(s, arena)
                            : explain_loss(s->options->objective, &entries[0], entry, arena);
    }
    out->entries = entries;
    out->num_entries = num;
    return status_ok();
}

static Status search_run(GroupSearch *s, const Scenario *scenario, Arena *arena,
                         PlannerResult *out) {
    TRY(configurations_collect(s));
    if (s->stats.considered == 0 && !s->stats.stopped_early) return conflict_explain(scenario);
    TRY(configurations_price(s, -1));
    s->stats.pruned_by_bound = s->stats.considered - s->stats.pruned_by_memory - s->stats.priced;
    proof_set(s);
    TRY(entries_build(s, arena, out));
    if (out->num_entries == 0 && s->missing_bytes > 0)
        out->miss = (ClosestMiss){.plan = plan_copy(&s->miss, arena),
                                  .memory = s->miss_memory,
                                  .missing_bytes = s->missing_bytes};
    return status_ok();
}

// --- Set-up

static Status options_check(const Scenario *scenario, const PlannerOptions *options) {
    if (options->robust) return scenario_refuse_unlike_groups(scenario, "plan --robust");
    if (options->objective == OBJECTIVE_ENERGY)
        return scenario_refuse_unlike_groups(scenario, "plan --objective energy");
    if (options->objective == OBJECTIVE_MEMORY)
        return scenario_refuse_unlike_groups(scenario, "plan --objective memory");
    if (options->objective != OBJECTIVE_COST) return status_ok();
    for (int i = 0; i < scenario->cluster.num_pools; i++) {
        const Pool *pool = &scenario->cluster.pools[i];
        if (pool->price_usd_per_gpu_hour > 0) continue;
        return status_at(STATUS_INVALID, scenario->file, "cluster.groups",
                         "price_usd_per_gpu_hour is unknown for %s; needed for objective cost",
                         pool->gpu.name);
    }
    return status_ok();
}

static Status search_once(const Scenario *scenario, const PlannerOptions *options, bool even,
                          Arena *arena, PlannerResult *out) {
    const double start_s = clock_now_s();
    GroupSearch s = {.options = options, .even = even, .open_s = INFINITY};
    const int *const *orders;
    s.num_orders = group_orders(scenario, &s.arena, &orders);
    s.orders = ARENA_ARRAY(&s.arena, s.num_orders, GroupOrder);
    for (int i = 0; i < s.num_orders; i++) {
        s.orders[i].scenario = group_limited(scenario, options, orders[i], &s.arena);
        s.orders[i].pricing = group_pricing_start(&s.orders[i].scenario);
    }
    deadline_start(&s.deadline, options->budget_s, options->end_soon);
    if (options->extra) deadline_arm(&s.deadline);
    s.stats.wanted = even ? 1 : options->top > 0 ? options->top : DEFAULT_TOP;
    s.best = (Best){.top = s.stats.wanted, .distinct = options->distinct};
    s.best.items = ARENA_ARRAY(&s.arena, s.best.top, Priced);
    PlannerResult result = {.objective = options->objective,
                            .fit_probability_frac = planner_fit_probability(options)};
    Status status = search_run(&s, scenario, arena, &result);
    result.stats = s.stats;
    result.stats.wall_s = clock_now_s() - start_s;
    for (int i = 0; i < s.num_orders; i++) group_pricing_free(&s.orders[i].pricing);
    arena_free(&s.arena);
    if (status.code == STATUS_OK) *out = result;
    return status;
}

static Status orders_check(const Scenario *scenario) {
    Arena scratch = {0};
    const int *const *orders;
    const int num_orders = group_orders(scenario, &scratch, &orders);
    arena_free(&scratch);
    if (num_orders > 0) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "cluster.groups",
                     "more than %d orders of %d groups are legal, but plan does not support them "
                     "yet; expected parallel.placement to state one",
                     MAX_GROUP_ORDERS, scenario->cluster.num_pools);
}

static Status orders_search(const Scenario *scenario, const PlannerOptions *options, bool even,
                            Arena *arena, PlannerResult *out) {
    TRY(options_check(scenario, options));
    TRY(orders_check(scenario));
    return search_once(scenario, options, even, arena, out);
}

Status group_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    PlannerResult *out) {
    return orders_search(scenario, options, false, arena, out);
}

Status group_search_even(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                         PlannerResult *out) {
    return orders_search(scenario, options, true, arena, out);
}
