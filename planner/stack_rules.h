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
    unsigned zero_groups;           // bit s: shards of ZeRO stage s on fewer than all replicas too
    unsigned first_layers;          // bit r: Recompute r of the first layers of a stage only
    bool first_layers_of_chunks;    // of one chunk a rank: else it counts the layers of each chunk
    unsigned schedules;             // bit k: ScheduleKind k, beside 1f1b and interleaved
    bool stages_alternate;          // order tp-cp-ep-pp-dp beside tp-cp-ep-dp-pp
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

// Whether the software can recompute the first layers of each stage of a plan alone.
bool stack_has_first_layers(const StackRules *rules, const Plan *plan);

// Whether the software has the plan's schedule, ZeRO stage and group, and recomputed layers.
bool stack_has_plan(const StackRules *rules, const Plan *plan);

// The numbers of ranks that may share the shards of a ZeRO stage, the largest first: all of dp x
// cp, then those of its divisors that the software can run (hybrid sharding). Left out are 1, which
// shards nothing, and where the software always shards over cp too what cuts a cp group, and dp,
// which there stands for all (plan_zero_group).
//   plan    its dp and cp
//   groups  [STACK_MAX_ZERO_GROUPS]
//   returns how many, >= 1; one where the scenario states it
enum { STACK_MAX_ZERO_GROUPS = 256 }; // divisors of a number below 2^20: 240 at most
int stack_zero_groups(const StackRules *rules, const Scenario *scenario, const Plan *plan,
                      int zero_stage, int *groups);

// The rules of the scenario's stack; one that allows everything where none are known.
const StackRules *stack_rules(const Scenario *scenario);
