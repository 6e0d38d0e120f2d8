// planner/questions/switch_advice.h - which open choices of the software would make the best plan
// faster.
//
// Method: every value of every open switch (planner/questions/switches.h) is tried on the plans of
// a result
//         and on the neighbours of the best (planner/questions/neighbour.h), where the stack's
//         rules allow it and the plan still fits. The choice that saves most is the first line; the
//         next is looked for on top of it, up to MAX_SWITCH_ADVICE. Savings below
//         SWITCH_MIN_GAIN_FRAC are none: within the noise of a comparison.
// Limits: choices are tried one by one, so that a pair that only helps together is not found, and
//         other plans than those are not looked at: `plan --tune` does both
//         (planner/questions/tune.h). What is said is reached by the plan named; a search may find
//         a faster one.
#pragma once

#include "base/arena.h"
#include "planner/planner.h"
#include "planner/questions/switches.h"

enum { MAX_SWITCH_ADVICE = 3 };
static const double SWITCH_MIN_GAIN_FRAC = 0.01;

typedef struct SwitchAdvice {
    SwitchChoice choice;
    const char *text;   // "moe_dispatcher deepep instead of alltoall"
    const char *change; // of the plan, where another is faster then: "ep 4 instead of 8"; or NULL
    double gain_frac;   // less time a step, on top of the choices before
    double step_time_s; // with all choices so far
} SwitchAdvice;

// Sets the result's `switches`. Nothing is set where energy or memory was the objective, on groups
// of different machines, and where nothing fits.
Status planner_advise_switches(const Scenario *scenario, const PlannerOptions *options,
                               Arena *arena, PlannerResult *result);

// "moe_dispatcher deepep instead of alltoall: 16 % faster".
const char *switch_advice_text(const SwitchAdvice *advice, Arena *arena);

// A member of "switches". The caller owns the tree.
cJSON *switch_advice_to_json(const SwitchAdvice *advice);
