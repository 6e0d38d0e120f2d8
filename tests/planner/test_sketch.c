// A sketch never claims more than the whole account: no bound above the tight one, no floor above
// the memory; and it decides most of what it is for.
#include "planner/harvest/sketch.h"

#include "planner/harvest/loose.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

typedef struct {
    const Scenario *scenario;
    const LooseCosts *loose;
    int num_plans, num_without, num_above_bound, num_above_memory, num_rising;
    int num_missing, num_missing_known; // that do not fit, and of which the sketch says so
    double loss_frac;                   // of the tight bound, summed over the plans
} Checks;

// *last_missing  of the same plan with one layer less recomputed
static void plan_check_sketch(Checks *c, const Plan *plan, double *last_missing) {
    Arena arena = {0};
    SketchShape shape;
    CU_ASSERT_TRUE_FATAL(loose_sketch(c->loose, plan, &shape));
    const SketchLayout *layout = sketch_layout(c->scenario, plan, &arena);
    c->num_plans++;
    if (!layout) {
        c->num_without++;
        arena_free(&arena);
        return;
    }
    const Workload workload = workload_build(c->scenario, plan, &arena);
    const Prices prices = chunks_price(c->scenario, plan, &workload, &arena);
    double missing;
    estimate_memory(c->scenario, plan, &workload, &missing);
    const double tight_s = estimate_lower_bound_s(c->scenario, plan, &workload, &prices);
    const double bound_s = sketch_bound_s(c->scenario, plan, layout, &shape);
    const double floor = sketch_missing_bytes(c->scenario, plan, layout, &shape);
    c->num_above_bound += bound_s > tight_s * (1 + 1e-9);
    c->loss_frac += 1 - bound_s / tight_s;
    c->num_above_memory += floor > missing * (1 + 1e-9);
    c->num_missing += missing > 0;
    c->num_missing_known += floor > 0;
    if (plan->recompute_layers > 0 && sketch_falls(c->scenario, &shape))
        c->num_rising += floor > *last_missing * (1 + 1e-9);
    *last_missing = floor;
    arena_free(&arena);
}

static bool family_check(void *context, const SpaceFamily *family) {
    Checks *c = context;
    double last_missing = INFINITY;
    for (int i = 0; i < case_num_plans(family); i++) {
        const Plan plan = case_plan(family, i);
        if (plan.recompute_layers <= 1) last_missing = INFINITY;
        plan_check_sketch(c, &plan, &last_missing);
    }
    return true;
}

static void space_check(Scenario *scenario, int every, Checks *c) {
    Arena arena = {0};
    Space space;
    LooseCosts loose;
    space_build(scenario, &arena, &space);
    double *split_bound_s = ARENA_ARRAY(&arena, space.num_splits, double);
    loose_build(&space, 2, NULL, NULL, &loose, split_bound_s);
    c->scenario = scenario;
    c->loose = &loose;
    for (int split = 0; split < space.num_splits; split += every)
        space_visit(&space, split, &arena, family_check, c);
    loose_free(&loose);
    arena_free(&arena);
}

static void checks_assert(const Checks *c) {
    CU_ASSERT(c->num_plans > 1000);
    CU_ASSERT_EQUAL(c->num_above_bound, 0);
    CU_ASSERT_EQUAL(c->num_above_memory, 0);
    CU_ASSERT_EQUAL(c->num_rising, 0);
    CU_ASSERT(c->num_missing > 100);
    CU_ASSERT(4 * c->num_missing_known > 3 * c->num_missing);
    CU_ASSERT(c->loss_frac / c->num_plans < 0.5); // of small jobs messages and the optimizer
}

static void a_sketch_is_below_bound_and_memory_of_small_jobs(void) {
    Checks c = {0};
    for (int number = 0; number < case_count(60); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        scenario.fit_deviates = number % 3;
        test_pool(&scenario.cluster)->gpu.memory_available_bytes =
            case_memory_bytes(number, &scenario) / 2;
        space_check(&scenario, 1 + number % 3, &c);
        arena_free(&arena);
    }
    checks_assert(&c);
}

// Tied word tables, layers of two kinds, MLA, MTP layers, an encoder, learned positions.
static void a_sketch_is_below_bound_and_memory_of_presets(void) {
    static const char *const MODELS[] = {"gpt2-1.5b", "gemma-2-2b",  "deepseek-v2-lite",
                                         "bloom-7b1", "deepseek-v3", "flan-t5-xxl"};
    static const char *const PARALLEL[] = {"{\"micro_batch\": 1}", "{\"zero_stage\": 3}",
                                           "{\"schedule\": \"zb-v\"}"};
    Checks c = {0};
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 3; k++) {
            Arena arena = {0};
            Scenario scenario;
            const Status status = case_preset(MODELS[i], "dgx-h100:2", 2048, 32,
                                              i == 5 ? NULL : PARALLEL[k], &arena, &scenario);
            CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
            test_pool(&scenario.cluster)->gpu.memory_available_bytes = i == 4 ? 300e9 : 20e9;
            space_check(&scenario, 7 + 6 * i, &c);
            arena_free(&arena);
        }
    }
    checks_assert(&c);
}

CU_TestInfo sketch_tests[] = {
    {"a_sketch_is_below_bound_and_memory_of_small_jobs",
     a_sketch_is_below_bound_and_memory_of_small_jobs},
    {"a_sketch_is_below_bound_and_memory_of_presets",
     a_sketch_is_below_bound_and_memory_of_presets},
    CU_TEST_INFO_NULL,
};
