#include "config/software/kernel_shelf.h"

#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

static double step_s(const char *cluster, KernelShelf *shelf, Arena *arena) {
    const char *text = scenario_text(arena, "\"llama-3.1-8b\"", cluster,
                                     "{\"seq_len\": 4096, \"global_batch\": 64}", "{\"tp\": 2}");
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    CU_ASSERT_EQUAL_FATAL(json_parse(text, strlen(text), "job.json", arena, root).code, STATUS_OK);
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    CU_ASSERT_EQUAL_FATAL(scenario_read_shared(root, shelf, arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, arena, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(estimate_plan(&scenario, &plan, arena, &estimate, NULL).code, STATUS_OK);
    return estimate.step_time_s;
}

// Each scenario's own memory is gone before the next one takes what it left on the shelf.
static void what_is_taken_from_a_shelf_prices_alike(void) {
    static const char *const CLUSTERS[] = {"\"dgx-h100:2\"", "\"dgx-a100-80g:2\"", "\"dgx-h200:2\"",
                                           "\"h100-pcie-node:2\""};
    KernelShelf *shelf = kernel_shelf_new();
    Arena arena = {0};
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof CLUSTERS / sizeof *CLUSTERS; i++) {
            const double alone_s = step_s(CLUSTERS[i], NULL, &arena);
            arena_free(&arena);
            CU_ASSERT_EQUAL(step_s(CLUSTERS[i], shelf, &arena), alone_s);
            arena_free(&arena);
        }
    kernel_shelf_free(shelf);
}

static void a_file_is_read_once(void) {
    KernelShelf *shelf = kernel_shelf_new();
    Arena arena = {0};
    const CalibratedKernels *first, *second, *third;
    const NcclKernels *curves, *again;
    Gpu gpu, other;
    CU_ASSERT_EQUAL_FATAL(gpu_load_named("h100-sxm-80g", &arena, &gpu).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(gpu_load_named("h200-sxm-141g", &arena, &other).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernel_shelf_kernels(shelf, &gpu, &arena, &first).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernel_shelf_kernels(shelf, &other, &arena, &third).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernel_shelf_kernels(shelf, &gpu, &arena, &second).code, STATUS_OK);
    CU_ASSERT_PTR_EQUAL(first, second);
    CU_ASSERT_PTR_NOT_EQUAL(first, third);
    CU_ASSERT_EQUAL(kernel_shelf_curves(shelf, gpu.name, &arena, &curves).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernel_shelf_curves(shelf, gpu.name, &arena, &again).code, STATUS_OK);
    CU_ASSERT_PTR_EQUAL(curves, again);
    Stack own, same, unlike;
    CU_ASSERT_EQUAL(kernel_shelf_stack(shelf, "megatron-core", &arena, &own).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernel_shelf_stack(shelf, "megatron-core", &arena, &same).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernel_shelf_stack(shelf, "torchtitan", &arena, &unlike).code, STATUS_OK);
    CU_ASSERT_PTR_EQUAL(own.rules, same.rules);
    CU_ASSERT_PTR_NOT_EQUAL(own.rules, unlike.rules);
    CU_ASSERT_EQUAL(kernel_shelf_stack(shelf, "no-stack", &arena, &same).code, STATUS_INVALID);
    kernel_shelf_free(shelf);
    kernel_shelf_free(NULL);
    arena_free(&arena);
}

CU_TestInfo kernel_shelf_tests[] = {
    {"what_is_taken_from_a_shelf_prices_alike", what_is_taken_from_a_shelf_prices_alike},
    {"a_file_is_read_once", a_file_is_read_once},
    CU_TEST_INFO_NULL,
};
