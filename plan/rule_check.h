// plan/rule_check.h - a scenario and its plans against the rules of their software
// (config/software/rules.h).
#pragma once

#include "config/software/rules.h"
#include "plan/plan.h"

// The rules that bound the plans of a scenario, and its values.
//
// Left out are those that the scenario and what it states decide: what holds, and of what does not
// hold all but what stops the software. What the software lacks is priced where it is stated: a
// stated value of its key lifts a rule, unless the rule is firm and other keys can obey it.
typedef struct {
    RuleList list;
    RuleValues values; // of the scenario
    const Rule *never; // a rule that stops the software whatever the plan; NULL: none
} RulesInForce;

void rules_in_force(const Scenario *scenario, RulesInForce *out);

// Whether a complete plan obeys all of a list.
bool plan_obeys(const Scenario *scenario, const RulesInForce *rules, const Plan *plan);

// The rules of a table that a complete plan breaks, those that stop the software first.
//   broken   [RULES_MAX]
//   returns  how many
int plan_broken_rules(const Scenario *scenario, const RuleTable *table, const Plan *plan,
                      const Rule **broken);

// Refuses a complete plan that would stop its software with an error.
Status plan_check_rules(const Scenario *scenario, const Plan *plan, Arena *arena);

// The rules of the table that no plan of the scenario can obey: of the model, mostly.
int scenario_broken_rules(const Scenario *scenario, const RuleTable *table, const Rule **broken);

// "16 does not divide the 8 key and value heads; expected 1, 2, 4 or 8".
//   plan  NULL: of the scenario alone
const char *rule_sentence(const Scenario *scenario, const Plan *plan, const Rule *rule,
                          Arena *arena);

// The values of the rule's key with which it holds and no other rule of the software that held
// before is broken, as in "1, 2, 4 or 8". They are the rule's own words where it has some, and ""
// where there are none.
const char *rule_legal_text(const Scenario *scenario, const Plan *plan, const Rule *rule,
                            Arena *arena);

// rule_sentence without what would be legal.
const char *rule_says_text(const Scenario *scenario, const Plan *plan, const Rule *rule,
                           Arena *arena);

// "(rule megatron-core/ulysses-heads: NVIDIA/TransformerEngine@v2.9, ...)".
const char *rule_name_text(const RuleTable *table, const Rule *rule, Arena *arena);

// The refusal: "FILE: KEY: SENTENCE (rule ...)".
Status rule_refusal(StatusCode code, const Scenario *scenario, const Plan *plan, const Rule *rule,
                    Arena *arena);
