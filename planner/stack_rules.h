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
    unsigned schedules;             // bit k: ScheduleKind k, beside 1f1b and interleaved
    bool whole_groups;              // interleaving needs a multiple of pp micro-batches
    bool whole_kv_heads;            // tp divides the key and value heads
    // bit m: no CpMethod m at all, where layers have a sliding window, or with MLA
    unsigned refused_cp, refused_cp_windowed, refused_cp_mla;
    const char *source;
} StackRules;

// Whether the software can split sequences of this model over cp > 1 by this method.
bool stack_has_cp(const StackRules *rules, const Model *model, CpMethod method);
bool stack_has_any_cp(const StackRules *rules, const Model *model);

// Whether the software has the schedule.
bool stack_has_schedule(const StackRules *rules, ScheduleKind kind);

// Whether the software has the plan's schedule and ZeRO stage.
bool stack_has_plan(const StackRules *rules, const Plan *plan);

// The rules of the scenario's stack; one that allows everything where none are known.
const StackRules *stack_rules(const Scenario *scenario);
