// What a sketch of a configuration says (planner/harvest/sketch.h), before its workload is built.
#include "planner/harvest/harvest_walker.h"

#include "plan/plan_orders.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const double ROUNDING_FRAC = 1e-9; // sums in another order

void sketch_open(HarvestWalker *w) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const Schedule *schedule = schedule_find((ScheduleKind)kind);
        const Plan plan = {.schedule = (ScheduleKind)kind};
        if (!schedule || schedule->splits_backward || schedule->mixes_backwards ||
            plan_is_v(&plan) || plan_is_dual(&plan))
            w->sketch.other_schedules |= 1u << kind;
    }
}

void sketch_start(HarvestWalker *w) {
    HarvestSketch *s = &w->sketch;
    memset(s->asked, 0, sizeof s->asked);
    for (int i = 0; i < NUM_ZERO_LEVELS; i++)
        for (int k = 0; k < 4; k++) s->bound_s[i][k / 2][k % 2] = -1;
}

void sketch_end(HarvestWalker *w) {
    ShapeChain *chains = &w->sketch.chains[0][0][0];
    for (size_t i = 0; i < sizeof w->sketch.chains / sizeof *chains; i++)
        arena_free(&chains[i].arena);
    arena_free(&w->sketch.arena);
}

// Fewer than half of the slots are taken.
static const SketchLayout *layout_of(HarvestWalker *w, const Plan *plan) {
    HarvestSketch *s = &w->sketch;
    const bool is_v = plan_is_v(plan);
    if (plan_is_dual(plan) || plan->vocab_barriers) return NULL;
    if (2 * s->num_layouts >= SKETCH_SLOTS) {
        memset(s->slots, 0, sizeof s->slots);
        arena_reset(&s->arena);
        s->num_layouts = 0;
    }
    size_t i = ((uintptr_t)plan->chunks >> 4) * 0x9e3779b97f4a7c15u >> 40;
    for (i = (i + is_v) % SKETCH_SLOTS; s->slots[i].chunks; i = (i + 1) % SKETCH_SLOTS)
        if (s->slots[i].chunks == plan->chunks && s->slots[i].is_v == is_v)
            return s->slots[i].layout;
    s->num_layouts++;
    s->slots[i].chunks = plan->chunks;
    s->slots[i].is_v = is_v;
    s->slots[i].layout = sketch_layout(w->task->space->scenario, plan, &s->arena);
    return s->slots[i].layout;
}

// The blocks of a plan; NULL where there is no sketch of it. Found when a family asks for them:
// most are excluded before.
static const SketchShape *shape_of(HarvestWalker *w, const Plan *plan) {
    HarvestSketch *s = &w->sketch;
    const int level = plan_zero_level(plan);
    const bool some = plan->recompute_layers != w->parts.family->plans[0].recompute_layers;
    if (!w->task->loose || w->task->goal != HARVEST_BOUND) return NULL;
    if (!s->asked[some][level]) {
        s->asked[some][level] = true;
        s->known[some][level] = loose_sketch(w->task->loose, plan, &s->shape[some][level]);
    }
    return s->known[some][level] ? &s->shape[some][level] : NULL;
}

static bool is_above_limit(const HarvestTask *task, double bound_s) {
    return least_value(task, bound_s, 0) > task->value_limit;
}

bool sketch_excludes(HarvestWalker *w, const Plan *plan) {
    if (w->task->value_limit == INFINITY) return false;
    const SketchShape *shape = shape_of(w, plan);
    const Scenario *scenario = w->task->space->scenario;
    if (!shape) return false;
    const bool splits = schedule_find(plan->schedule)->splits_backward;
    double some_s = -1,
           *bound_s = &w->sketch.bound_s[plan_zero_level(plan)][plan_is_v(plan)][splits];
    if (shape == &w->sketch.shape[true][plan_zero_level(plan)]) bound_s = &some_s;
    if (*bound_s < 0) {
        const SketchLayout *layout = layout_of(w, plan);
        *bound_s = layout ? sketch_bound_s(scenario, plan, layout, shape) : 0;
    }
    return is_above_limit(w->task, *bound_s);
}

static double missing_of(HarvestWalker *w, const Plan *plan) {
    const SketchShape *shape = shape_of(w, plan);
    const SketchLayout *layout = shape ? layout_of(w, plan) : NULL;
    if (!layout) return 0;
    return sketch_missing_bytes(w->task->space->scenario, plan, layout, shape);
}

bool sketch_misses(HarvestWalker *w, const Plan *plan) {
    const double missing_bytes = missing_of(w, plan), known_bytes = w->out->missing_bytes;
    if (missing_bytes <= 0 || !w->task->wants_miss) return missing_bytes > 0;
    return known_bytes > 0 && missing_bytes > known_bytes * (1 + ROUNDING_FRAC);
}

// The largest number of layers from 0 on for which the bound is below the limit: it rises with
// each.
static int last_below(HarvestWalker *w, const Plan *plan, int most) {
    int below = 0;
    for (int above = most + 1; above - below > 1;) {
        const int middle = below + (above - below) / 2;
        const Plan some = space_first_layers(plan, middle);
        if (sketch_excludes(w, &some))
            above = middle;
        else
            below = middle;
    }
    return below;
}

