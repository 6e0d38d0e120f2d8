#include "whatif/sensitivity.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>

#define TRAINING "{\"seq_len\": 4096, \"global_batch\": 64, \"precision\": \"fp16\"}"

static Scenario opened(const char *model, const char *cluster, const char *parallel, Arena *arena) {
    Scenario scenario = {0};
    const Status status =
        scenario_of(scenario_text(arena, model, cluster, TRAINING, parallel), arena, &scenario);
    if (status.code != STATUS_OK) fprintf(stderr, "%s\n", status.text);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return scenario;
}

static Sensitivity limits(const Scenario *scenario, double change, bool replan, Arena *arena) {
    Sensitivity out = {0};
    const SensitivityOptions options = {change, replan, {0}, 2};
    CU_ASSERT_EQUAL_FATAL(sensitivity_run(scenario, &options, arena, &out).code, STATUS_OK);
    return out;
}

static const SensitivityRow *row_of(const Sensitivity *s, Resource resource) {
    for (int i = 0; i < s->num_rows; i++)
        if (s->rows[i].resource == resource) return &s->rows[i];
    return NULL;
}

static double step_s(const Scenario *scenario, Arena *arena) {
    Plan plan;
    Estimate estimate;
    CU_ASSERT_EQUAL_FATAL(plan_resolve(scenario, arena, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(estimate_plan(scenario, &plan, arena, &estimate, NULL).code, STATUS_OK);
    return estimate.step_time_s;
}

// Machines whose links and kernels are described in each of the ways there are.
static const char *const CLUSTERS[] = {
    "\"dgx-h100:2\"", "\"dgx-1-v100:2\"", "\"rtx4090-node:2\"", "\"hgx-mi300x:2\"",
    "{\"groups\": [{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 8, \"gpus_per_node\": 8,"
    " \"scale_up\": {\"link\": \"nvlink4\"},"
    " \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}},"
    " {\"gpu\": \"a100-sxm-80g\", \"num_gpus\": 8, \"gpus_per_node\": 8,"
    " \"scale_up\": {\"link\": \"nvlink3\"},"
    " \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 25e9}}],"
    " \"between\": {\"bytes_per_s\": 1e10, \"latency_s\": 2e-5}}"};

static void more_is_never_slower(void) {
    for (size_t c = 0; c < sizeof CLUSTERS / sizeof *CLUSTERS; c++) {
        Arena arena = {0};
        const Scenario scenario = opened("\"llama-3.1-8b\"", CLUSTERS[c],
                                         "{\"tp\": 4, \"pp\": 2, \"recompute\": \"full\"}", &arena);
        const Sensitivity s = limits(&scenario, 0.2, false, &arena);
        CU_ASSERT_EQUAL(s.num_rows, NUM_RESOURCES);
        for (int i = 0; i < s.num_rows; i++) {
            CU_ASSERT(s.rows[i].saves_frac >= 0);
            CU_ASSERT(s.rows[i].costs_frac >= 0);
            if (i > 0) CU_ASSERT(s.rows[i].saves_frac <= s.rows[i - 1].saves_frac);
        }
        // All but memory's size is in use here.
        for (int r = 0; r < NUM_RESOURCES; r++)
            if (r != RESOURCE_MEMORY_SIZE) CU_ASSERT(row_of(&s, (Resource)r)->saves_frac > 0);
        arena_free(&arena);
    }
}

// Everything twice as fast, one after the other: no resource is left out, so that half of the step
// remains, and a part of what launches of kernels take, a tenth of it.
static void a_machine_twice_as_fast_halves_what_is_not_software(void) {
    Arena arena = {0};
    const Scenario base = opened("\"llama-3.1-8b\"", CLUSTERS[0],
                                 "{\"tp\": 4, \"pp\": 2, \"recompute\": \"full\"}", &arena);
    Scenario fast = base;
    for (int r = 0; r < NUM_RESOURCES; r++)
        fast = resource_scaled(&fast, (Resource)r, r == RESOURCE_LATENCY ? 0.5 : 2, &arena);
    const double ratio = step_s(&fast, &arena) / step_s(&base, &arena);
    CU_ASSERT(ratio >= 0.5);
    CU_ASSERT(ratio < 0.56);
    arena_free(&arena);
}

static void the_scenario_itself_stays_as_it_is(void) {
    for (size_t c = 0; c < sizeof CLUSTERS / sizeof *CLUSTERS; c++) {
        Arena arena = {0};
        const Scenario scenario = opened("\"llama-3.1-8b\"", CLUSTERS[c],
                                         "{\"tp\": 4, \"pp\": 2, \"recompute\": \"full\"}", &arena);
        const double before_s = step_s(&scenario, &arena);
        const Sensitivity s = limits(&scenario, 0.5, false, &arena);
        CU_ASSERT_EQUAL(s.base.estimate.step_time_s, before_s);
        CU_ASSERT_EQUAL(step_s(&scenario, &arena), before_s);
        for (int r = 0; r < NUM_RESOURCES; r++) {
            const Scenario same = resource_scaled(&scenario, (Resource)r, 1, &arena);
            CU_ASSERT_DOUBLE_EQUAL(step_s(&same, &arena), before_s, 1e-12 * before_s);
        }
        arena_free(&arena);
    }
}

static void memory_that_is_needed_limits(void) {
    Arena arena = {0};
    // 70 G parameters on 16 GPUs fill nearly all of their memory.
    const Scenario scenario = opened("\"llama-3.1-70b\"", "\"dgx-h100:4\"", NULL, &arena);
    const Sensitivity s = limits(&scenario, 0.3, true, &arena);
    const SensitivityRow *memory = row_of(&s, RESOURCE_MEMORY_SIZE);
    CU_ASSERT(memory->saves_frac > 0);
    CU_ASSERT(memory->costs_frac > 0);
    // A new plan is never slower than the old one would be, on the better machine.
    for (int i = 0; i < s.num_rows; i++) CU_ASSERT(s.rows[i].saves_frac >= 0);
    arena_free(&arena);
}

static void what_does_not_fit_has_no_price_but_is_an_answer(void) {
    Arena arena = {0};
    const Scenario scenario = opened("\"llama-3.1-405b\"", "\"dgx-h100:1\"", NULL, &arena);
    const Sensitivity s = limits(&scenario, 0.1, true, &arena);
    CU_ASSERT_EQUAL(s.base.code, STATUS_NO);
    CU_ASSERT_EQUAL(s.num_rows, 0);
    CU_ASSERT_PTR_NULL(sensitivity_limit(&s));
    cJSON *json = sensitivity_to_json(&s);
    CU_ASSERT_PTR_NOT_NULL(json);
    cJSON_Delete(json);
    arena_free(&arena);
}

CU_TestInfo sensitivity_tests[] = {
    {"more_is_never_slower", more_is_never_slower},
    {"a_machine_twice_as_fast_halves_what_is_not_software",
     a_machine_twice_as_fast_halves_what_is_not_software},
    {"the_scenario_itself_stays_as_it_is", the_scenario_itself_stays_as_it_is},
    {"memory_that_is_needed_limits", memory_that_is_needed_limits},
    {"what_does_not_fit_has_no_price_but_is_an_answer",
     what_does_not_fit_has_no_price_but_is_an_answer},
    CU_TEST_INFO_NULL,
};
