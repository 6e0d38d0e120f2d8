#include "launch/task.h"

#include "plan/rule_check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void task_add_variable(LaunchTask *task, const char *name, const char *value, const char *why) {
    assert(task->num_variables < TASK_MAX_VARIABLES);
    task->variables[task->num_variables++] = (LaunchVariable){name, value, why};
}

void task_add_note(LaunchTask *task, Arena *arena, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (task->num_notes < TASK_MAX_NOTES)
        task->notes[task->num_notes++] = arena_strdup(arena, text);
}

// Who starts what the plan was priced for.
static const char *other_target(const Scenario *scenario, Arena *arena) {
    const RuleTable *table = scenario->execution.stack.rules;
    if (!table || !table->launch[0])
        return arena_printf(arena, "; nothing here starts %s", scenario->execution.stack.name);
    return arena_printf(arena, ", or start it --for %s", table->launch[0]);
}

static Status rules_check(const Scenario *scenario, const Plan *plan, const RuleTable *table,
                          const char *software, Arena *arena) {
    const Rule *broken[RULES_MAX];
    if (plan_broken_rules(scenario, table, plan, broken) == 0) return status_ok();
    const Rule *rule = broken[0];
    const char *legal = rule_legal_text(scenario, plan, rule, arena);
    const char *says = rule_says_text(scenario, plan, rule, arena);
    const char *name = rule_name_text(table, rule, arena);
    if (strcmp(rule->key, "model") == 0 && !legal[0])
        return status_at(STATUS_INVALID, scenario->file, rule->key, "%s %s", says, name);
    return status_at(STATUS_INVALID, scenario->file, rule->key,
                     "%s: %s cannot run this plan as priced%s%s %s", says, software,
                     legal[0] ? "; nearest: " : "", legal, name);
}

// A model that the software has no layers for is none to plan again with.
static Status model_check(const Scenario *scenario, const Plan *plan, const RuleTable *table,
                          Arena *arena) {
    const Rule *broken[RULES_MAX];
    const int num = plan_broken_rules(scenario, table, plan, broken);
    for (int i = 0; i < num; i++)
        if (strcmp(broken[i]->key, "model") == 0)
            return status_at(STATUS_INVALID, scenario->file, "model", "%s %s%s",
                             rule_says_text(scenario, plan, broken[i], arena),
                             rule_name_text(table, broken[i], arena),
                             other_target(scenario, arena));
    return status_ok();
}

Status task_check_rules(const Scenario *scenario, const Plan *plan, const char *software,
                        const char *stack, const char *target, bool alone, Arena *arena) {
    const bool is_other = strcmp(scenario->execution.stack.name, stack) != 0;
    const RuleTable *own = NULL, *others = NULL;
    if (target) TRY(rules_load(target, arena, &own));
    if (is_other) TRY(rules_load(target ? target : stack, arena, &others));
    if (others) TRY(model_check(scenario, plan, others, arena));
    if (is_other)
        return status_at(STATUS_INVALID, scenario->file, "training.stack",
                         "the plan is priced for %s, and %s would run it otherwise: plan again "
                         "with training.stack %s%s",
                         scenario->execution.stack.name, software, stack,
                         other_target(scenario, arena));
    if (!alone && scenario->execution.stack.rules)
        TRY(rules_check(scenario, plan, scenario->execution.stack.rules, software, arena));
    return own ? rules_check(scenario, plan, own, software, arena) : status_ok();
}

Status task_refuse(const Scenario *scenario, const char *software, const char *path,
                   const char *nearest, const char *format, va_list args) {
    char sentence[300];
    vsnprintf(sentence, sizeof sentence, format, args);
    return status_at(STATUS_INVALID, scenario->file, path,
                     "%s: %s cannot run this plan as priced; nearest: %s", sentence, software,
                     nearest);
}
