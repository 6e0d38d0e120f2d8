// The rounds of a search: splits in the order of their loose bounds, that threads share.
#include "planner/search/search_state.h"

#include "base/share.h"
#include "planner/harvest/best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    // The limit is the same for all splits of a round: results do not depend on which thread walks
    // which. Until something is priced there is none.
    FIRST_SEEDS = 4,
    FIRST_ROUND_SPLITS = 4,
    ROUND_SPLITS = 64,
};

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
    const bool may_end = s->pricing.quick.num_items > 0 || s->options->extra;
    if (may_end && deadline_is_over(&s->deadline)) return status_ok();
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

bool search_may_be_empty(const PlannerOptions *options) {
    return options->only_better || (is_uncounted(options) && options->worst_value > 0);
}

// Whether nothing may fit, as far as is known, and somebody wants to know by how much.
static bool wants_miss(const Search *s) {
    return s->pricing.quick.num_items == 0 && !search_may_be_empty(s->options);
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
        if (harvests[i].cut_short) search_stop_early(s, split_value(s, round.splits[i]));
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

Status search_harvest(Search *s) {
    for (int first = 0; first < s->space.num_splits && !rest_is_unwanted(s, first);) {
        if (deadline_is_over(&s->deadline)) {
            search_stop_early(s, split_value(s, s->split_order[first]));
            break;
        }
        search_progress(s, "configurations", s->stats.considered, 0,
                        fmin(s->open_value, split_value(s, s->split_order[first])));
        TRY(harvest_round(s, &first));
    }
    return status_ok();
}
