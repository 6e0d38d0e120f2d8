#include "planner/questions/switches.h"

#include "costmodel/step/estimate.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

enum { NUM_CASES = 90 };

static Estimate switch_estimate(const Scenario *scenario, SwitchChoice choice, const Plan *plan,
                                Arena *arena) {
    Scenario changed;
    Estimate estimate = {0};
    CU_ASSERT_EQUAL(switch_apply(scenario, choice, arena, &changed).code, STATUS_OK);
    CU_ASSERT_EQUAL(estimate_plan(&changed, plan, arena, &estimate, NULL).code, STATUS_OK);
    return estimate;
}

// On one plan: the best value against all others. Returns how many others took longer.
static int best_is_not_worse(const Scenario *scenario, const SwitchRow *row, const Plan *plan) {
    Arena arena = {0};
    int num_slower = 0;
    const Estimate best = switch_estimate(scenario, (SwitchChoice){row, row->best}, plan, &arena);
    for (int value = 0; row->values[value]; value++) {
        const Estimate other = switch_estimate(scenario, (SwitchChoice){row, value}, plan, &arena);
        CU_ASSERT(best.step_time_s <= other.step_time_s * (1 + 1e-12));
        CU_ASSERT(best.memory.device_bytes <= other.memory.device_bytes * (1 + 1e-12));
        num_slower += other.step_time_s > best.step_time_s;
    }
    arena_free(&arena);
    return num_slower;
}

static void a_best_value_is_never_worse(void) {
    int num_slower[MAX_SWITCHES] = {0};
    for (int number = 0; number < case_count(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        const PlannerOptions options = {.top = 8, .brief = true};
        const PlannerResult result = case_search(&scenario, &options, &arena);
        for (int r = 0; SWITCH_ROWS[r].key; r++) {
            const SwitchRow *row = &SWITCH_ROWS[r];
            if (row->best < 0 || (row->matters && !row->matters(&scenario))) continue;
            for (int i = 0; i < result.num_entries; i++)
                num_slower[r] += best_is_not_worse(&scenario, row, &result.entries[i].plan);
        }
        arena_free(&arena);
    }
    for (int r = 0; SWITCH_ROWS[r].key; r++)
        CU_ASSERT(SWITCH_ROWS[r].best < 0 || num_slower[r] > 0); // each was tried, and mattered
}

static void what_is_stated_is_not_open(void) {
    Arena arena = {0};
    Scenario scenario;
    SwitchChoice open[MAX_SWITCHES];
    CU_ASSERT_EQUAL_FATAL(
        case_preset("llama-3.1-8b", "dgx-h100:1", 4096, 64, "{}", &arena, &scenario).code,
        STATUS_OK);
    const int num_open = switches_open(&scenario, open);
    int num_graphs = 0;
    for (int i = 0; i < num_open; i++) {
        CU_ASSERT_STRING_NOT_EQUAL(open[i].row->key, "moe_dispatcher"); // it has no experts
        CU_ASSERT_STRING_NOT_EQUAL(open[i].row->key, "fp8_recipe");     // nor 8 bits
        num_graphs += strcmp(open[i].row->key, "cuda_graphs") == 0;
    }
    CU_ASSERT_EQUAL(num_graphs, 1);
    cJSON *training = cJSON_GetObjectItemCaseSensitive(scenario.document, "training");
    cJSON_AddStringToObject(training, "cuda_graphs", "none");
    CU_ASSERT_EQUAL(switches_open(&scenario, open), num_open - 1);
    arena_free(&arena);
}

static void a_choice_reads_like_the_scenario(void) {
    Arena arena = {0};
    const Execution before = {.optimizer_precision = PRECISION_FP32};
    for (const SwitchRow *row = SWITCH_ROWS; row->key; row++) {
        const char *wanted = strcmp(row->key, "optimizer_dtype") == 0
                                 ? "optimizer_dtype bf16 instead of fp32"
                             : strcmp(row->key, "compile") == 0 ? "compile"
                                                                : NULL;
        if (!wanted) continue;
        const SwitchChoice choice = {row, 1};
        CU_ASSERT_STRING_EQUAL(switch_text(choice, &before, &arena), wanted);
        cJSON *json = switch_to_json(choice);
        CU_ASSERT(row->is_bool ? cJSON_IsTrue(json) : strcmp(json->valuestring, "bf16") == 0);
        cJSON_Delete(json);
    }
    arena_free(&arena);
}

CU_TestInfo switches_tests[] = {
    {"a best value is never worse", a_best_value_is_never_worse},
    {"what is stated is not open", what_is_stated_is_not_open},
    {"a choice reads like the scenario", a_choice_reads_like_the_scenario},
    CU_TEST_INFO_NULL,
};
