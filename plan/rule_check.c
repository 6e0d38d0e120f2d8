#include "plan/rule_check.h"

#include "plan/rule_values.h"

#include <string.h>

static const RuleTable *table_of(const Scenario *scenario) {
    static const RuleTable NONE = {.name = "", .software = ""};
    return scenario->execution.stack.rules ? scenario->execution.stack.rules : &NONE;
}

// --- What the scenario states

static int value_or(int given, int otherwise) {
    return given == ABSENT ? otherwise : given;
}

static void stated_number(int given, RuleVariable variable, RuleValues *values) {
    if (given != ABSENT) rule_set_value(values, variable, given);
}

// The plan's variables that no choice is left of.
static void stated_add(const Scenario *scenario, RuleValues *values) {
    const ParallelSpec *spec = &scenario->parallel;
    PlanOrder order;
    stated_number(spec->tp, RULE_TP, values);
    stated_number(spec->pp, RULE_PP, values);
    stated_number(spec->cp, RULE_CP, values);
    stated_number(spec->dp, RULE_DP, values);
    stated_number(spec->ep, RULE_EP, values);
    stated_number(spec->etp, RULE_ETP, values);
    stated_number(spec->vpp, RULE_VPP, values);
    stated_number(spec->micro_batch, RULE_MICRO_BATCH, values);
    stated_number(spec->sequence_parallel, RULE_SEQUENCE_PARALLEL, values);
    stated_number(spec->zero_stage, RULE_ZERO_STAGE, values);
    stated_number(spec->zero_group, RULE_ZERO_GROUP, values);
    stated_number(spec->cp_method, RULE_CP_METHOD, values);
    stated_number(spec->schedule, RULE_SCHEDULE, values);
    if (spec->reshard_after_forward != ABSENT ||
        !stack_keeps_gathered(&scenario->execution.stack)) // else it is searched
        rule_set_value(values, RULE_RESHARD_AFTER_FORWARD, spec->reshard_after_forward != 0);
    if (spec->order && plan_order_find(scenario, &order).code == STATUS_OK)
        rule_set_value(values, RULE_ORDER, order);
    if (spec->micro_batch != ABSENT && spec->dp != ABSENT)
        rule_set_value(values, RULE_NUM_MICROBATCHES,
                       scenario->training.global_batch / ((int64_t)spec->micro_batch * spec->dp));
    if (spec->recompute == ABSENT) return;
    const Plan plan = {.recompute = (Recompute)spec->recompute,
                       .recompute_modules =
                           value_or(spec->recompute_modules, plan_default_modules(scenario)),
                       .recompute_layers = spec->recompute_layers};
    rule_values_add(scenario, &plan, RULE_GROUP_RECOMPUTE, values);
    rule_set_value(values, RULE_SOME_LAYERS,
                   spec->recompute != RECOMPUTE_NONE && spec->recompute_layers != ABSENT);
}

// Whether the scenario states the value of a rule's key.
static bool key_is_stated(const Scenario *scenario, const char *key) {
    const char *name = strchr(key, '.');
    if (strncmp(key, "parallel.", 9) != 0) return false; // its value is never open
    const ParallelSpec *spec = &scenario->parallel;
    const struct {
        const char *name;
        bool stated;
    } KEYS[] = {{"tp", spec->tp != ABSENT},
                {"pp", spec->pp != ABSENT},
                {"cp", spec->cp != ABSENT},
                {"dp", spec->dp != ABSENT},
                {"ep", spec->ep != ABSENT},
                {"etp", spec->etp != ABSENT},
                {"vpp", spec->vpp != ABSENT},
                {"micro_batch", spec->micro_batch != ABSENT},
                {"sequence_parallel", spec->sequence_parallel != ABSENT},
                {"zero_stage", spec->zero_stage != ABSENT},
                {"zero_group", spec->zero_group != ABSENT},
                {"reshard_after_forward", spec->reshard_after_forward != ABSENT},
                {"recompute", spec->recompute != ABSENT},
                {"recompute_modules", spec->recompute_modules != ABSENT},
                {"recompute_layers", spec->recompute_layers != ABSENT},
                {"schedule", spec->schedule != ABSENT},
                {"cp_method", spec->cp_method != ABSENT},
                {"order", spec->order != NULL},
                {"stages", spec->stages != NULL},
                {"vocab_parallel", spec->vocab_parallel != ABSENT},
                {"layers", spec->num_layer_overrides > 0}};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (strcmp(KEYS[i].name, name + 1) == 0) return KEYS[i].stated;
    return false;
}