void sketch_layers(HarvestWalker *w, const Plan *plan, int most, int *least, int *end) {
    Plan some = space_first_layers(plan, most);
    *least = 1;
    *end = sketch_excludes(w, &some) ? last_below(w, plan, most - 1) : most;
    const SketchShape *shape = shape_of(w, &some);
    if (*end == 0 || !shape || w->task->wants_miss) return;
    if (!sketch_falls(w->task->space->scenario, shape)) return;
    some = space_first_layers(plan, *end);
    int misses = 0, fits = *end + 1;
    if (missing_of(w, &some) <= 0) fits = *end;
    while (fits - misses > 1 && fits <= *end) {
        const int middle = misses + (fits - misses) / 2;
        some = space_first_layers(plan, middle);
        if (missing_of(w, &some) > 0)
            misses = middle;
        else
            fits = middle;
    }
    *least = fits;
}

// --- All splits of a plan's layers

// The blocks of a plan's shape.
//   returns  false where these say nothing of its splits
static bool splits_shape(HarvestWalker *w, const Plan *plan, SketchShape *shape) {
    if (!w->task->loose || plan->vocab_barriers || plan_is_dual(plan)) return false;
    return loose_sketch(w->task->loose, plan, shape);
}

static const SketchChain *chain_of(HarvestWalker *w, const Plan *plan, const SketchShape *shape) {
    const bool some = plan->recompute_layers != ABSENT;
    ShapeChain *known = &w->sketch.chains[plan->recompute][some][plan_zero_level(plan)];
    if (known->shape.kept != shape->kept || known->shape.recomputed != shape->recomputed) {
        arena_reset(&known->arena);
        known->shape = *shape;
        sketch_chain(w->task->space->scenario, plan, shape, &known->arena, &known->chain);
    }
    return &known->chain;
}

bool sketch_splits_slow(HarvestWalker *w, const Plan *plan) {
    const Scenario *scenario = w->task->space->scenario;
    const double limit_s = step_limit_s(w->task);
    SketchShape shape;
    if (limit_s == INFINITY || !splits_shape(w, plan, &shape)) return false;
    return sketch_splits_mean_s(scenario, plan, &shape) > limit_s * (1 + ROUNDING_FRAC) ||
           sketch_splits_exceed(scenario, plan, chain_of(w, plan, &shape), limit_s);
}

bool sketch_splits_full(HarvestWalker *w, const Plan *plan) {
    SketchShape shape;
    if (w->task->goal != HARVEST_BOUND || w->task->wants_miss || !splits_shape(w, plan, &shape))
        return false;
    return sketch_splits_miss(w->task->space->scenario, plan, chain_of(w, plan, &shape));
}

// --- Whole shapes

// The plan of a shape that bounds all with these shards: 1F1B, or interleaved, holds least.
static Plan leanest(const Plan *shape, int zero_level) {
    Plan plan = *shape;
    plan.schedule = schedule_default(plan.vpp);
    plan_set_zero_level(&plan, zero_level);
    plan.zero_group = plan.dp * plan.cp;
    return plan;
}

// Whether no split of a shape's layers is wanted, of one ZeRO level and schedule.
static bool splits_are_out(HarvestWalker *w, const SpaceShape *shape, int zero_level,
                           ScheduleKind schedule) {
    Plan plan = leanest(shape->plan, zero_level);
    plan.schedule = schedule;
    const Plan first = space_first_layers(&plan, 1);
    if (sketch_splits_slow(w, shape->some_layers ? &first : &plan)) return true;
    const Plan most = space_first_layers(&plan, w->task->space->scenario->model.num_layers);
    return sketch_splits_full(w, &plan) && (!shape->some_layers || sketch_splits_full(w, &most));
}

static bool all_splits_are_out(HarvestWalker *w, const SpaceShape *shape) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        if (!(shape->schedules & 1u << kind)) continue;
        for (int level = 0; level < NUM_ZERO_LEVELS; level++)
            if (shape->zero_levels & 1u << level &&
                !splits_are_out(w, shape, level, (ScheduleKind)kind))
                return false;
    }
    return true;
}

// Whether plans of one ZeRO level are ruled out.
static bool level_is_out(HarvestWalker *w, const SpaceShape *shape, int zero_level) {
    const HarvestTask *task = w->task;
    const Scenario *scenario = task->space->scenario;
    const Plan plan = leanest(shape->plan, zero_level), some = space_first_layers(&plan, 1);
    const SketchLayout *layout = layout_of(w, &plan);
    SketchShape own, first;
    if (!layout || !loose_sketch(task->loose, &plan, &own)) return false;
    if (shape->some_layers && !loose_sketch(task->loose, &some, &first)) return false;
    const double bound_s = shape->some_layers ? sketch_bound_s(scenario, &some, layout, &first)
                                              : sketch_bound_s(scenario, &plan, layout, &own);
    return is_above_limit(task, bound_s) || sketch_missing_bytes(scenario, &plan, layout, &own) > 0;
}

bool sketch_skips(void *walker, const SpaceShape *shape) {
    HarvestWalker *w = walker;
    const HarvestTask *task = w->task;
    const Plan some = space_first_layers(shape->plan, 1);
    if (!task->loose || task->goal != HARVEST_BOUND || task->wants_miss) return false;
    if (!shape->plan->chunks) {
        const Plan *least = shape->some_layers ? &some : shape->plan;
        return !loose_has(task->loose, least) || loosely_excluded(task, least);
    }
    if (shape->any_split) return all_splits_are_out(w, shape);
    if (shape->schedules & w->sketch.other_schedules) return false;
    for (int level = NUM_ZERO_LEVELS - 1; level >= 0; level--)
        if (shape->zero_levels & 1u << level && !level_is_out(w, shape, level)) return false;
    return true;
}
