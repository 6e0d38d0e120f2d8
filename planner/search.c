// The search: splits in the order of their loose bounds, in rounds that threads share; what fits
// and may still be among the best is kept, then priced in the order of the tight bounds.
#include "base/student.h"
#include "planner/best.h"
#include "planner/conflict.h"
#include "planner/group_search.h"
#include "planner/harvest.h"
#include "planner/loose.h"
#include "planner/miss.h"
#include "planner/planner.h"
#include "planner/pricing.h"
#include "planner/relax.h"
#include "planner/robust.h"
#include "planner/search_entries.h"
#include "planner/share.h"
#include "planner/space.h"
#include "workload/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const OBJECTIVE_NAMES[NUM_OBJECTIVES + 1] = {"throughput", "cost", "energy", "memory",
                                                         NULL};

enum {
    DEFAULT_TOP = 5,
    TIES_FACTOR = 4, // of the least memory there are many that only take longer: K among 4 K
    // The limit is the same for all splits of a round: results do not depend on which thread walks
    // which. Until something is priced there is none.
    FIRST_SEEDS = 4,
    FIRST_ROUND_SPLITS = 4,
    ROUND_SPLITS = 64,
};

typedef struct {
    const Scenario *scenario;
    const PlannerOptions *options;
    Deadline deadline;
    double raise_frac; // robust: the upper end is above the step by at least this
    double open_value; // the least bound of the candidates kept and not priced
    Space space;
    LooseCosts loose;
    double *split_bound_s; // [num_splits]
    int *split_order;      // [num_splits] by loose bound
    Candidate *candidates; // kept so far
    size_t num_candidates, capacity;
    Pricing pricing;
    SearchStats stats;
    double left_value; // least objective of what the budget left out; INFINITY for nothing
    Plan miss;
    RankMemory miss_memory;
    double missing_bytes;
    Arena arena;
} Search;

static void progress_call(const Search *s, const char *what, int64_t done, int64_t total,
                          double bound_value) {
    SearchStanding *standing = s->options->standing;
    if (standing)
        *standing = (SearchStanding){.best_value = s->pricing.quick.num_items > 0
                                                       ? s->pricing.quick.items[0].value
                                                       : INFINITY,
                                     .bound_value = bound_value};
    if (s->options->progress) s->options->progress(s->options->progress_context, what, done, total);
}

// --- Pricing

static int compare_candidates(const void *a, const void *b) {
    return candidate_compare(a, b);
}

static void candidates_sort(Candidate *candidates, size_t num_candidates) {
    if (num_candidates > 1)
        qsort(candidates, num_candidates, sizeof *candidates, compare_candidates);
}

// The budget is used up; nothing left out has a lower objective than this.
static void stop_early(Search *s, double unpriced_value) {
    s->stats.stopped_early = true;
    s->left_value = fmin(s->left_value, unpriced_value);
}

// What the search knows of what it left out.
static void proof_set(Search *s) {
    s->stats.optimal =
        s->left_value > best_value_limit(&s->pricing.best) || !s->stats.stopped_early;
    if (!s->stats.optimal && s->pricing.best.num_items > 0)
        s->stats.gap_frac = fmax(0, 1 - s->left_value / s->pricing.best.items[0].value);
}

// What became of the candidates that stood for all splits of their layers.
static void splits_count(Search *s) {
    const Pricing *pricing = &s->pricing;
    s->stats.priced -= pricing->num_without_room + pricing->num_above;
    s->stats.pruned_by_memory += pricing->num_without_room;
    if (pricing->missing_bytes > 0 &&
        (s->missing_bytes == 0 || pricing->missing_bytes < s->missing_bytes)) {
        s->miss = pricing->miss;
        s->miss_memory = pricing->miss_memory;
        s->missing_bytes = pricing->missing_bytes;
    }
    if (pricing->best.num_items > 0) {
        const double best_s = pricing->best.items[0].estimate.step_time_s;
        s->stats.splits_gap_frac = fmax(0, 1 - pricing->open_s / best_s);
    }
}

// The next candidates in the order of the bounds, from *next on. One that cannot enter is passed
// over: the next may still be a tie with a better step time.
static size_t next_candidates(const Search *s, size_t *next, Candidate **list) {
    size_t num = 0;
    for (; *next < s->num_candidates && num < PRICING_ROUND; ++*next) {
        Candidate *candidate = &s->candidates[*next];
        if (candidate->priced) continue;
        if (!s->options->exhaustive) {
            if (candidate->value > best_value_limit(&s->pricing.quick)) break;
            if (best_excludes(&s->pricing.quick, candidate)) continue;
        }
        list[num++] = candidate;
    }
    return num;
}

