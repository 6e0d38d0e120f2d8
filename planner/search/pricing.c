#include "planner/search/pricing.h"

#include "base/share.h"
#include "costmodel/step/step_time.h"
#include "planner/why/robust.h"

#include <math.h>
#include <string.h>

typedef struct {
    GroupPricing pricing;
    Arena scratch;
    Arena plans; // with the splits found
} Worker;

// A list while threads work on it.
typedef struct {
    const Pricing *pricing;
    Candidate *const *list;           // [<= PRICING_ROUND]
    bool known[PRICING_ROUND];        // its step time alone
    bool useless[PRICING_ROUND];      // of all splits none fits, or none that does is of use
    GroupSplit splits[PRICING_ROUND]; // of those that stand for all
    SplitMemoEntry *known_splits[PRICING_ROUND];
    int next_alike[PRICING_ROUND]; // the next member with the same entry; -1: none
    int heads[PRICING_ROUND];      // members that no other comes before
    int num_heads;
    double limits_s[PRICING_ROUND]; // of the steps of those that stand for all splits
    Priced priced[PRICING_ROUND];
    Status statuses[PRICING_ROUND];
    Worker *workers; // [num_workers]
    int num_workers;
    Arena arena;
} Work;

// Beyond it a step is of no use, whatever else is known of it.
static double split_limit_s(const Pricing *pricing, const Plan *plan) {
    const double limit = best_plan_limit(&pricing->quick, plan);
    if (pricing->exhaustive || pricing->robust || !isfinite(limit)) return INFINITY;
    const double per_s = objective_bound(pricing->scenario, pricing->objective, 1, 0);
    return per_s > 0 ? limit / per_s : INFINITY;
}

static Work *work_start(const Pricing *pricing, Candidate *const *list) {
    const int most = pricing->num_threads;
    Arena arena = {0};
    Work *work = ARENA_NEW(&arena, Work);
    work->pricing = pricing;
    work->list = list;
    work->num_workers = most < 1 ? 1 : most < SHARE_MAX_WORKERS ? most : SHARE_MAX_WORKERS;
    work->workers = ARENA_ARRAY(&arena, work->num_workers, Worker);
    for (int i = 0; i < work->num_workers; i++)
        work->workers[i].pricing = group_pricing_start(pricing->scenario);
    work->arena = arena;
    return work;
}

static void work_end(Work *work) {
    for (int i = 0; i < work->num_workers; i++) {
        group_pricing_free(&work->workers[i].pricing);
        arena_free(&work->workers[i].scratch);
        arena_free(&work->workers[i].plans);
    }
    Arena arena = work->arena;
    arena_free(&arena);
}

// --- Step times

bool candidate_raise(PlanObjective objective, Candidate *candidate, Pieces *pieces,
                     Arena *scratch) {
    const Plan *plan = &candidate->plan;
    arena_reset(scratch);
    const Workload workload = pieces_workload(pieces, plan, scratch);
    const Prices prices = pieces_prices(pieces, plan, &workload, scratch);
    const double step_time_s =
        plan_step_time_s(pieces->scenario, plan, &workload, &prices, scratch);
    if (isnan(step_time_s)) return false;
    candidate->step_time_s = step_time_s;
    if (objective != OBJECTIVE_MEMORY)
        candidate->value =
            objective_bound(pieces->scenario, objective, step_time_s, mean_busy_s(plan, &prices));
    return true;
}

// --- The best of all splits

static SplitTask split_task(const Work *work, int item) {
    return (SplitTask){.most_layers = work->list[item]->most_layers,
                       .limit_s = work->limits_s[item],
                       .deadline = work->pricing->deadline};
}

