// Recomputation of the first layers of each stage: the smallest number that fits, and nothing more
// where time ranks (planner/harvest/harvest.h says why).
#include "planner/harvest/harvest_walker.h"

#include <string.h>

static int place_of(const SpaceFamily *family, const Plan *plan) {
    return (int)(plan - family->plans);
}

// Most first layers that are recomputed alone.
static int layers_of(const SpaceFamily *family, const Plan *plan) {
    return family->num_layers[place_of(family, plan)];
}

static bool is_beside(const FitsWithout *without, const Plan *plan) {
    return without->chunks && without->chunks == plan->chunks &&
           without->micro_batch == plan->micro_batch && without->cp_method == plan->cp_method;
}

void layers_start(HarvestWalker *w, const SpaceFamily *family) {
    const Plan *first = &family->plans[0];
    FitsWithout *without = &w->without;
    memset(w->least, 0, sizeof w->least);
    w->some_fit = false;
    if (first->recompute != RECOMPUTE_NONE) return;
    if (without->capacity < family->num_plans) {
        without->capacity = family->num_plans;
        arena_reset(&w->layers_arena);
        without->fits = ARENA_ARRAY(&w->layers_arena, without->capacity, bool);
    }
    memset(without->fits, 0, (size_t)without->capacity * sizeof *without->fits);
    without->chunks = first->chunks;
    without->micro_batch = first->micro_batch;
    without->cp_method = first->cp_method;
}

void layers_note_fit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan) {
    if (plan->recompute == RECOMPUTE_NONE) w->without.fits[place_of(family, plan)] = true;
}

static bool fits_without(const HarvestWalker *w, const SpaceFamily *family, const Plan *plan) {
    return plan->recompute == RECOMPUTE_FULL && is_beside(&w->without, plan) &&
           w->without.fits[place_of(family, plan)];
}

bool layers_beat(const HarvestWalker *w, const SpaceFamily *family, const Plan *plan) {
    return w->task->first_layers_by_time &&
           (fits_without(w, family, plan) || (layers_of(family, plan) > 0 && w->some_fit));
}

// --- The smallest number

// Below this nothing fits, by the floor, which falls with the number of layers; end + 1 where
// nothing does up to `end`.
static int floor_least(HarvestWalker *w, const Plan *plan, int from, int end) {
    int misses = from - 1, least = end + 1;
    Plan some = space_first_layers(plan, end);
    if (from > end) return least;
    if (family_floor_missing(&w->parts, &some) > 0) return least;
    for (least = end; least - misses > 1;) {
        const int middle = misses + (least - misses) / 2;
        some = space_first_layers(plan, middle);
        if (family_floor_missing(&w->parts, &some) > 0)
            misses = middle;
        else
            least = middle;
    }
    return least;
}

// Of the numbers that the floor rules out those that may miss by less than all so far. The floor
// misses by more with each layer less.
static void closest_miss_find(HarvestWalker *w, const Plan *plan, int from, int end) {
    RankMemory memory;
    for (int k = end - 1; k >= from; k--) {
        const Plan some = space_first_layers(plan, k);
        const double least_bytes = family_floor_missing(&w->parts, &some);
        if (w->out->missing_bytes > 0 && least_bytes >= w->out->missing_bytes) return;
        plan_fits(w, &some, &memory);
    }
}

// The smallest number of layers with which a plan fits, of `least` to `end`; end + 1 where it does
// with none.
static int least_layers(HarvestWalker *w, const Plan *plan, int least, int end,
                        RankMemory *memory) {
    const Scenario *scenario = w->task->space->scenario;
    LeastLayers *last = &w->least[plan->schedule];
    const bool known = last->least > 0 && last->zero_level == plan_zero_level(plan);
    if (known && smaller_groups_hold_more(w, plan) && last->least > least) least = last->least;
    if (least > end) return end + 1;
    const int from = least;
    Plan some = space_first_layers(plan, 1);
    const bool falling = scenario->cluster.num_pools == 1 &&
                         workload_layers_hold_less(scenario, family_workload(&w->parts, &some));
    if (falling) least = floor_least(w, plan, from, end);
    const int floor = least;
    for (; least <= end; least++) {
        some = space_first_layers(plan, least);
        if (plan_fits(w, &some, memory)) break;
    }
    if (falling && least > end && w->task->wants_miss) closest_miss_find(w, plan, from, floor);
    *last = (LeastLayers){plan_zero_level(plan), least};
    return least;
}

// --- The walk

static bool all_visit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan) {
    for (int k = 1; k <= layers_of(family, plan); k++) {
        const Plan some = space_first_layers(plan, k);
        RankMemory memory;
        w->out->considered++;
        if (sketch_excludes(w, &some))
            w->out->pruned_by_bound++;
        else if (sketch_misses(w, &some) || !plan_fits(w, &some, &memory))
            w->out->pruned_by_memory++;
        else
            plan_bound(w, &some, &memory);
    }
    return true;
}

static bool least_visit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan) {
    Harvest *out = w->out;
    RankMemory memory;
    int least, end;
    sketch_layers(w, plan, layers_of(family, plan), &least, &end);
    if (end > 0) least = least_layers(w, plan, least, end, &memory);
    out->considered += least - 1;
    out->pruned_by_memory += least - 1;
    if (least > end) {
        out->considered += layers_of(family, plan) - end;
        out->pruned_by_bound += layers_of(family, plan) - end;
        return true;
    }
    const Plan some = space_first_layers(plan, least);
    out->considered++;
    w->some_fit = true;
    if (fit_add(w, &some)) return false;
    plan_bound(w, &some, &memory);
    out->considered += layers_of(family, plan) - least;
    out->pruned_by_bound += layers_of(family, plan) - least;
    return true;
}

bool layers_visit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan) {
    Harvest *out = w->out;
    w->some_fit = false;
    if (is_missed(w, family, plan)) { // what lasts is the same
        out->considered += layers_of(family, plan);
        out->pruned_by_memory += layers_of(family, plan);
        return true;
    }
    const Plan some = space_first_layers(plan, 1);
    if (loosely_excluded(w->task, &some) || layers_beat(w, family, plan)) {
        out->considered += layers_of(family, plan);
        out->pruned_by_bound += layers_of(family, plan);
        return true;
    }
    if (w->task->goal == HARVEST_FIT || w->task->first_layers_by_time)
        return least_visit(w, family, plan);
    return all_visit(w, family, plan);
}