void rules_in_force(const Scenario *scenario, RulesInForce *out) {
    const RuleTable *table = table_of(scenario);
    RuleValues stated;
    out->never = NULL;
    out->list.num_rules = 0;
    rule_values_start(scenario, &out->values);
    rule_set_value(&out->values, RULE_LAYERS_DIFFER, scenario->parallel.num_layer_overrides > 0);
    stated = out->values;
    stated_add(scenario, &stated);
    for (int i = 0; i < table->num_rules; i++) {
        const Rule *rule = &table->rules[i];
        if (rule_condition_holds(&rule->holds, &out->values) == RULE_TRUE) continue;
        const RuleAnswer answer = rule_condition_holds(&rule->holds, &stated);
        if (answer == RULE_FALSE && rule->stops && !out->never) out->never = rule;
        const bool fixed = rule_condition_holds(&rule->holds, &out->values) == RULE_FALSE;
        const bool lifted =
            fixed || (!table->strict && (answer == RULE_FALSE ||
                                         (!rule->firm && key_is_stated(scenario, rule->key))));
        if (!rule->stops && lifted) continue;
        out->list.rules[out->list.num_rules++] = rule;
    }
}

// --- Complete plans

bool plan_obeys(const Scenario *scenario, const RulesInForce *rules, const Plan *plan) {
    RuleValues values = rules->values;
    for (int group = 0; group < NUM_RULE_GROUPS; group++)
        rule_values_add(scenario, plan, group, &values);
    for (int i = 0; i < rules->list.num_rules; i++)
        if (rule_condition_holds(&rules->list.rules[i]->holds, &values) == RULE_FALSE) return false;
    return true;
}

static int broken_rules(const RuleTable *table, const RuleValues *values, const Rule **broken) {
    int num = 0;
    for (int stops = 1; stops >= 0; stops--)
        for (int i = 0; i < table->num_rules; i++) {
            const Rule *rule = &table->rules[i];
            if (rule->stops == (stops == 1) &&
                rule_condition_holds(&rule->holds, values) == RULE_FALSE)
                broken[num++] = rule;
        }
    return num;
}

int plan_broken_rules(const Scenario *scenario, const RuleTable *table, const Plan *plan,
                      const Rule **broken) {
    RuleValues values;
    rule_values_complete(scenario, plan, &values);
    return broken_rules(table ? table : table_of(scenario), &values, broken);
}

int scenario_broken_rules(const Scenario *scenario, const RuleTable *table, const Rule **broken) {
    RuleValues values;
    rule_values_start(scenario, &values);
    return broken_rules(table ? table : table_of(scenario), &values, broken);
}

Status plan_check_rules(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Rule *broken[RULES_MAX];
    if (plan_broken_rules(scenario, NULL, plan, broken) == 0 || !broken[0]->stops)
        return status_ok();
    return rule_refusal(STATUS_INVALID, scenario, plan, broken[0], arena);
}

// --- Legal values

typedef struct {
    const char *key;
    RuleVariable variable;
} KeyVariable;

// Keys whose values are the values of a variable.
static const KeyVariable KEY_VARIABLES[] = {
    {"parallel.tp", RULE_TP},
    {"parallel.pp", RULE_PP},
    {"parallel.cp", RULE_CP},
    {"parallel.ep", RULE_EP},
    {"parallel.etp", RULE_ETP},
    {"parallel.vpp", RULE_VPP},
    {"parallel.zero_stage", RULE_ZERO_STAGE},
    {"parallel.cp_method", RULE_CP_METHOD},
    {"parallel.schedule", RULE_SCHEDULE},
    {"parallel.order", RULE_ORDER},
    {"parallel.recompute", RULE_RECOMPUTE},
    {"parallel.sequence_parallel", RULE_SEQUENCE_PARALLEL},
    {"training.precision", RULE_PRECISION},
    {"training.fp8_recipe", RULE_FP8_RECIPE},
    {"training.optimizer", RULE_OPTIMIZER},
    {"training.optimizer_dtype", RULE_OPTIMIZER_DTYPE},
    {"training.grad_reduce_dtype", RULE_GRAD_REDUCE_DTYPE},
    {"training.grad_reduce", RULE_GRAD_REDUCE},
    {"training.attention", RULE_ATTENTION},
    {"training.moe_dispatcher", RULE_MOE_DISPATCHER},
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) {"training." #key, RULE_##kind},
#include "config/software/techniques.def"
    {"training.compile", RULE_COMPILE},
    {"training.cross_entropy_fused", RULE_CROSS_ENTROPY_FUSED},
    {"training.causal", RULE_CAUSAL},
};

