// planner/why/rule_verdict.h - which rules of a software forbid what a scenario states.
//
// Model:  forbidden is what leaves no legal configuration, of all that the other keys leave free,
// as
//         long as every rule of the stack holds, those that a stated value would lift, too. A rule
//         forbids it if without that rule there would be one; where no rule does alone, those do
//         that a configuration breaks which is legal but for them.
#pragma once

#include "plan/rule_check.h"
#include "planner/harvest/harvest.h"

typedef struct {
    const Rule *rule;
    const Plan *plan; // legal but for the rules; NULL: of the scenario alone
} RuleCulprit;

typedef struct {
    bool forbidden;
    const RuleCulprit *culprits; // [num_culprits]
    int num_culprits;            // 0 where it is not forbidden, or not by a rule
    const Plan *plan;            // where it is allowed: a configuration
} RuleVerdict;

//   keys  [num_keys] that are asked about, as in Rule.key; rules of others that the scenario alone
//         breaks (of its model) do not count
void rule_verdict(const Scenario *scenario, const char *const *keys, int num_keys, Arena *arena,
                  RuleVerdict *out);

// Whether a legal configuration is left that obeys all rules.
bool rules_leave_any(const Scenario *scenario, Arena *arena, Plan *found);

// The one rule without which the scenario would have a legal configuration, and that; false where
// there is none. Rules that stated values lift are lifted, as in any search.
bool rule_blame(const Scenario *scenario, Arena *arena, RuleCulprit *out);
