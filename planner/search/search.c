// The search: splits in the order of their loose bounds, in rounds that threads share; what fits
// and may still be among the best is kept, then priced in the order of the tight bounds.
#include "planner/search/search.h"

#include "base/clock.h"
#include "base/student.h"
#include "planner/harvest/best.h"
#include "planner/harvest/loose.h"
#include "planner/planner.h"
#include "planner/search/pricing.h"
#include "planner/search/search_check.h"
#include "planner/search/search_entries.h"
#include "planner/search/search_state.h"
#include "planner/search/shortlist.h"
#include "planner/space/space.h"
#include "planner/why/conflict.h"
#include "planner/why/miss.h"
#include "planner/why/relax.h"
#include "planner/why/robust.h"

#include <math.h>
#include <string.h>

const char *const OBJECTIVE_NAMES[NUM_OBJECTIVES + 1] = {"throughput", "cost", "energy", "memory",
                                                         NULL};

enum {
    DEFAULT_TOP = 5,
    TIES_FACTOR = 4, // of the least memory there are many that only take longer: K among 4 K
};

void search_progress(const Search *s, const char *what, int64_t done, int64_t total,
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

void search_stop_early(Search *s, double unpriced_value) {
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
        const bool may_end = s->pricing.quick.num_items > 0 || s->options->extra;
        if (may_end && deadline_is_over(&s->deadline)) {
            search_stop_early(s, list[0]->value);
            return status_ok();
        }
        search_progress(s, "pricing", (int64_t)(next - num), (int64_t)s->num_candidates,
                        list[0]->value);
        s->stats.priced += (int64_t)num;
        TRY(pricing_run(&s->pricing, list, num));
    }
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
    TRY(search_harvest(s));
    const bool none = s->stats.considered == 0 && !s->stats.stopped_early;
    if (none && !search_may_be_empty(s->options)) return conflict_explain(s->scenario);
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

static void search_start(const Scenario *limited, const PlannerOptions *options, Search *search) {
    *search = (Search){
        .scenario = limited, .options = options, .left_value = INFINITY, .open_value = INFINITY};
    if (options->robust) search->raise_frac = robust_least_raise(limited->calibration) - 1;
    deadline_start(&search->deadline, options->budget_s, options->end_soon);
    if (options->extra) deadline_arm(&search->deadline);
    search->stats.wanted = options->top > 0 ? options->top : DEFAULT_TOP;
    search->pricing = pricing_start(search);
}

// All configurations, with the loose bounds of their splits.
static void search_all_open(Search *s) {
    const Scenario *limited = s->scenario;
    const PlannerOptions *options = s->options;
    space_build(limited, &s->arena, &s->space);
    s->space.any_split = options->objective != OBJECTIVE_MEMORY;
    s->split_bound_s = ARENA_ARRAY(&s->arena, s->space.num_splits, double);
    loose_build(&s->space, options->num_threads, &s->deadline, prices_of(limited, options),
                &s->loose, s->split_bound_s);
    s->stats.loose_bound_s = s->space.num_splits > 0 ? INFINITY : 0;
    for (int i = 0; i < s->space.num_splits; i++)
        s->stats.loose_bound_s = fmin(s->stats.loose_bound_s, s->split_bound_s[i]);
    s->split_order = loose_order(s->split_bound_s, s->space.num_splits, &s->arena);
}

// Those of a list only, which are bounded already.
static void search_listed_open(Search *s, const ShortlistPart *list) {
    s->candidates = ARENA_ARRAY(&s->arena, list->num_candidates, Candidate);
    if (list->num_candidates)
        memcpy(s->candidates, list->candidates, list->num_candidates * sizeof *s->candidates);
    s->num_candidates = list->num_candidates;
    s->stats.considered = (int64_t)list->num_candidates;
    s->stats.loose_bound_s = list->loose_bound_s;
    s->stats.any_split = list->any_split;
}

// Runs a search whose configurations are open, and frees it.
//   holds  false where the list does not hold for this job; NULL: there is none
static Status search_close(Search *search, const ShortlistPart *list, double start_s, Arena *arena,
                           bool *holds, PlannerResult *out) {
    const PlannerOptions *options = search->options;
    PlannerResult result = {.objective = options->objective,
                            .robust = options->robust,
                            .fit_probability_frac = planner_fit_probability(options)};
    Status status = search_run(search, arena, &result);
    if (list) *holds = shortlist_holds(list, search->candidates);
    result.stats = search->stats;
    loose_free(&search->loose);
    arena_free(&search->arena);
    if (status.code != STATUS_OK) return status;
    result.stats.wall_s = clock_now_s() - start_s;
    *out = result;
    return status;
}

static Status search_once(const Scenario *limited, const PlannerOptions *options, Arena *arena,
                          PlannerResult *out) {
    const double start_s = clock_now_s();
    Search search;
    search_start(limited, options, &search);
    search_all_open(&search);
    return search_close(&search, NULL, start_s, arena, NULL, out);
}

//   answers  whether the best of the list is the best of all
static Status search_listed(const Scenario *limited, const PlannerOptions *options,
                            const ShortlistPart *list, Arena *arena, bool *answers,
                            PlannerResult *out) {
    const double start_s = clock_now_s(), limit_s = shortlist_limit_s(options->shortlist);
    PlannerOptions listed = *options;
    Search search;
    listed.only_better = true; // an empty list is no conflict
    search_start(limited, &listed, &search);
    search_listed_open(&search, list);
    TRY(search_close(&search, list, start_s, arena, answers, out));
    double last_s = options->worst_value > 0 && options->brief ? options->worst_value : INFINITY;
    if (out->num_entries == out->stats.wanted)
        last_s = out->entries[out->num_entries - 1].estimate.step_time_s;
    *answers = *answers && last_s <= limit_s;
    return status_ok();
}

double planner_fit_probability(const PlannerOptions *options) {
    return options->fit_probability_frac > 0 ? options->fit_probability_frac
                                             : FIT_PROBABILITY_DEFAULT_FRAC;
}

Scenario planner_limited(const Scenario *scenario, const PlannerOptions *options, Arena *arena) {
    Scenario limited = *scenario;
    Pool *pools = cluster_own_pools(&limited.cluster, arena);
    for (int i = 0; i < limited.cluster.num_pools; i++) {
        double *available = &pools[i].gpu.memory_available_bytes;
        if (options->max_memory_bytes > 0) *available = fmin(*available, options->max_memory_bytes);
    }
    limited.fit_deviates = student_quantile(planner_fit_probability(options));
    return limited;
}

Status search_alike(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    PlannerResult *out) {
    TRY(search_objective_check(scenario, options->objective));
    const Scenario limited = planner_limited(scenario, options, arena);
    const ShortlistPart *list = shortlist_part(scenario, options);
    bool answers = false;
    if (list) TRY(search_listed(&limited, options, list, arena, &answers, out));
    if (answers) return status_ok();
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
