// planner/stack_rules.h - what the software of a scenario can run: the search proposes nothing
// else.
//
// These rules bound the space, they are not legality: what the scenario gives is priced even where
// its software has no flag for it.
#pragma once

#include "config/scenario.h"
#include "plan/plan.h"

#include <stdbool.h>

typedef struct {
    const char *stack;
    unsigned zero_stages;           // bit s: ZeRO stage s without a pipeline
    unsigned zero_stages_pipelined; // with pp > 1
    bool data_parallel_only;        // no tp, cp, pp
    bool gpipe;                     // has the schedule
    bool whole_groups;              // interleaving needs a multiple of pp micro-batches
    bool whole_kv_heads;            // tp divides the key and value heads
    const char *source;
} StackRules;

// The rules of the scenario's stack; one that allows everything where none are known.
const StackRules *stack_rules(const Scenario *scenario);