static int key_variable(const char *key) {
    for (size_t i = 0; i < sizeof KEY_VARIABLES / sizeof *KEY_VARIABLES; i++)
        if (strcmp(KEY_VARIABLES[i].key, key) == 0) return (int)KEY_VARIABLES[i].variable;
    return -1;
}

// Whether a scenario may state it.
static bool value_is_read(int variable, int value) {
    if (variable == RULE_GRAD_REDUCE && value == GRAD_REDUCE_PIPELINE) return false;
    const bool kept = variable == RULE_OPTIMIZER_DTYPE || variable == RULE_GRAD_REDUCE_DTYPE;
    return !kept || value == PRECISION_FP32 || value == PRECISION_BF16;
}

enum { MAX_LISTED = 12 };

// The values of a variable with which the rule holds, all else as it is: 1 and what divides the
// value refused, of a number.
static int legal_values(const Rule *rule, const RuleValues *values, int variable, int64_t *legal) {
    int num = 0;
    const RuleVariableKind *kind = &RULE_VARIABLES[variable];
    const int64_t found = values->value[variable];
    const int64_t most = kind->names ? 64 : variable == RULE_ZERO_STAGE ? 3 : 4 * found;
    for (int64_t v = kind->names || variable == RULE_ZERO_STAGE ? 0 : 1; v <= most; v++) {
        if (kind->names && !kind->names[v]) break;
        if (v == found || num == MAX_LISTED || !value_is_read(variable, (int)v)) continue;
        const bool step =
            kind->names || variable == RULE_ZERO_STAGE || found % v == 0 || v % found == 0;
        RuleValues changed = *values;
        changed.value[variable] = v;
        if (step && rule_condition_holds(&rule->holds, &changed) == RULE_TRUE) legal[num++] = v;
    }
    return num;
}

static void values_of(const Scenario *scenario, const Plan *plan, RuleValues *out) {
    if (plan)
        rule_values_complete(scenario, plan, out);
    else
        rule_values_start(scenario, out);
}

const char *rule_legal_text(const Scenario *scenario, const Plan *plan, const Rule *rule,
                            Arena *arena) {
    RuleValues values;
    values_of(scenario, plan, &values);
    if (rule->legal.num_pieces > 0) return rule_text_print(&rule->legal, &values, arena);
    const int variable = key_variable(rule->key);
    int64_t legal[MAX_LISTED];
    if (variable < 0 || !rule_set_has(values.known, variable)) return "";
    const int num = legal_values(rule, &values, variable, legal);
    const char *text = "";
    for (int i = 0; i < num; i++) {
        const char *const *names = RULE_VARIABLES[variable].names;
        const char *value =
            names ? names[legal[i]] : arena_printf(arena, "%lld", (long long)legal[i]);
        const char *before = i == 0 ? "" : i == num - 1 ? " or " : ", ";
        text = arena_printf(arena, "%s%s%s", text, before, value);
    }
    return text;
}

// --- Text

const char *rule_says_text(const Scenario *scenario, const Plan *plan, const Rule *rule,
                           Arena *arena) {
    RuleValues values;
    values_of(scenario, plan, &values);
    return rule_text_print(&rule->says, &values, arena);
}

const char *rule_sentence(const Scenario *scenario, const Plan *plan, const Rule *rule,
                          Arena *arena) {
    const char *legal = rule_legal_text(scenario, plan, rule, arena);
    return arena_printf(arena, "%s%s%s", rule_says_text(scenario, plan, rule, arena),
                        legal[0] ? "; expected " : "", legal);
}

const char *rule_name_text(const RuleTable *table, const Rule *rule, Arena *arena) {
    return arena_printf(arena, "(rule %s/%s: %s)", table->name, rule->id,
                        rule_source_text(rule, arena));
}

Status rule_refusal(StatusCode code, const Scenario *scenario, const Plan *plan, const Rule *rule,
                    Arena *arena) {
    return status_at(code, scenario->file, rule->key, "%s %s",
                     rule_sentence(scenario, plan, rule, arena),
                     rule_name_text(table_of(scenario), rule, arena));
}
