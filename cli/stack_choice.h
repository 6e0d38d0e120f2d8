// cli/stack_choice.h - a software that can train the model, where the scenario states none and the
// default one cannot.
#pragma once

#include "config/job/scenario.h"

typedef struct {
    const char *note;    // sentences for people; NULL: the scenario's stack runs the model
    const char *refused; // the stack that cannot, and the rule that says so
    const char *rule, *reason;
    const char *stack; // that is planned for
    bool stated;       // by the scenario, so that no other is taken
    bool launchable;   // `launch` writes files for the model on that stack
} StackChoice;

// Chooses the first stack that can train the model, with a plan that fits, and for which `launch`
// writes files; where there is none, the first that can; else the scenario's own, as the closest.
// A stack that the scenario states stays.
//   out  the scenario to plan: with that stack, or as it was
Status stack_choose(const Scenario *scenario, Arena *arena, Scenario *out, StackChoice *choice);

// The member "stack" of an answer; NULL where nothing was chosen. The caller owns the tree.
cJSON *stack_choice_to_json(const StackChoice *choice);