static Status price_all(Search *s) {
    Candidate *list[PRICING_ROUND];
    candidates_sort(s->candidates, s->num_candidates);
    for (size_t next = 0;;) {
        const size_t num = next_candidates(s, &next, list);
        if (num == 0) return status_ok();
        if (s->pricing.quick.num_items > 0 && deadline_is_over(&s->deadline)) {
            stop_early(s, list[0]->value);
            return status_ok();
        }
        progress_call(s, "pricing", (int64_t)(next - num), (int64_t)s->num_candidates,
                      list[0]->value);
        s->stats.priced += (int64_t)num;
        TRY(pricing_run(&s->pricing, list, num));
    }
}

// --- Rounds

typedef struct {
    HarvestTask task;
    const int *splits; // [num_splits] of this round
    int num_splits;
    Harvest *harvests; // [num_splits]
} Round;

static void round_work(void *context, int worker, int item) {
    (void)worker;
    Round *round = context;
    Harvest *harvest = &round->harvests[item];
    harvest_split(&round->task, round->splits[item], harvest);
    candidates_sort(harvest->candidates, harvest->num_candidates);
}

static void chunks_free(void *chunks) {
    arena_free(chunks);
    free(chunks);
}

static void candidates_append(Search *s, const Harvest *harvest) {
    size_t needed = s->num_candidates + harvest->num_candidates;
    if (needed > s->capacity) {
        size_t capacity = 2 * needed;
        Candidate *grown = ARENA_ARRAY(&s->arena, capacity, Candidate);
        if (s->num_candidates) memcpy(grown, s->candidates, s->num_candidates * sizeof *grown);
        s->candidates = grown;
        s->capacity = capacity;
    }
    double limit = s->options->exhaustive ? INFINITY : best_value_limit(&s->pricing.quick);
    for (size_t i = 0; i < harvest->num_candidates; i++) {
        if (harvest->candidates[i].value > limit) continue;
        s->candidates[s->num_candidates++] = harvest->candidates[i];
        if (!harvest->candidates[i].priced)
            s->open_value = fmin(s->open_value, harvest->candidates[i].value);
    }
}

static int compare_listed(const void *a, const void *b) {
    return candidate_compare(*(Candidate *const *)a, *(Candidate *const *)b);
}

// The most promising first, a few at a time: what they take is the limit of those behind them.
static Status seeds_price(Search *s, Candidate **list, size_t num) {
    size_t num_left = 0, most = FIRST_SEEDS;
    if (num > 1) qsort(list, num, sizeof *list, compare_listed);
    for (size_t i = 0; i < num; i += num_left, most *= 2) {
        Candidate *some[PRICING_ROUND];
        num_left = num - i < most ? num - i : most;
        size_t num_some = 0;
        for (size_t k = i; k < i + num_left; k++)
            if (!best_excludes(&s->pricing.quick, list[k])) some[num_some++] = list[k];
        s->stats.priced += (int64_t)num_some;
        TRY(pricing_run(&s->pricing, some, num_some));
    }
    return status_ok();
}

// Prices the most promising candidates of a round's splits, so that the limit of the next round is
// low: until K are known the first K of each, then one of each that may enter.
// With a budget these are what the search can answer with.
static Status round_seed(Search *s, const Round *round) {
    Candidate *list[PRICING_ROUND];
    size_t num = 0;
    if (s->options->exhaustive && s->options->budget_s <= 0) return status_ok();
    if (s->pricing.quick.num_items > 0 && deadline_is_over(&s->deadline)) return status_ok();
    const int wanted = s->pricing.quick.num_items < s->pricing.quick.top ? s->pricing.quick.top : 1;
    for (int i = 0; i < round->num_splits; i++) {
        const Harvest *harvest = &round->harvests[i];
        for (size_t k = 0; k < harvest->num_candidates && k < (size_t)wanted; k++)
            if (num < PRICING_ROUND && !best_excludes(&s->pricing.quick, &harvest->candidates[k]))
                list[num++] = &harvest->candidates[k];
    }
    return seeds_price(s, list, num);
}

