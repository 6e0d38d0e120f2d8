// plan/rule_values.h - a scenario and a plan as the variables that rules speak of
// (config/software/rule_variables.h).
#pragma once

#include "config/software/rule_variables.h"
#include "plan/plan.h"

// All variables of the scenario but those that it leaves undecided; those of the plan are unknown.
void rule_values_start(const Scenario *scenario, RuleValues *out);

// Variables of a plan, by what a search decides at once. Each is set from its fields of the plan.
enum {
    RULE_GROUP_TP,
    RULE_GROUP_PP,
    RULE_GROUP_REPLICAS,  // cp, dp
    RULE_GROUP_EXPERTS,   // ep, etp, expert_dp
    RULE_GROUP_LAYOUT,    // order
    RULE_GROUP_BATCH,     // micro_batch, num_microbatches
    RULE_GROUP_METHOD,    // cp_method
    RULE_GROUP_CHUNKS,    // vpp and what the chunks hold
    RULE_GROUP_RECOMPUTE, // recompute, modules
    RULE_GROUP_LAYERS,    // some_layers, layers_differ
    RULE_GROUP_ZERO,      // zero_stage, zero_group, reshard_after_forward
    RULE_GROUP_SCHEDULE,
    NUM_RULE_GROUPS
};

void rule_values_add(const Scenario *scenario, const Plan *plan, int group, RuleValues *values);

// The variables of a group.
RuleSet rule_group_set(int group);

// All variables: of the scenario and of a complete plan.
void rule_values_complete(const Scenario *scenario, const Plan *plan, RuleValues *out);
