// Every rule of every table refuses a scenario that only it refuses, and leaves one that is like
// it.
#include "base/data_dir.h"
#include "config/software/rules.h"
#include "plan/rule_check.h"
#include "plan/rule_values.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The members of `over` replace or join those of `document`; null takes one away.
static void merge(cJSON *document, const cJSON *over) {
    for (const cJSON *item = over->child; item; item = item->next) {
        cJSON *old = cJSON_GetObjectItemCaseSensitive(document, item->string);
        if (old && cJSON_IsObject(old) && cJSON_IsObject(item)) {
            merge(old, item);
            continue;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(document, item->string);
        if (!cJSON_IsNull(item))
            cJSON_AddItemToObject(document, item->string, cJSON_Duplicate(item, true));
    }
}

// Facts are variables that an example states by themselves.
static void facts_set(const cJSON *facts, RuleValues *values) {
    for (const cJSON *item = facts ? facts->child : NULL; item; item = item->next) {
        const int variable = rule_variable_find(item->string);
        CU_ASSERT_TRUE_FATAL(variable >= 0);
        int64_t value = cJSON_IsNumber(item) ? (int64_t)item->valuedouble : cJSON_IsTrue(item);
        if (cJSON_IsString(item))
            for (value = 0; strcmp(RULE_VARIABLES[variable].names[value], item->valuestring) != 0;)
                CU_ASSERT_PTR_NOT_NULL_FATAL(RULE_VARIABLES[variable].names[++value]);
        rule_set_value(values, (RuleVariable)variable, value);
    }
}

typedef struct {
    const char *stack;
    const RuleTable *table;
    Arena *arena;
} Case;

// The scenario and plan of an example as variables.
static bool values_of(const Case *c, const Rule *rule, bool obeys, RuleValues *out) {
    const char *text = scenario_text(
        c->arena, "\"llama-3.1-8b\"", "\"dgx-h100:2\"",
        arena_printf(c->arena, "{\"seq_len\": 4096, \"global_batch\": 64, \"stack\": \"%s\"}",
                     c->stack),
        "{}");
    cJSON *document = cJSON_Parse(text);
    merge(document, rule->breaks);
    if (obeys) merge(document, rule->obeys);
    cJSON *facts = cJSON_DetachItemFromObjectCaseSensitive(document, "facts");
    char *printed = cJSON_PrintUnformatted(document);
    Scenario scenario;
    Plan plan;
    Status status = scenario_of(printed, c->arena, &scenario);
    if (status.code == STATUS_OK) {
        const RuleTable *rules = scenario.execution.stack.rules;
        scenario.execution.stack.rules = NULL; // or what stops it is refused before it is a plan
        status = plan_resolve(&scenario, c->arena, &plan);
        scenario.execution.stack.rules = rules;
    }
    if (status.code == STATUS_OK) {
        rule_values_complete(&scenario, &plan, out);
        facts_set(facts, out);
    } else {
        printf("%s/%s: %s\n", c->table->name, rule->id, status.text);
    }
    free(printed);
    cJSON_Delete(facts);
    cJSON_Delete(document);
    return status.code == STATUS_OK;
}

// The rules of the table that do not hold: "a, b".
static const char *broken_of(const Case *c, const RuleValues *values) {
    const char *list = "";
    for (int i = 0; i < c->table->num_rules; i++) {
        const Rule *rule = &c->table->rules[i];
        const RuleAnswer answer = rule_condition_holds(&rule->holds, values);
        if (answer == RULE_FALSE)
            list = arena_printf(c->arena, "%s%s%s", list, list[0] ? ", " : "", rule->id);
        CU_ASSERT_NOT_EQUAL(answer, RULE_UNDECIDED);
    }
    return list;
}

static void claim(const Case *c, const Rule *rule, bool obeys, const char *expected) {
    RuleValues values;
    if (!values_of(c, rule, obeys, &values)) {
        CU_FAIL("an example is no scenario");
        return;
    }
    const char *broken = broken_of(c, &values);
    if (strcmp(broken, expected) != 0)
        printf("%s/%s: %s breaks \"%s\"\n", c->table->name, rule->id, obeys ? "obeys" : "breaks",
               broken);
    CU_ASSERT_STRING_EQUAL(broken, expected);
}

static void table_claim(const char *name, const char *stack) {
    Arena arena = {0};
    const RuleTable *table;
    const Status status = rules_load(name, &arena, &table);
    if (status.code != STATUS_OK) printf("%s\n", status.text);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(table->name, name);
    for (int i = 0; i < table->num_rules; i++) {
        Arena own = {0};
        const Case c = {stack, table, &own};
        claim(&c, &table->rules[i], false, table->rules[i].id);
        claim(&c, &table->rules[i], true, "");
        arena_free(&own);
    }
    arena_free(&arena);
}

static void each_rule_refuses_what_only_it_refuses(void) {
    Arena arena = {0};
    const char *const *names;
    CU_ASSERT_EQUAL_FATAL(stack_names(&arena, &names).code, STATUS_OK);
    for (int i = 0; names[i]; i++) table_claim(names[i], names[i]);
    table_claim("for-nemo", "megatron-core");
    table_claim("for-deepspeed", "megatron-2021");
    arena_free(&arena);
}

// A message names the rule, the value, what is legal, and the place in the software.
static void a_refusal_names_all(void) {
    Arena arena = {0};
    Scenario scenario;
    Plan plan;
    const char *text = scenario_text(&arena, "\"llama-3.1-8b\"", "\"dgx-h100:2\"",
                                     "{\"seq_len\": 4096, \"global_batch\": 64}",
                                     "{\"cp\": 16, \"cp_method\": \"ulysses\"}");
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    ASSERT_REFUSED(
        plan_resolve(&scenario, &arena, &plan),
        "job.json: parallel.cp: 16 does not divide the 32 query and 8 key and value heads of a "
        "tensor-parallel rank (ulysses); expected 1, 2, 4 or 8 (rule megatron-core/ulysses-heads: "
        "NVIDIA/TransformerEngine@v2.9, transformer_engine/pytorch/attention/"
        "dot_product_attention/context_parallel.py, AttnFuncWithCPAndQKVOA2A.forward: the number "
        "of attention heads (of queries and of keys) needs to be divisible by CP size)");
    arena_free(&arena);
}

CU_TestInfo rule_tables_tests[] = {
    {"each_rule_refuses_what_only_it_refuses", each_rule_refuses_what_only_it_refuses},
    {"a_refusal_names_all", a_refusal_names_all},
    CU_TEST_INFO_NULL,
};