// Takes over what a split holds; the chunks of its plans move into the search's arena.
static Status harvest_take(Search *s, Harvest *harvest) {
    s->stats.considered += harvest->considered;
    s->stats.pruned_by_memory += harvest->pruned_by_memory;
    s->stats.any_split |= harvest->any_split;
    candidates_append(s, harvest);
    bool misses_less = harvest->missing_bytes > 0 &&
                       (s->missing_bytes == 0 || harvest->missing_bytes < s->missing_bytes);
    if (misses_less) {
        s->miss = harvest->miss;
        s->miss_memory = harvest->miss_memory;
        s->missing_bytes = harvest->missing_bytes;
    }
    if (harvest->num_candidates > 0 || misses_less) {
        Arena *chunks = malloc(sizeof *chunks);
        if (!chunks) return status_error(STATUS_MACHINE, "out of memory");
        *chunks = harvest->chunks;
        harvest->chunks = (Arena){0};
        arena_own(&s->arena, chunks_free, chunks);
    }
    return status_ok();
}

// The least objective of a split's configurations.
static double split_value(const Search *s, int split) {
    return objective_bound(s->scenario, s->options->objective, s->split_bound_s[split], 0) *
           (1 + s->raise_frac);
}

// Recomputing more layers takes longer, and energy with it; the interval's upper end may not say
// so.
static bool first_layers_by_time(const PlannerOptions *options) {
    return !options->exhaustive && !options->robust && options->objective != OBJECTIVE_MEMORY;
}

static bool is_uncounted(const PlannerOptions *options) {
    return (options->uncounted || options->only_better) && !options->exhaustive;
}

// Whether that nothing was considered does not say that nothing is legal.
static bool may_be_empty(const PlannerOptions *options) {
    return options->only_better || (is_uncounted(options) && options->worst_value > 0);
}

// Whether nothing may fit, as far as is known, and somebody wants to know by how much.
static bool wants_miss(const Search *s) {
    return s->pricing.quick.num_items == 0 && !may_be_empty(s->options);
}

// Walks the splits from *next on, and sets it behind them.
static Status harvest_round(Search *s, int *next) {
    const int first = *next;
    Harvest harvests[ROUND_SPLITS] = {0};
    Round round = {.splits = s->split_order + first, .harvests = harvests};
    const int most = first == 0 ? FIRST_ROUND_SPLITS : ROUND_SPLITS;
    round.num_splits = s->space.num_splits - first;
    if (round.num_splits > most) round.num_splits = most;
    *next += round.num_splits;
    round.task = (HarvestTask){.space = &s->space,
                               .goal = HARVEST_BOUND,
                               .objective = s->options->objective,
                               .first_layers_by_time = first_layers_by_time(s->options),
                               .raise_frac = s->raise_frac,
                               .loose = &s->loose,
                               .value_limit = INFINITY,
                               .uncounted = is_uncounted(s->options),
                               .wants_miss = wants_miss(s),
                               .deadline = &s->deadline};
    if (!s->options->exhaustive) round.task.value_limit = best_value_limit(&s->pricing.quick);
    share_work(round.num_splits, s->options->num_threads, round_work, &round);
    Status status = round_seed(s, &round);
    for (int i = 0; i < round.num_splits; i++) {
        if (harvests[i].cut_short) stop_early(s, split_value(s, round.splits[i]));
        if (status.code == STATUS_OK) status = harvest_take(s, &harvests[i]);
        harvest_free(&harvests[i]);
    }
    return status;
}

// No split from here on can hold a plan that is wanted.
static bool rest_is_unwanted(const Search *s, int first) {
    return is_uncounted(s->options) &&
           split_value(s, s->split_order[first]) > best_value_limit(&s->pricing.quick);
}

static Status harvest_all(Search *s) {
    for (int first = 0; first < s->space.num_splits && !rest_is_unwanted(s, first);) {
        if (deadline_is_over(&s->deadline)) {
            stop_early(s, split_value(s, s->split_order[first]));
            break;
        }
        progress_call(s, "configurations", s->stats.considered, 0,
                      fmin(s->open_value, split_value(s, s->split_order[first])));
        TRY(harvest_round(s, &first));
    }
    return status_ok();
}

// --- The result

static void miss_build(const Search *s, Arena *arena, PlannerResult *out) {
    out->miss = (ClosestMiss){.plan = plan_copy(&s->miss, arena),
                              .memory = s->miss_memory,
                              .missing_bytes = s->missing_bytes};
    if (!s->options->brief)
        out->miss.would_fit_if = miss_would_fit_if(s->scenario, s->options, arena);
}

static Status search_run(Search *s, Arena *arena, PlannerResult *out) {
    TRY(harvest_all(s));
    if (s->stats.considered == 0 && !may_be_empty(s->options)) return conflict_explain(s->scenario);
    TRY(price_all(s));
    TRY(pricing_finish(&s->pricing));
    proof_set(s);
    splits_count(s);
    s->stats.pruned_by_bound = s->stats.considered - s->stats.pruned_by_memory - s->stats.priced;
    const SearchFound found = {s->scenario, s->options, &s->stats, &s->pricing.best};
    if (s->pricing.best.num_items > 0)
        search_entries(&found, arena, out);
    else if (s->missing_bytes > 0)
        miss_build(s, arena, out);
    return status_ok();
}

