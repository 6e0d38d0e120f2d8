#include "planner/questions/neighbour.h"

#include "plan/rule_check.h"
#include "planner/harvest/split_choice.h"
#include "planner/space/space.h"

#include <stddef.h>

typedef struct {
    const Scenario *scenario;
    RulesInForce rules;
    const Plan *plan;
    NeighbourVisit visit;
    void *context;
    GroupPricing pricing; // of splits
    Arena arena;          // of one neighbour
} Walk;

// A choice that is a number.
typedef struct {
    const char *key;
    size_t offset;
} Number;

#define NUMBER(key)                                                                                \
    { #key, offsetof(Plan, key) }

static const Number DEGREES[] = {NUMBER(tp), NUMBER(pp), NUMBER(cp), NUMBER(dp)};
static const Number FACTORS[] = {NUMBER(ep), NUMBER(micro_batch), NUMBER(vpp)};

enum {
    NUM_DEGREES = sizeof DEGREES / sizeof *DEGREES,
    NUM_FACTORS = sizeof FACTORS / sizeof *FACTORS,
};

static int *number_of(Plan *plan, const Number *number) {
    return (int *)(void *)((char *)plan + number->offset);
}

static int value_of(const Plan *plan, const Number *number) {
    return *(const int *)(const void *)((const char *)plan + number->offset);
}

static const char *number_text(Walk *w, const Plan *changed, const Number *number) {
    return arena_printf(&w->arena, "%s %d instead of %d", number->key, value_of(changed, number),
                        value_of(w->plan, number));
}

// Completes a changed plan and visits it where it is legal.
static void plan_visit(Walk *w, Plan *plan, const char *change) {
    const Scenario *scenario = w->scenario;
    plan->sequence_parallel = w->plan->sequence_parallel && plan->tp > 1;
    if (w->plan->tp == 1) plan->sequence_parallel = plan_splits_sequence(scenario, plan->tp);
    if (plan->dp * plan->cp != w->plan->dp * w->plan->cp)
        plan->zero_group = plan_zero_group(scenario, plan->dp, plan->cp);
    plan->num_chunks = plan->pp * plan->vpp;
    if (plan->num_chunks != w->plan->num_chunks &&
        plan_default_chunks(&scenario->model, plan->num_chunks, &w->arena, &plan->chunks).code !=
            STATUS_OK)
        return;
    plan_derive(scenario, plan);
    bool legal = plan_check(scenario, plan).code == STATUS_OK;
    if (!legal && plan->order != ORDER_DP_PP && !scenario->parallel.order) {
        plan->order = ORDER_DP_PP; // the other goes with some degrees only
        legal = plan_check(scenario, plan).code == STATUS_OK;
    }
    if (!legal || !plan_obeys(scenario, &w->rules, plan)) return;
    if (plan->num_chunks != w->plan->num_chunks)
        split_choose(&w->pricing, &w->rules, plan, &w->arena);
    w->visit(w->context, plan, change);
}

static void degrees_visit(Walk *w) {
    for (int from = 0; from < NUM_DEGREES; from++)
        for (int to = 0; to < NUM_DEGREES; to++) {
            Plan plan = *w->plan;
            if (from == to || value_of(&plan, &DEGREES[from]) % 2 != 0) continue;
            arena_reset(&w->arena);
            *number_of(&plan, &DEGREES[from]) /= 2;
            *number_of(&plan, &DEGREES[to]) *= 2;
            if (plan.pp == 1) plan.vpp = 1;
            plan_visit(w, &plan,
                       arena_printf(&w->arena, "%s, %s", number_text(w, &plan, &DEGREES[to]),
                                    number_text(w, &plan, &DEGREES[from])));
        }
}

// One chunk a rank runs as 1f1b, more of them as interleaved.
static void schedule_follow(Plan *plan) {
    plan->schedule = schedule_with_chunks(plan->schedule, plan->vpp);
}

static void factors_visit(Walk *w) {
    for (int i = 0; i < NUM_FACTORS; i++)
        for (int twice = 0; twice < 2; twice++) {
            Plan plan = *w->plan;
            int *value = number_of(&plan, &FACTORS[i]);
            if (!twice && *value % 2 != 0) continue;
            *value = twice ? *value * 2 : *value / 2;
            if (plan.pp == 1 && plan.vpp > w->plan->vpp) continue; // chunks of what is no pipeline
            schedule_follow(&plan);
            arena_reset(&w->arena);
            plan_visit(w, &plan, number_text(w, &plan, &FACTORS[i]));
        }
}

// "full", "full of 3 layers a stage".
static const char *recompute_text(Walk *w) {
    const Plan *plan = w->plan;
    const char *name = RECOMPUTE_NAMES[plan->recompute];
    if (plan->recompute == RECOMPUTE_NONE || plan->recompute_layers == ABSENT) return name;
    return arena_printf(&w->arena, "%s of %d layer%s a stage", name, plan->recompute_layers,
                        plan->recompute_layers == 1 ? "" : "s");
}

static void names_visit(Walk *w) {
    const Scenario *scenario = w->scenario;
    for (int recompute = 0; recompute < NUM_RECOMPUTES; recompute++) {
        Plan plan = *w->plan;
        if (recompute == (int)plan.recompute) continue;
        plan.recompute = (Recompute)recompute;
        plan.recompute_layers = scenario->parallel.recompute_layers;
        plan.recompute_modules =
            recompute == RECOMPUTE_SELECTIVE ? plan_default_modules(scenario) : 0;
        arena_reset(&w->arena);
        plan_visit(w, &plan,
                   arena_printf(&w->arena, "recompute %s instead of %s", RECOMPUTE_NAMES[recompute],
                                recompute_text(w)));
    }
    for (int stage = 0; stage <= 3; stage++) {
        Plan plan = *w->plan;
        if (stage == plan.zero_stage) continue;
        plan.zero_stage = stage;
        arena_reset(&w->arena);
        plan_visit(
            w, &plan,
            arena_printf(&w->arena, "zero_stage %d instead of %d", stage, w->plan->zero_stage));
    }
    if (w->plan->zero_stage == 3) {
        Plan plan = *w->plan;
        plan.reshard_after_forward = !plan.reshard_after_forward;
        arena_reset(&w->arena);
        plan_visit(w, &plan,
                   plan.reshard_after_forward ? "reshard_after_forward true instead of false"
                                              : "reshard_after_forward false instead of true");
    }
    for (int kind = 0; kind < NUM_SCHEDULES && w->plan->pp > 1; kind++) {
        Plan plan = *w->plan;
        if (kind == (int)plan.schedule) continue;
        plan.schedule = (ScheduleKind)kind;
        if (plan_is_dual(&plan)) continue; // its chunks are other ones
        arena_reset(&w->arena);
        plan_visit(w, &plan,
                   arena_printf(&w->arena, "schedule %s instead of %s", SCHEDULE_NAMES[kind],
                                SCHEDULE_NAMES[w->plan->schedule]));
    }
}

// Fewer layers of each stage recomputed: one less than all of them or than the first, and half.
static void layers_visit(Walk *w) {
    const bool all = w->plan->recompute_layers == ABSENT;
    int most = w->plan->recompute_layers;
    if (w->plan->recompute == RECOMPUTE_NONE || w->plan->layers) return;
    if (all) most = plan_fullest_rank(w->plan);
    for (int half = 0; half < 2; half++) {
        Plan plan = *w->plan;
        plan.recompute_layers = half ? most / 2 : most - 1;
        if (plan.recompute_layers < 1 || (half && most / 2 == most - 1)) continue;
        arena_reset(&w->arena);
        plan_visit(w, &plan,
                   arena_printf(&w->arena, "recompute_layers %d instead of %s%d",
                                plan.recompute_layers, all ? "all " : "", most));
    }
}

// The next larger and the next smaller number of ranks that share the shards.
static void groups_visit(Walk *w) {
    int groups[SPACE_MAX_ZERO_GROUPS];
    Scenario open = *w->scenario;
    open.parallel.zero_group = ABSENT;
    const int num = space_zero_groups(&open, w->plan, w->plan->zero_stage, groups);
    for (int i = 0; i < num; i++) {
        const bool next_larger = i + 1 < num && groups[i + 1] == w->plan->zero_group;
        const bool next_smaller = i > 0 && groups[i - 1] == w->plan->zero_group;
        if (!next_larger && !next_smaller) continue;
        Plan plan = *w->plan;
        plan.zero_group = groups[i];
        arena_reset(&w->arena);
        plan_visit(
            w, &plan,
            arena_printf(&w->arena, "zero_group %d instead of %d", groups[i], w->plan->zero_group));
    }
}

void neighbours_visit(const Scenario *scenario, const Plan *plan, NeighbourVisit visit,
                      void *context) {
    // Chunks of dual pipelines are copies, an order from a file is of one number of ranks.
    if (plan_is_dual(plan) || plan->schedule_file) return;
    Walk w = {.scenario = scenario,
              .plan = plan,
              .visit = visit,
              .context = context,
              .pricing = group_pricing_start(scenario)};
    rules_in_force(scenario, &w.rules);
    degrees_visit(&w);
    factors_visit(&w);
    names_visit(&w);
    layers_visit(&w);
    groups_visit(&w);
    group_pricing_free(&w.pricing);
    arena_free(&w.arena);
}