// Members that share what is found go one after the other, on one thread.
static void members_chain(Pricing *pricing, Work *work, size_t num) {
    int last[PRICING_ROUND];
    for (size_t i = 0; i < num; i++) {
        const Candidate *candidate = work->list[i];
        work->next_alike[i] = -1;
        if (!candidate->any_split) continue;
        work->limits_s[i] = split_limit_s(pricing, &candidate->plan);
        SplitMemoEntry *entry = split_memo_entry(&pricing->splits, &candidate->plan,
                                                 candidate->most_layers, pricing->arena);
        work->known_splits[i] = entry;
        int head = entry ? 0 : work->num_heads;
        while (head < work->num_heads && work->known_splits[work->heads[head]] != entry) head++;
        if (head == work->num_heads)
            work->heads[work->num_heads++] = (int)i;
        else
            work->next_alike[last[head]] = (int)i;
        last[head] = (int)i;
    }
}

static void split_work(void *context, int worker, int item) {
    Work *work = context;
    Worker *own = &work->workers[worker];
    for (int i = work->heads[item]; i >= 0; i = work->next_alike[i]) {
        const Candidate *candidate = work->list[i];
        const SplitTask task = split_task(work, i);
        work->statuses[i] =
            split_memo_search(work->known_splits[i], &own->pricing, &candidate->plan, &task,
                              &own->plans, &work->splits[i]);
    }
}

static void miss_take(Pricing *pricing, const GroupSplit *split) {
    if (split->missing_bytes <= 0) return;
    if (pricing->missing_bytes > 0 && split->missing_bytes >= pricing->missing_bytes) return;
    pricing->miss = plan_copy(&split->miss, pricing->arena);
    pricing->miss_memory = split->miss_memory;
    pricing->missing_bytes = split->missing_bytes;
}

// As many layers as any stage has are all of them.
static void layers_name(const Scenario *scenario, Plan *plan) {
    const bool all = plan->recompute_layers >= plan_fullest_rank(plan);
    if (all && scenario->model.num_mtp_layers == 0 && scenario->parallel.recompute_layers == ABSENT)
        plan->recompute_layers = ABSENT;
}

// What is known of splits outlives the threads that found them.
static void known_splits_keep(Pricing *pricing, Work *work) {
    for (int i = 0; i < work->num_heads; i++) {
        SplitMemoEntry *entry = work->known_splits[work->heads[i]];
        if (entry && entry->known) entry->found = plan_copy(&entry->found, pricing->arena);
    }
}

// Makes the candidates the plans that were found; those of no use are marked.
static Status splits_take(Pricing *pricing, Work *work, size_t num) {
    for (size_t i = 0; i < num; i++) {
        Candidate *candidate = work->list[i];
        const GroupSplit *split = &work->splits[i];
        if (!candidate->any_split) continue;
        TRY(work->statuses[i]);
        candidate->any_split = false;
        pricing->open_s = fmin(pricing->open_s, split->open_s);
        pricing->num_without_room += split->verdict == GROUP_NO_ROOM;
        pricing->num_above += split->verdict == GROUP_ABOVE_LIMIT;
        work->useless[i] = split->step_time_s == INFINITY || split->step_time_s > work->limits_s[i];
        miss_take(pricing, split);
        if (work->useless[i]) continue;
        candidate->plan = plan_copy(&split->plan, pricing->arena);
        layers_name(pricing->scenario, &candidate->plan);
        candidate->memory_bytes = split->memory_bytes;
    }
    return status_ok();
}

// Splits first, in lists that then hold those that are left.
static Status list_split(Pricing *pricing, Candidate **list, size_t *num) {
    size_t num_split = 0, num_left = 0;
    for (size_t i = 0; i < *num; i++) num_split += list[i]->any_split;
    if (num_split == 0) return status_ok();
    Work *work = work_start(pricing, list);
    members_chain(pricing, work, *num);
    share_work(work->num_heads, work->num_workers, split_work, work);
    known_splits_keep(pricing, work);
    const Status status = splits_take(pricing, work, *num);
    for (size_t i = 0; i < *num; i++)
        if (!work->useless[i]) list[num_left++] = list[i];
    *num = num_left;
    work_end(work);
    return status;
}

