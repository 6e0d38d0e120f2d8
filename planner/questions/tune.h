// planner/questions/tune.h - the switches that a scenario leaves open, searched together with its
// plans.
//
// Method: branch and bound. Switches of which no value is best in general (dispatcher, FP8 recipe,
//         formats) are decided in all combinations; of the others, with which a plan is never
//         slower at their best value, that value is priced and their rules are left out of
//         account, until a plan is found that breaks them: only then are they decided one by one.
//         Every node is a search (planner/planner.h) for a plan that beats the best so far, which
//         its bounds mostly deny at once; the most promising come first. When all are through, no
//         combination has a better plan.
// Source: Land and Doig 1960, as in planner/planner.h.
// Limits: with a budget or a signal what was not searched is not bounded. Not on groups of
//         different machines, and by time or cost only.
#pragma once

#include "base/arena.h"
#include "planner/planner.h"
#include "planner/questions/switches.h"

typedef struct {
    SwitchChoice choices[MAX_SWITCHES]; // [num_choices] that differ from the scenario
    int num_choices;
    int num_open;             // switches that were free
    int64_t num_combinations; // of their values, what the stack cannot run among them
    int64_t num_searches;     // that this took, beside that of the scenario as it is
    bool proven;              // no combination has a better plan
    double wall_s;
} Tuning;

// The best combination for the scenario's objective. Its plan is found by searching the scenario
// with the choices applied (tuning_apply).
//   returns  STATUS_OK, also where nothing fits (no choices)
Status planner_tune(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    Tuning *out);

// "tuned": what was chosen, and of how many. The caller owns the tree.
cJSON *tuning_to_json(const Tuning *tuning);

// One sentence for people.
const char *tuning_text(const Tuning *tuning, const Execution *before, Arena *arena);
