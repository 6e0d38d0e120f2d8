// planner/space/space_rules.h - which values of a dimension are worth configurations of their own:
// what the scenario states, else what makes a difference and its software can run. For space.c.
#pragma once

#include "plan/rule_check.h"
#include "plan/rule_values.h"
#include "planner/space/space.h"

// The rules that are still undecided at each level of a walk. A level is a group of variables that
// a walk decides at once (plan/rule_values.h), in the order of these groups.
typedef struct {
    RuleValues values;
    RuleSet groups[NUM_RULE_GROUPS];     // their variables
    RuleSet known[NUM_RULE_GROUPS + 1];  // before each level
    RuleList lists[NUM_RULE_GROUPS + 1]; // the same
} RuleLevels;

void rule_levels_start(const RulesInForce *rules, RuleLevels *out);

// Decides a group of variables as the plan has them, below the groups before it; what was known of
// those behind it is forgotten.
//   returns  whether the rules that are decided by now hold
bool rule_levels_enter(RuleLevels *levels, const Scenario *scenario, const Plan *plan, int group);

// What is open within one split.
typedef struct {
    const Scenario *scenario;
    struct {
        int level, group;                             // plan_zero_level
    } zeros[NUM_ZERO_LEVELS * SPACE_MAX_ZERO_GROUPS]; // [num_zeros] levels ascending, of each the
                                                      // largest group first
    int num_zeros;
    bool schedules[NUM_SCHEDULES], methods[NUM_CP_METHODS], recomputes[NUM_RECOMPUTES];
    bool first_layers; // some may be recomputed alone: recomputation that is stated is of all
                       // layers, or of as many as are stated
} SpaceOpen;

//   levels  up to RULE_GROUP_LAYOUT; rules that one of these dimensions decides alone are decided
//           here, and leave its list
void space_open_find(const Scenario *scenario, RuleLevels *levels, const Plan *base,
                     SpaceOpen *out);

// MODULE_* bits that go with a Recompute.
int space_modules(const Scenario *scenario, int recompute);

// Whether a schedule is open to a plan with these chunks; its legality is plan_check's.
bool space_has_schedule(const SpaceOpen *open, const Plan *plan, int kind);

// Whether some schedule is open that runs two pipelines against each other.
bool space_has_dual(const SpaceOpen *open);

// Most first layers of each stage that may be recomputed alone; 0 where none may be.
//   levels  all of the plan's
int space_most_layers(const SpaceOpen *open, RuleLevels *levels, const Plan *plan);