// --- Set-up

// Constraints that are legal, but that nothing acts upon yet.
static Status constraints_check(const Scenario *scenario) {
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

static Best best_start(const Search *s, Arena *arena) {
    Best best = {.top = s->stats.wanted,
                 .distinct = s->options->distinct,
                 .worst_value = s->options->worst_value};
    if (s->options->objective == OBJECTIVE_MEMORY && best.distinct) best.top *= TIES_FACTOR;
    best.items = ARENA_ARRAY(arena, best.top, Priced);
    return best;
}

static Pricing pricing_start(Search *s) {
    return (Pricing){.scenario = s->scenario,
                     .objective = s->options->objective,
                     .num_threads = s->options->num_threads,
                     .exhaustive = s->options->exhaustive,
                     .robust = s->options->robust,
                     .deadline = &s->deadline,
                     .open_s = INFINITY,
                     .quick = best_start(s, &s->arena),
                     .best = best_start(s, &s->arena),
                     .arena = &s->arena};
}

// Where the search may leave GPUs idle, or asks how many are needed, jobs are of several sizes.
static const PriceSource *prices_of(const Scenario *scenario, const PlannerOptions *options) {
    const PriceSource *source = options->prices;
    return source && source->num_gpus == scenario->cluster.num_gpus ? source : NULL;
}

static Status search_once(const Scenario *limited, const PlannerOptions *options, Arena *arena,
                          PlannerResult *out) {
    const double start_s = monotonic_s();
    Search search = {
        .scenario = limited, .options = options, .left_value = INFINITY, .open_value = INFINITY};
    if (options->robust) search.raise_frac = robust_least_raise(limited->calibration) - 1;
    deadline_start(&search.deadline, options->budget_s, options->end_soon);
    search.stats.wanted = options->top > 0 ? options->top : DEFAULT_TOP;
    search.pricing = pricing_start(&search);
    space_build(limited, &search.arena, &search.space);
    search.space.any_split = options->objective != OBJECTIVE_MEMORY;
    search.split_bound_s = ARENA_ARRAY(&search.arena, search.space.num_splits, double);
    loose_build(&search.space, options->num_threads, &search.deadline, prices_of(limited, options),
                &search.loose, search.split_bound_s);
    search.stats.loose_bound_s = search.space.num_splits > 0 ? INFINITY : 0;
    for (int i = 0; i < search.space.num_splits; i++)
        search.stats.loose_bound_s = fmin(search.stats.loose_bound_s, search.split_bound_s[i]);
    search.split_order = loose_order(search.split_bound_s, search.space.num_splits, &search.arena);

    PlannerResult result = {.objective = options->objective,
                            .robust = options->robust,
                            .fit_probability_frac = planner_fit_probability(options)};
    Status status = search_run(&search, arena, &result);
    loose_free(&search.loose);
    arena_free(&search.arena);
    if (status.code != STATUS_OK) return status;
    result.stats = search.stats;
    result.stats.wall_s = monotonic_s() - start_s;
    *out = result;
    return status;
}

double planner_fit_probability(const PlannerOptions *options) {
    return options->fit_probability_frac > 0 ? options->fit_probability_frac
                                             : FIT_PROBABILITY_DEFAULT_FRAC;
}

Scenario planner_limited(const Scenario *scenario, const PlannerOptions *options) {
    Scenario limited = *scenario;
    double *available = &limited.cluster.gpu.memory_available_bytes;
    if (options->max_memory_bytes > 0) *available = fmin(*available, options->max_memory_bytes);
    limited.fit_deviates = student_quantile(planner_fit_probability(options));
    return limited;
}

Status planner_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                      PlannerResult *out) {
    TRY(constraints_check(scenario));
    if (scenario->cluster.groups) return group_search(scenario, options, arena, out);
    TRY(objective_check(scenario, options->objective));
    const Scenario limited = planner_limited(scenario, options);
    if (options->worst_value <= 0) return search_once(&limited, options, arena, out);
    PlannerOptions first = *options;
    first.brief = true;
    TRY(search_once(&limited, &first, arena, out));
    if (out->num_entries > 0 || options->brief) return status_ok();
    // That something fits, but none that is wanted, is no miss.
    if (relax_reaches(&limited, HARVEST_FIT, options->num_threads, arena, NULL)) {
        out->miss = (ClosestMiss){0};
        return status_ok();
    }
    return search_once(&limited, options, arena, out);
}
