#include "whatif/compare.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#define TRAINING "{\"seq_len\": 4096, \"global_batch\": 64}"

static CompareSide side(const char *cluster, const char *training, const char *parallel,
                        const PlannerOptions *options, Arena *arena) {
    Scenario *scenario = ARENA_NEW(arena, Scenario);
    CompareSide out;
    CU_ASSERT_EQUAL_FATAL(
        scenario_of(scenario_text(arena, "\"llama-3.1-8b\"", cluster, training, parallel), arena,
                    scenario)
            .code,
        STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(compare_side(scenario, options, arena, &out).code, STATUS_OK);
    return out;
}

static const CompareChange *change_of(const Comparison *c, const char *path) {
    for (int i = 0; i < c->num_changes; i++)
        if (strcmp(c->changes[i].path, path) == 0) return &c->changes[i];
    return NULL;
}

static const CompareRow *row_of(const Comparison *c, const char *name) {
    for (int i = 0; i < c->num_rows; i++)
        if (strcmp(c->rows[i].name, name) == 0) return &c->rows[i];
    return NULL;
}

static void a_plan_beside_itself_is_the_same(void) {
    Arena arena = {0};
    const CompareSide a = side("\"dgx-h100:2\"", TRAINING, "{\"tp\": 4}", NULL, &arena);
    const Comparison c = compare_sides(&a, &a, &arena);
    CU_ASSERT_EQUAL(c.num_changes, 0);
    CU_ASSERT_TRUE(c.same_job && c.within_noise);
    CU_ASSERT_EQUAL(c.tokens_ratio, 1);
    for (int i = 0; i < c.num_rows; i++) CU_ASSERT_EQUAL(c.rows[i].a, c.rows[i].b);
    arena_free(&arena);
}

static void terms_add_up_to_the_step(void) {
    Arena arena = {0};
    const CompareSide a = side("\"dgx-h100:2\"", TRAINING, "{\"tp\": 4}", NULL, &arena);
    const CompareSide b = side("\"dgx-h100:2\"", TRAINING, "{\"tp\": 2, \"pp\": 4}", NULL, &arena);
    const Comparison c = compare_sides(&a, &b, &arena);
    double sum_a = 0, sum_b = 0;
    for (int t = 0; t < NUM_TERMS; t++) {
        sum_a += row_of(&c, TERM_NAMES[t])->a;
        sum_b += row_of(&c, TERM_NAMES[t])->b;
    }
    const CompareRow *step = row_of(&c, "step_time_s");
    CU_ASSERT_DOUBLE_EQUAL(sum_a, step->a, 1e-9 * step->a);
    CU_ASSERT_DOUBLE_EQUAL(sum_b, step->b, 1e-9 * step->b);
    CU_ASSERT_DOUBLE_EQUAL(c.tokens_ratio, step->a / step->b, 1e-12); // of the same tokens
    CU_ASSERT_TRUE(c.same_job);
    CU_ASSERT_STRING_EQUAL(change_of(&c, "parallel.tp")->a, "4");
    CU_ASSERT_STRING_EQUAL(change_of(&c, "parallel.tp")->b, "2");
    CU_ASSERT_PTR_NULL(change_of(&c, "parallel.micro_batch"));
    arena_free(&arena);
}

static void what_is_asked_differently_is_listed(void) {
    Arena arena = {0};
    const CompareSide a = side("\"dgx-h100:2\"", TRAINING, "{\"tp\": 4}", NULL, &arena);
    const CompareSide b = side(
        "\"dgx-h200:2\"", "{\"seq_len\": 8192, \"global_batch\": 64, \"stack\": \"torchtitan\"}",
        "{\"tp\": 4}", NULL, &arena);
    const Comparison c = compare_sides(&a, &b, &arena);
    CU_ASSERT_FALSE(c.same_job || c.within_noise);
    CU_ASSERT_STRING_EQUAL(change_of(&c, "cluster")->b, "\"dgx-h200:2\"");
    CU_ASSERT_STRING_EQUAL(change_of(&c, "training.seq_len")->a, "4096");
    CU_ASSERT_PTR_NULL(change_of(&c, "training.stack")->a);
    CU_ASSERT_STRING_EQUAL(change_of(&c, "training.stack")->b, "\"torchtitan\"");
    CU_ASSERT_PTR_NULL(change_of(&c, "model"));
    arena_free(&arena);
}

static void planned_sides_are_the_best(void) {
    Arena arena = {0};
    const PlannerOptions planner = {.num_threads = 1};
    const CompareSide kept = side("\"dgx-h100:2\"", TRAINING, "{\"tp\": 8}", NULL, &arena);
    const CompareSide best = side("\"dgx-h100:2\"", TRAINING, NULL, &planner, &arena);
    const Comparison c = compare_sides(&kept, &best, &arena);
    CU_ASSERT(c.tokens_ratio > 1);
    arena_free(&arena);
}

static void the_document_has_a_null_where_nothing_can_be_divided(void) {
    Arena arena = {0};
    const CompareSide a = side("\"dgx-h100:2\"", TRAINING, "{\"tp\": 4}", NULL, &arena);
    const CompareSide b = side("\"dgx-h100:2\"", TRAINING, "{\"tp\": 2, \"pp\": 4}", NULL, &arena);
    const Comparison c = compare_sides(&a, &b, &arena);
    cJSON *json = compare_to_json(&c), *term;
    cJSON_ArrayForEach(term, cJSON_GetObjectItemCaseSensitive(json, "terms")) {
        const double before = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(term, "a"));
        CU_ASSERT_EQUAL(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(term, "ratio")), before == 0);
    }
    cJSON_Delete(json);
    arena_free(&arena);
}

CU_TestInfo compare_tests[] = {
    {"a_plan_beside_itself_is_the_same", a_plan_beside_itself_is_the_same},
    {"terms_add_up_to_the_step", terms_add_up_to_the_step},
    {"what_is_asked_differently_is_listed", what_is_asked_differently_is_listed},
    {"planned_sides_are_the_best", planned_sides_are_the_best},
    {"the_document_has_a_null_where_nothing_can_be_divided",
     the_document_has_a_null_where_nothing_can_be_divided},
    CU_TEST_INFO_NULL,
};
