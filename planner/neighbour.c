#include "planner/neighbour.h"

#include "planner/stack_rules.h"

#include <stddef.h>

typedef struct {
    const Scenario *scenario;
    const StackRules *rules;
    const Plan *plan;
    NeighbourVisit visit;
    void *context;
    Arena arena; // of one neighbour
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

// What the software has no flag for is no advice.
static bool is_runnable(const Walk *w, const Plan *plan) {
    if (!stack_has_plan(w->rules, plan)) return false;
    if (w->rules->data_parallel_only && plan->tp * plan->pp * plan->cp > 1) return false;
    if (plan->cp > 1 && !stack_has_cp(w->rules, &w->scenario->model, plan->cp_method)) return false;
    const bool whole = plan->num_microbatches % plan->pp == 0;
    return plan->schedule != SCHEDULE_INTERLEAVED || whole || !w->rules->whole_groups;
}

// Completes a changed plan and visits it where it is legal.
static void plan_visit(Walk *w, Plan *plan, const char *change) {
    const Scenario *scenario = w->scenario;
    plan->sequence_parallel = w->plan->sequence_parallel && plan->tp > 1;
    if (w->plan->tp == 1) plan->sequence_parallel = plan->tp > 1;
    plan->zero_group = plan_zero_group(scenario, plan->dp, plan->cp);
    plan->num_chunks = plan->pp * plan->vpp;
    if (plan->num_chunks != w->plan->num_chunks &&
        plan_default_chunks(&scenario->model, plan->num_chunks, &w->arena, &plan->chunks).code !=
            STATUS_OK)
        return;
    plan_derive(scenario, plan);
    if (plan_check(scenario, plan).code == STATUS_OK && is_runnable(w, plan))
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
    if (plan->schedule == SCHEDULE_INTERLEAVED && plan->vpp == 1) plan->schedule = SCHEDULE_1F1B;
    if (plan->schedule == SCHEDULE_1F1B && plan->vpp > 1) plan->schedule = SCHEDULE_INTERLEAVED;
}

static void factors_visit(Walk *w) {
    for (int i = 0; i < NUM_FACTORS; i++)
        for (int twice = 0; twice < 2; twice++) {
            Plan plan = *w->plan;
            int *value = number_of(&plan, &FACTORS[i]);
            if (!twice && *value % 2 != 0) continue;
            *value = twice ? *value * 2 : *value / 2;
            schedule_follow(&plan);
            arena_reset(&w->arena);
            plan_visit(w, &plan, number_text(w, &plan, &FACTORS[i]));
        }
}

static void names_visit(Walk *w) {
    const Scenario *scenario = w->scenario;
    for (int recompute = 0; recompute < NUM_RECOMPUTES; recompute++) {
        Plan plan = *w->plan;
        if (recompute == (int)plan.recompute) continue;
        plan.recompute = (Recompute)recompute;
        plan.recompute_modules =
            recompute == RECOMPUTE_SELECTIVE ? plan_default_modules(scenario) : 0;
        arena_reset(&w->arena);
        plan_visit(w, &plan,
                   arena_printf(&w->arena, "recompute %s instead of %s", RECOMPUTE_NAMES[recompute],
                                RECOMPUTE_NAMES[w->plan->recompute]));
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

void neighbours_visit(const Scenario *scenario, const Plan *plan, NeighbourVisit visit,
                      void *context) {
    // Chunks of dual pipelines are copies, an order from a file is of one number of ranks.
    if (plan_is_dual(plan) || plan->schedule_file) return;
    Walk w = {.scenario = scenario,
              .rules = stack_rules(scenario),
              .plan = plan,
              .visit = visit,
              .context = context};
    degrees_visit(&w);
    factors_visit(&w);
    names_visit(&w);
    arena_free(&w.arena);
}
