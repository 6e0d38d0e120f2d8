// Scenarios and plans as variables.
#include "plan/rule_values.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

static void every_variable_of_a_plan_is_of_one_group(void) {
    int groups[NUM_RULE_VARIABLES] = {0};
    for (int group = 0; group < NUM_RULE_GROUPS; group++)
        for (int v = 0; v < NUM_RULE_VARIABLES; v++)
            groups[v] += rule_set_has(rule_group_set(group), v);
    for (int v = 0; v < NUM_RULE_VARIABLES; v++)
        CU_ASSERT_EQUAL(groups[v], v >= NUM_RULE_SCENARIO_VARIABLES);
}

static void a_complete_plan_leaves_nothing_unknown(void) {
    Arena arena = {0};
    Scenario scenario;
    Plan plan;
    RuleValues values;
    const char *text = scenario_text(&arena, "\"mixtral-8x7b\"", "\"dgx-h100:2\"",
                                     "{\"seq_len\": 4096, \"global_batch\": 64}",
                                     "{\"pp\": 2, \"vpp\": 2, \"ep\": 4, \"recompute\": "
                                     "\"selective\"}");
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &plan).code, STATUS_OK);
    rule_values_start(&scenario, &values);
    for (int v = 0; v < NUM_RULE_VARIABLES; v++)
        CU_ASSERT_EQUAL(rule_set_has(values.known, v), v < NUM_RULE_SCENARIO_VARIABLES);
    rule_values_complete(&scenario, &plan, &values);
    for (int v = 0; v < NUM_RULE_VARIABLES; v++) CU_ASSERT_TRUE(rule_set_has(values.known, v));
    CU_ASSERT_EQUAL(values.value[RULE_EXPERT_DP], 2);
    CU_ASSERT_EQUAL(values.value[RULE_NUM_MICROBATCHES], 8);
    CU_ASSERT_EQUAL(values.value[RULE_MODULE_CORE_ATTN], 1);
    CU_ASSERT_EQUAL(values.value[RULE_DENSE_MLP], 0);
    arena_free(&arena);
}

CU_TestInfo rule_values_tests[] = {
    {"every_variable_of_a_plan_is_of_one_group", every_variable_of_a_plan_is_of_one_group},
    {"a_complete_plan_leaves_nothing_unknown", a_complete_plan_leaves_nothing_unknown},
    CU_TEST_INFO_NULL,
};
