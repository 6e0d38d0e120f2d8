// planner/questions/switches.h - choices of the training software that a scenario may leave open:
// one row for each key of `training` that costs nothing to set.
//
// A row lists the values that the key can take. Which of them a stack can run is not said here but
// by the stack's rules; which of them make no difference to a plan is left to its price.
// Values with a caution change what is computed, if slightly: they are advice for people who can
// judge that, and are marked so wherever they are shown.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "config/software/rule_variables.h"

#include <stdbool.h>

enum { MAX_SWITCH_VALUES = 8, MAX_SWITCHES = 16 };

typedef struct {
    const char *key;                           // of `training`
    const char *const *values;                 // as the key spells them; ends with NULL
    bool is_bool;                              // values are "false", "true"
    bool (*matters)(const Scenario *scenario); // of this model and these formats; NULL: always
    int (*get)(const Execution *execution);    // which of the values; -1: another than these
    Status (*set)(Execution *execution, int value, Arena *arena);
    // The value with which no plan takes longer or needs more memory than with another, as far as
    // this model of the machine goes (tests/planner/test_switches.c draws plans); -1: none is.
    // What is left to decide is where a stack can run it.
    int best;
    RuleSet variables;   // of the stack's rules that speak of it
    const char *caution; // what another value changes beside speed; NULL: nothing
} SwitchRow;

extern const SwitchRow SWITCH_ROWS[]; // ends with a row without key

// A value of a row.
typedef struct {
    const SwitchRow *row;
    int value; // index into row->values
} SwitchChoice;

// The rows that the scenario's document leaves open and that matter for it, with the values that
// the scenario has: choices[i].value is what the row stands at.
//   choices  [MAX_SWITCHES]
//   returns  how many
int switches_open(const Scenario *scenario, SwitchChoice *choices);

// Whether the stack can run the scenario as its open switches stand: no rule that speaks of them
// forbids it whatever the plan. (What is stated may be priced although the stack lacks it; what is
// chosen for somebody may not.)
bool switches_run(const Scenario *scenario, const SwitchChoice *open, int num_open);

// The scenario with one more choice made. Its document is the old one (switch_to_json).
Status switch_apply(const Scenario *scenario, SwitchChoice choice, Arena *arena, Scenario *out);

// The value for the scenario's document: a string or a boolean. The caller owns it.
cJSON *switch_to_json(SwitchChoice choice);

// "moe_dispatcher deepep instead of alltoall".
const char *switch_text(SwitchChoice choice, const Execution *before, Arena *arena);
