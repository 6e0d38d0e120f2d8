#include "planner/pricing.h"

#include "costmodel/step_time.h"
#include "planner/robust.h"
#include "planner/share.h"

#include <math.h>
#include <string.h>

typedef struct {
    Pieces pieces;
    Arena scratch;
} Worker;

// A list while threads work on it.
typedef struct {
    const Pricing *pricing;
    Candidate *const *list;    // [<= PRICING_ROUND]
    bool known[PRICING_ROUND]; // its step time alone
    Priced priced[PRICING_ROUND];
    Status statuses[PRICING_ROUND];
    Worker *workers; // [num_workers]
    int num_workers;
    Arena arena;
} Work;

static Work *work_start(const Pricing *pricing, Candidate *const *list) {
    const int most = pricing->num_threads;
    Arena arena = {0};
    Work *work = ARENA_NEW(&arena, Work);
    work->pricing = pricing;
    work->list = list;
    work->num_workers = most < 1 ? 1 : most < SHARE_MAX_WORKERS ? most : SHARE_MAX_WORKERS;
    work->workers = ARENA_ARRAY(&arena, work->num_workers, Worker);
    for (int i = 0; i < work->num_workers; i++)
        work->workers[i].pieces.scenario = pricing->scenario;
    work->arena = arena;
    return work;
}

static void work_end(Work *work) {
    for (int i = 0; i < work->num_workers; i++) {
        pieces_free(&work->workers[i].pieces);
        arena_free(&work->workers[i].scratch);
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

static void step_time_work(void *context, int worker, int item) {
    Work *work = context;
    Worker *own = &work->workers[worker];
    work->known[item] =
        candidate_raise(work->pricing->objective, work->list[item], &own->pieces, &own->scratch);
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
