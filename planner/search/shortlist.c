#include "planner/search/shortlist.h"

#include "base/deadline.h"
#include "planner/harvest/split_search.h"
#include "planner/search/pricing.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const double ROUNDING_FRAC = 1e-9; // the same sums in another order

struct Shortlist {
    const Scenario *scenario;
    PlannerOptions options;
    double limit_s;
    ShortlistPart *parts;
    pthread_mutex_t mutex; // of the parts
    Arena arena;
};

typedef struct {
    GroupPricing pricing;
    double limit_s;
    Arena *arena;      // of what is kept
    Deadline deadline; // of somebody's patience
    Arena scratch;     // of one candidate
    size_t capacity;
    ShortlistPart *part;
} Builder;

// The least that a candidate takes; INFINITY where it does not fit or is above the limit.
static Status candidate_least(Builder *b, Candidate *candidate) {
    GroupSplit split;
    if (!candidate->any_split) {
        candidate_raise(OBJECTIVE_THROUGHPUT, candidate, &b->pricing.pieces, &b->scratch);
        return status_ok();
    }
    const SplitTask task = {
        .most_layers = candidate->most_layers, .limit_s = b->limit_s, .deadline = &b->deadline};
    arena_reset(&b->scratch);
    TRY(split_search(&b->pricing, &candidate->plan, &task, &b->scratch, &split));
    const double least_s = fmin(split.step_time_s, split.open_s);
    candidate->value = split.verdict == GROUP_PRICED ? fmax(candidate->value, least_s) : INFINITY;
    candidate->step_time_s = candidate->value;
    return status_ok();
}

static void candidate_add(Builder *b, const Candidate *candidate) {
    ShortlistPart *part = b->part;
    if (part->num_candidates == b->capacity) {
        b->capacity = 2 * b->capacity + 64;
        Candidate *grown = ARENA_ARRAY(b->arena, b->capacity, Candidate);
        if (part->num_candidates)
            memcpy(grown, part->candidates, part->num_candidates * sizeof *grown);
        part->candidates = grown;
    }
    part->any_split |= candidate->any_split;
    part->candidates[part->num_candidates] = *candidate;
    part->candidates[part->num_candidates++].plan = plan_copy(&candidate->plan, b->arena);
}

static bool is_full(const Builder *b) {
    return b->part->num_candidates > SHORTLIST_MOST;
}

// What one split of the ranks holds.
static Status harvest_keep(Builder *b, const Harvest *harvest) {
    for (size_t i = 0; i < harvest->num_candidates && !is_full(b); i++) {
        Candidate candidate = harvest->candidates[i];
        if (candidate.value > b->limit_s) continue;
        TRY(candidate_least(b, &candidate));
        if (candidate.value <= b->limit_s) candidate_add(b, &candidate);
    }
    return status_ok();
}

static Status splits_walk(Builder *b, const Space *space, const LooseCosts *loose,
                          const double *split_bound_s, Arena *arena) {
    const HarvestTask task = {.space = space,
                              .goal = HARVEST_BOUND,
                              .objective = OBJECTIVE_THROUGHPUT,
                              .first_layers_by_time = true,
                              .loose = loose,
                              .value_limit = b->limit_s,
                              .uncounted = true,
                              .deadline = &b->deadline};
    const int *order = loose_order(split_bound_s, space->num_splits, arena);
    for (int i = 0; i < space->num_splits && !is_full(b); i++) {
        if (split_bound_s[order[i]] > b->limit_s) break;
        Harvest harvest;
        harvest_split(&task, order[i], &harvest);
        const Status status = harvest_keep(b, &harvest);
        harvest_free(&harvest);
        TRY(status);
    }
    return status_ok();
}

static Status part_fill(const Scenario *limited, const PriceSource *prices, Builder *b) {
    ShortlistPart *part = b->part;
    Arena arena = {0};
    Space space;
    LooseCosts loose;
    space_build(limited, &arena, &space);
    space.any_split = true;
    double *split_bound_s = ARENA_ARRAY(&arena, space.num_splits, double);
    loose_build(&space, 1, &b->deadline, prices, &loose, split_bound_s);
    part->loose_bound_s = space.num_splits > 0 ? INFINITY : 0;
    for (int i = 0; i < space.num_splits; i++)
        part->loose_bound_s = fmin(part->loose_bound_s, split_bound_s[i]);
    const Status status = splits_walk(b, &space, &loose, split_bound_s, &arena);
    candidates_sort(part->candidates, part->num_candidates);
    loose_free(&loose);
    arena_free(&arena);
    return status;
}

static ShortlistPart *part_make(Shortlist *list, int num_gpus) {
    const PlannerOptions *options = &list->options;
    const PriceSource *prices = options->prices;
    Scenario sized = *list->scenario;
    ShortlistPart *part = ARENA_NEW(&list->arena, ShortlistPart);
    *part = (ShortlistPart){.next = list->parts, .num_gpus = num_gpus};
    list->parts = part;
    if (!cluster_use(&list->scenario->cluster, num_gpus, &list->arena, &sized.cluster)) return part;
    const Scenario limited = planner_limited(&sized, options, &list->arena);
    if (prices && prices->num_gpus != num_gpus) prices = NULL;
    Builder b = {.limit_s = list->limit_s,
                 .arena = &list->arena,
                 .pricing = group_pricing_start(&limited),
                 .part = part};
    deadline_start(&b.deadline, 0, options->end_soon);
    deadline_arm(&b.deadline);
    const Status status = part_fill(&limited, prices, &b);
    part->complete = status.code == STATUS_OK && !is_full(&b) && !deadline_is_past(&b.deadline);
    group_pricing_free(&b.pricing);
    arena_free(&b.scratch);
    return part;
}

Shortlist *shortlist_new(const Scenario *scenario, const PlannerOptions *options, double limit_s) {
    Shortlist *list = calloc(1, sizeof *list);
    if (!list) return NULL;
    list->scenario = scenario;
    list->options = *options;
    list->limit_s = limit_s * (1 + ROUNDING_FRAC);
    pthread_mutex_init(&list->mutex, NULL);
    return list;
}

void shortlist_free(Shortlist *list) {
    if (!list) return;
    pthread_mutex_destroy(&list->mutex);
    arena_free(&list->arena);
    free(list);
}

double shortlist_limit_s(const Shortlist *list) {
    return list->limit_s;
}

const ShortlistPart *shortlist_part(const Scenario *scenario, const PlannerOptions *options) {
    Shortlist *list = options->shortlist;
    if (!list || options->objective != OBJECTIVE_THROUGHPUT || options->robust ||
        options->exhaustive || scenario->cluster.network.sites)
        return NULL;
    pthread_mutex_lock(&list->mutex);
    ShortlistPart *part = list->parts;
    while (part && part->num_gpus != scenario->cluster.num_gpus) part = part->next;
    if (!part) part = part_make(list, scenario->cluster.num_gpus);
    pthread_mutex_unlock(&list->mutex);
    return part->complete ? part : NULL;
}

bool shortlist_holds(const ShortlistPart *part, const Candidate *priced) {
    for (size_t i = 0; i < part->num_candidates; i++)
        if (priced[i].value < part->candidates[i].value * (1 - ROUNDING_FRAC)) return false;
    return true;
}
