#include "planner/why/rule_verdict.h"

#include "planner/why/relax.h"

#include <string.h>

// The scenario with these rules only.
static Scenario scenario_with(const Scenario *scenario, const Rule *rules, int num_rules,
                              bool strict, Arena *arena) {
    Scenario changed = *scenario;
    RuleTable *table = ARENA_NEW(arena, RuleTable);
    if (scenario->execution.stack.rules) *table = *scenario->execution.stack.rules;
    table->rules = rules;
    table->num_rules = num_rules;
    table->strict = strict;
    changed.execution.stack.rules = table;
    return changed;
}

static Scenario scenario_without(const Scenario *scenario, int left_out, bool strict,
                                 Arena *arena) {
    const RuleTable *table = scenario->execution.stack.rules;
    Rule *rules = ARENA_ARRAY(arena, table->num_rules, Rule);
    int num = 0;
    for (int i = 0; i < table->num_rules; i++)
        if (i != left_out) rules[num++] = table->rules[i];
    return scenario_with(scenario, rules, num, strict, arena);
}

bool rules_leave_any(const Scenario *scenario, Arena *arena, Plan *found) {
    const RuleTable *table = scenario->execution.stack.rules;
    if (!table) return relax_reaches(scenario, HARVEST_LEGAL, 1, arena, found);
    const Scenario strict = scenario_with(scenario, table->rules, table->num_rules, true, arena);
    return relax_reaches(&strict, HARVEST_LEGAL, 1, arena, found);
}

static void culprit_add(RuleVerdict *verdict, RuleCulprit *culprits, const Rule *rule,
                        const Plan *plan, Arena *arena) {
    Plan *kept = NULL;
    if (plan) {
        kept = ARENA_NEW(arena, Plan);
        *kept = *plan;
    }
    culprits[verdict->num_culprits++] = (RuleCulprit){rule, kept};
}

static bool key_is_asked(const char *key, const char *const *keys, int num_keys) {
    for (int i = 0; i < num_keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

// Whether a rule is one that some plan of the scenario may break.
static bool is_open(const Scenario *scenario, const Rule *rule) {
    RulesInForce rules;
    rules_in_force(scenario, &rules);
    for (int i = 0; i < rules.list.num_rules; i++)
        if (strcmp(rules.list.rules[i]->id, rule->id) == 0) return true;
    return false;
}

// The rules that forbid it alone, else those that all together do.
static void culprits_find(const Scenario *scenario, RuleCulprit *culprits, Arena *arena,
                          RuleVerdict *out) {
    const RuleTable *table = scenario->execution.stack.rules;
    const Scenario strict = scenario_with(scenario, table->rules, table->num_rules, true, arena);
    Plan plan;
    for (int i = 0; i < table->num_rules; i++) {
        if (!is_open(&strict, &table->rules[i])) continue;
        const Scenario without = scenario_without(scenario, i, true, arena);
        if (relax_reaches(&without, HARVEST_LEGAL, 1, arena, &plan))
            culprit_add(out, culprits, &table->rules[i], &plan, arena);
    }
    if (out->num_culprits > 0) return;
    const Scenario without = scenario_with(scenario, table->rules, 0, true, arena);
    if (!relax_reaches(&without, HARVEST_LEGAL, 1, arena, &plan)) return;
    const Rule *broken[RULES_MAX];
    const int num = plan_broken_rules(scenario, table, &plan, broken);
    for (int i = 0; i < num; i++)
        if (is_open(&strict, broken[i])) culprit_add(out, culprits, broken[i], &plan, arena);
}

void rule_verdict(const Scenario *scenario, const char *const *keys, int num_keys, Arena *arena,
                  RuleVerdict *out) {
    *out = (RuleVerdict){0};
    RuleCulprit *culprits = ARENA_ARRAY(arena, RULES_MAX, RuleCulprit);
    const Rule *broken[RULES_MAX];
    out->culprits = culprits;
    if (scenario->execution.stack.rules) {
        const int num = scenario_broken_rules(scenario, NULL, broken);
        for (int i = 0; i < num; i++)
            if (key_is_asked(broken[i]->key, keys, num_keys))
                culprit_add(out, culprits, broken[i], NULL, arena);
    }
    Plan found;
    out->forbidden = out->num_culprits > 0 || !rules_leave_any(scenario, arena, &found);
    if (!out->forbidden) {
        Plan *kept = ARENA_NEW(arena, Plan);
        *kept = found;
        out->plan = kept;
    } else if (out->num_culprits == 0 && scenario->execution.stack.rules) {
        culprits_find(scenario, culprits, arena, out);
    }
}

bool rule_blame(const Scenario *scenario, Arena *arena, RuleCulprit *out) {
    const RuleTable *table = scenario->execution.stack.rules;
    Plan *plan = ARENA_NEW(arena, Plan);
    *out = (RuleCulprit){0};
    if (!table) return false;
    for (int i = 0; i < table->num_rules; i++) {
        if (!is_open(scenario, &table->rules[i])) continue;
        const Scenario without = scenario_without(scenario, i, false, arena);
        if (!relax_reaches(&without, HARVEST_LEGAL, 1, arena, plan)) continue;
        *out = (RuleCulprit){&table->rules[i], plan};
        return true;
    }
    return false;
}
