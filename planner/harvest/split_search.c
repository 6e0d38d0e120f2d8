#include "planner/harvest/split_search.h"

#include "costmodel/step/estimate.h"
#include "planner/space/space.h"
#include "planner/stages/group_chunkings.h"
#include "planner/stages/split_bound.h"

#include <math.h>
#include <string.h>

// --- Room

typedef struct {
    Arena *arena;
    int *items; // [num_stages]
    int num_stages;
} First;

static bool first_take(void *context, const int *items, double bound_s) {
    First *first = context;
    (void)bound_s;
    memcpy(first->items, items, (size_t)first->num_stages * sizeof *items);
    return false;
}

static bool plan_has_room(GroupPricing *pricing, const Plan *plan, RankMemory *memory,
                          double *missing_bytes) {
    Arena scratch = {0};
    const Workload workload = pieces_workload(&pricing->pieces, plan, &scratch);
    *memory = estimate_memory(pricing->scenario, plan, &workload, missing_bytes);
    arena_free(&scratch);
    return *missing_bytes <= 0;
}

// One chunk a rank: the split with the least bound of those that fit.
static bool staged_fits(GroupPricing *pricing, const Plan *plan, Arena *arena, Plan *found) {
    Arena scratch = {0};
    const GroupCosts *costs = group_costs_of(pricing, plan);
    StageProblem problem = group_stage_problem(pricing->scenario, plan, costs, &scratch);
    const bool fits = group_stages_fit(pricing, plan);
    if (fits && found) {
        const StageBounds free = stage_bounds_solve(&problem, &scratch);
        problem.most = group_stage_room(pricing, plan, &free, &scratch);
        const StageBounds bounds = stage_bounds_solve(&problem, &scratch);
        First first = {arena, ARENA_ARRAY(&scratch, plan->pp, int), plan->pp};
        const double any_s = INFINITY;
        stage_splits_visit(&bounds, &any_s, first_take, &first, &scratch);
        *found = *plan;
        found->chunks = chain_chunks(pricing, plan, first.items, arena);
    }
    arena_free(&scratch);
    RankMemory memory;
    double missing_bytes;
    return fits && (!found || plan_has_room(pricing, found, &memory, &missing_bytes));
}

// Several: one of a few.
static bool listed_fits(GroupPricing *pricing, const Plan *plan, Arena *arena, Plan *found) {
    const PlanChunk *list[MAX_GROUP_CHUNKINGS];
    Arena scratch = {0};
    bool fits = false;
    const int num = group_chunkings(pricing, plan, group_costs_of(pricing, plan), &scratch, list);
    for (int i = 0; i < num && !fits; i++) {
        Plan one = *plan;
        RankMemory memory;
        double missing_bytes;
        one.chunks = list[i];
        fits = plan_has_room(pricing, &one, &memory, &missing_bytes);
        if (fits && found) *found = plan_copy(&one, arena);
    }
    arena_free(&scratch);
    return fits;
}

static bool one_fits(GroupPricing *pricing, const Plan *plan, Arena *arena, Plan *found) {
    return group_plan_is_staged(plan) ? staged_fits(pricing, plan, arena, found)
                                      : listed_fits(pricing, plan, arena, found);
}

// Memory is not quite monotone in the number of recomputed layers
// (planner/harvest/harvest_layers.c): where so many are looked at one by one, all that are fewer
// than one that fits.
enum { FEW_LAYERS = 3 };

// The fewest layers with which a split fits; most + 1 where there are none.
static int fewest_layers(GroupPricing *pricing, const Plan *plan, int most) {
    Plan some = space_first_layers(plan, most);
    if (!one_fits(pricing, &some, NULL, NULL)) {
        int least = most + 1;
        for (int k = 1; k <= FEW_LAYERS && k < most && least > most; k++) {
            some = space_first_layers(plan, k);
            if (one_fits(pricing, &some, NULL, NULL)) least = k;
        }
        return least;
    }
    int misses = 0, fits = most;
    while (fits - misses > 1) {
        const int middle = misses + (fits - misses) / 2;
        some = space_first_layers(plan, middle);
        if (one_fits(pricing, &some, NULL, NULL))
            fits = middle;
        else
            misses = middle;
    }
    for (int k = fits - 1; k >= 1 && k >= fits - FEW_LAYERS; k--) {
        some = space_first_layers(plan, k);
        if (one_fits(pricing, &some, NULL, NULL)) fits = k;
    }
    return fits;
}

bool split_fits(GroupPricing *pricing, const Plan *plan, int most_layers, Arena *arena,
                Plan *found) {
    if (most_layers == 0) return one_fits(pricing, plan, arena, found);
    const int least = fewest_layers(pricing, plan, most_layers);
    if (least > most_layers) return false;
    const Plan some = space_first_layers(plan, least);
    return one_fits(pricing, &some, arena, found);
}

// --- The best

static void split_merge(GroupSplit *out, const GroupSplit *one) {
    const double open_s = fmin(out->open_s, one->open_s);
    const int64_t num_splits = out->num_splits + one->num_splits;
    const bool has_room = out->has_room || one->has_room;
    const GroupVerdict verdict = one->verdict == GROUP_PRICED ? GROUP_PRICED : out->verdict;
    if (one->step_time_s < out->step_time_s) *out = *one;
    out->verdict = verdict;
    out->open_s = open_s;
    out->num_splits = num_splits;
    out->has_room = has_room;
}