static void step_time_work(void *context, int worker, int item) {
    Work *work = context;
    Worker *own = &work->workers[worker];
    work->known[item] = candidate_raise(work->pricing->objective, work->list[item],
                                        &own->pricing.pieces, &own->scratch);
}

// Of an estimate, what ranks it.
static Priced quick_priced(const Candidate *candidate) {
    return (Priced){.candidate = *candidate,
                    .estimate = {.step_time_s = candidate->step_time_s,
                                 .memory = {.device_bytes = candidate->memory_bytes}},
                    .value = candidate->value};
}

static void open_add(Pricing *pricing, const Candidate *candidate) {
    if (pricing->num_open == pricing->open_capacity) {
        const size_t capacity = 2 * pricing->open_capacity + PRICING_ROUND;
        Candidate *grown = ARENA_ARRAY(pricing->arena, capacity, Candidate);
        if (pricing->num_open) memcpy(grown, pricing->open, pricing->num_open * sizeof *grown);
        pricing->open = grown;
        pricing->open_capacity = capacity;
    }
    pricing->open[pricing->num_open++] = *candidate;
}

// --- Whole estimates

static void estimate_work(void *context, int worker, int item) {
    Work *work = context;
    Priced *priced = &work->priced[item];
    Arena *scratch = &work->workers[worker].scratch;
    arena_reset(scratch);
    priced->candidate = *work->list[item];
    work->statuses[item] = estimate_plan(work->pricing->scenario, &priced->candidate.plan, scratch,
                                         &priced->estimate, NULL);
    priced->value = objective_value(work->pricing->objective, &priced->estimate);
    if (work->pricing->robust) priced->value *= robust_raise(&priced->estimate);
}

//   also  a list of the best that they are kept in too; may be NULL
static Status list_estimate(Pricing *pricing, Candidate *const *list, size_t num, Best *also) {
    Work *work = work_start(pricing, list);
    Status status = status_ok();
    share_work((int)num, work->num_workers, estimate_work, work);
    for (size_t i = 0; i < num && status.code == STATUS_OK; i++) {
        status = work->statuses[i];
        if (status.code != STATUS_OK) break;
        best_insert(&pricing->best, &work->priced[i]);
        if (also) best_insert(also, &work->priced[i]);
        deadline_arm(pricing->deadline);
    }
    work_end(work);
    return status;
}

// --- Both

Status pricing_run(Pricing *pricing, Candidate **list, size_t num_candidates) {
    for (size_t i = 0; i < num_candidates; i++) list[i]->priced = true;
    if (num_candidates > 0) TRY(list_split(pricing, list, &num_candidates));
    if (num_candidates == 0) return status_ok();
    if (pricing->exhaustive || pricing->robust)
        return list_estimate(pricing, list, num_candidates, &pricing->quick);
    Work *work = work_start(pricing, list);
    share_work((int)num_candidates, work->num_workers, step_time_work, work);
    size_t num_unknown = 0;
    for (size_t i = 0; i < num_candidates; i++) {
        if (!work->known[i]) {
            list[num_unknown++] = list[i];
            continue;
        }
        if (best_excludes(&pricing->quick, list[i])) continue;
        open_add(pricing, list[i]);
        const Priced priced = quick_priced(list[i]);
        best_insert(&pricing->quick, &priced);
        deadline_arm(pricing->deadline);
    }
    work_end(work);
    if (num_unknown == 0) return status_ok();
    return list_estimate(pricing, list, num_unknown, &pricing->quick);
}

Status pricing_finish(Pricing *pricing) {
    Candidate *list[PRICING_ROUND];
    for (size_t next = 0; next < pricing->num_open;) {
        size_t num = 0;
        for (; next < pricing->num_open && num < PRICING_ROUND; next++)
            if (!best_excludes(&pricing->quick, &pricing->open[next]))
                list[num++] = &pricing->open[next];
        if (num > 0) TRY(list_estimate(pricing, list, num, NULL));
    }
    pricing->num_open = 0;
    return status_ok();
}