// What the exact bounds of planner/stages/stage_split.h say of a configuration before any split is
// priced.
typedef enum {
    LOOK_OPEN,      // nothing
    LOOK_SLOW,      // every split is above the limit
    LOOK_FULL,      // no split fits
    LOOK_FITS_SLOW, // every split that fits is above the limit
    LOOK_FITS,      // the bound of some split that fits is not
} Look;

// Whether some split that fits is not above the limit of a problem.
//   free  of the problem where all fits
static bool fits_below(GroupPricing *pricing, const Plan *plan, const StageProblem *problem,
                       const StageBounds *free, Arena *scratch) {
    StageProblem with_room = *problem;
    with_room.most = group_stage_room(pricing, plan, free, scratch);
    return stage_bounds_solve(&with_room, scratch).bound_s < INFINITY;
}

static Look staged_look(GroupPricing *pricing, const Plan *plan, const StageProblem *problem,
                        bool likely, Arena *scratch) {
    const StageBounds starts = stage_starts(problem, scratch);
    const bool fits = likely && group_stages_fit(pricing, plan);
    if (fits && fits_below(pricing, plan, problem, &starts, scratch)) return LOOK_FITS;
    if (stage_bounds_solve(problem, scratch).bound_s == INFINITY) return LOOK_SLOW;
    if (fits) return LOOK_FITS_SLOW;
    if (likely || !group_stages_fit(pricing, plan)) return LOOK_FULL;
    return fits_below(pricing, plan, problem, &starts, scratch) ? LOOK_FITS : LOOK_FITS_SLOW;
}

//   likely  whether a split that fits is expected, which then is asked for first
static Look first_look(GroupPricing *pricing, const Plan *plan, double limit_s, bool likely) {
    if (!isfinite(limit_s)) return LOOK_OPEN;
    const GroupCosts *costs = group_costs_of(pricing, plan);
    if (split_bound_exceeds(pricing->scenario, plan, costs, limit_s)) return LOOK_SLOW;
    if (!group_plan_is_staged(plan)) return LOOK_OPEN;
    Arena scratch = {0};
    StageProblem problem = group_stage_problem(pricing->scenario, plan, costs, &scratch);
    problem.limit_s = limit_s;
    const Look look = staged_look(pricing, plan, &problem, likely, &scratch);
    arena_free(&scratch);
    return look;
}

bool split_is_out(GroupPricing *pricing, const Plan *plan, const SplitTask *task) {
    const bool all = task->most_layers == 0;
    const Plan fastest = all ? *plan : space_first_layers(plan, 1);
    const Look look = first_look(pricing, &fastest, task->limit_s, false);
    return look == LOOK_SLOW || (all && look == LOOK_FITS_SLOW);
}

// The time of a price grows with the chunks.
static int most_steps(const Plan *plan) {
    const int steps = SPLIT_STEPS_CHUNKS / plan->num_chunks;
    return steps > SPLIT_MAX_STEPS   ? SPLIT_MAX_STEPS
           : steps < SPLIT_MIN_STEPS ? SPLIT_MIN_STEPS
                                     : steps;
}

// What is found of a configuration that is looked at does not depend on the limit: of all splits
// only some are priced, and which they are would else hang on what was found before.
Status split_search(GroupPricing *pricing, const Plan *plan, const SplitTask *task, Arena *arena,
                    GroupSplit *out) {
    GroupTask each = {.limit_s = INFINITY,
                      .deadline = task->deadline,
                      .max_splits = SPLIT_MAX_PRICED,
                      .max_steps = most_steps(plan)};
    *out = (GroupSplit){.verdict = GROUP_ABOVE_LIMIT, .step_time_s = INFINITY, .open_s = INFINITY};
    if (task->most_layers == 0) {
        const Look look = first_look(pricing, plan, task->limit_s, false);
        if (look == LOOK_SLOW || look == LOOK_FITS_SLOW) return status_ok();
        each.fits = look == LOOK_FITS;
        return group_configuration_split(pricing, plan, &each, arena, out);
    }
    for (int k = 1; k <= task->most_layers; k++) {
        const Plan some = space_first_layers(plan, k);
        const double limit_s = fmin(task->limit_s, each.limit_s);
        const Look look = first_look(pricing, &some, limit_s, each.fits);
        each.fits = look == LOOK_FITS; // then the next number is likely to
        if (look == LOOK_SLOW) break;  // more take longer
        if (look == LOOK_FITS_SLOW) continue;
        GroupSplit one = {.verdict = GROUP_NO_ROOM};
        if (look != LOOK_FULL) TRY(group_configuration_split(pricing, &some, &each, arena, &one));
        if (one.verdict == GROUP_NO_ROOM) {
            const int least = k == 1 ? fewest_layers(pricing, plan, task->most_layers) : 0;
            if (k == 1 && least > task->most_layers) out->verdict = GROUP_NO_ROOM;
            if (least > 2) k = least - 1;
            continue;
        }
        split_merge(out, &one);
        each.limit_s = fmin(each.limit_s, out->step_time_s);
    }
    return status_ok();
}
