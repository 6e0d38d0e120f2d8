#include "planner/questions/idle.h"

#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>

static const PlannerOptions ONE = {.top = 1};

// On so many GPUs of the scenario's nodes.
static Status search_on(const Scenario *scenario, int num_gpus, const PlannerOptions *options,
                        Arena *arena, Scenario *used, PlannerResult *out) {
    Scenario sized = *scenario;
    sized.cluster = cluster_with_gpus(&scenario->cluster, num_gpus, arena);
    return planner_search_idle(&sized, options, arena, used, out);
}

// The law that idle GPUs are for, over small jobs that nothing divides well.
static void more_gpus_never_make_the_best_plan_slower(void) {
    int num_compared = 0, num_idle = 0;
    for (int number = 0; number < case_count(12); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        double least_s = INFINITY;
        int least_gpus = 0;
        for (int num_gpus = 1; num_gpus <= 18; num_gpus++) {
            Scenario used;
            PlannerResult result;
            if (search_on(&scenario, num_gpus, &ONE, &arena, &used, &result).code != STATUS_OK ||
                result.num_entries == 0)
                continue;
            const double step_s = result.entries[0].estimate.step_time_s;
            CU_ASSERT(step_s <= least_s * (1 + 1e-9));
            if (step_s > least_s * (1 + 1e-9))
                fprintf(stderr, "case %d: %g s on %d GPUs, %g s on %d of nodes of %d\n", number,
                        step_s, num_gpus, least_s, least_gpus,
                        scenario.cluster.pools[0].whole_node_gpus);
            num_compared += isfinite(least_s);
            num_idle += used.cluster.idle_gpus > 0;
            if (step_s < least_s) least_gpus = num_gpus;
            least_s = fmin(least_s, step_s);
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_compared > 20 && num_idle > 4);
}

// What runs on fewer GPUs is a plan of that many: the same step, at the price of all.
static void idle_gpus_cost_and_do_nothing_else(void) {
    Arena arena = {0};
    Scenario scenario, used;
    PlannerResult result, fewer;
    Status status =
        case_preset("llama-3.1-70b", "dgx-h100:13", 8192, 1024, "{\"pp\": 8}", &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    status = planner_search_idle(&scenario, &ONE, &arena, &used, &result);
    CU_ASSERT(status.code == STATUS_OK && result.num_entries == 1);
    CU_ASSERT(used.cluster.num_gpus == 64 && used.cluster.idle_gpus == 40);
    // 13 x 8 GPUs: of 13, 12 and 10 nothing divides 1024 sequences
    CU_ASSERT(result.idle.num_looks > 2 && result.idle.looks[2].num_gpus == 64);
    CU_ASSERT_PTR_NULL(result.idle.looks[2].ruled_out_by);
    CU_ASSERT(result.idle.total_gpus == 104 && !result.idle.all_are_legal);
    status = search_on(&scenario, 64, &ONE, &arena, &used, &fewer);
    CU_ASSERT(status.code == STATUS_OK && fewer.num_entries == 1);
    const Estimate *a = &result.entries[0].estimate, *b = &fewer.entries[0].estimate;
    CU_ASSERT_EQUAL(a->step_time_s, b->step_time_s);
    CU_ASSERT(a->idle_gpus == 40 && b->idle_gpus == 0);
    CU_ASSERT_DOUBLE_EQUAL(a->usd_per_1e9_tokens / b->usd_per_1e9_tokens, 104.0 / 64, 1e-12);
    CU_ASSERT_EQUAL(a->tokens_per_s_per_gpu, b->tokens_per_s_per_gpu);
    CU_ASSERT_EQUAL(a->joules_per_token, b->joules_per_token);
    arena_free(&arena);
}

// A number that has no legal plan of its own: 17 GPUs are 2 nodes and one GPU.
static void numbers_without_a_legal_plan_have_one_on_fewer(void) {
    Arena arena = {0};
    Scenario scenario, used;
    PlannerResult result;
    Status status = case_preset("llama-3.1-8b", "dgx-h100:2", 8192, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    static const int NUMBERS[][2] = {{17, 16}, {13, 12}, {11, 10}, {22, 20}};
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        status = search_on(&scenario, NUMBERS[i][0], &ONE, &arena, &used, &result);
        CU_ASSERT(status.code == STATUS_OK && result.num_entries == 1);
        CU_ASSERT(used.cluster.num_gpus <= NUMBERS[i][1]);
        CU_ASSERT_EQUAL(cluster_total_gpus(&used.cluster), NUMBERS[i][0]);
    }
    arena_free(&arena);
}

static void stated_idle_gpus_are_a_constraint(void) {
    Arena arena = {0};
    Scenario scenario, used;
    PlannerResult result;
    Status status = case_preset("llama-3.1-70b", "dgx-h100:13", 8192, 1024, "{\"idle_gpus\": 0}",
                                &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    status = planner_search_idle(&scenario, &ONE, &arena, &used, &result);
    CU_ASSERT(status.code == STATUS_OK && used.cluster.num_gpus == 104);
    CU_ASSERT_EQUAL(result.idle.num_looks, 0);
    status = case_preset("llama-3.1-70b", "dgx-h100:13", 8192, 1024, "{\"idle_gpus\": 24}", &arena,
                         &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    status = planner_search_idle(&scenario, &ONE, &arena, &used, &result);
    CU_ASSERT(status.code == STATUS_OK && result.entries[0].plan.idle_gpus == 24);
    arena_free(&arena);
}

CU_TestInfo idle_tests[] = {
    {"more_gpus_never_make_the_best_plan_slower", more_gpus_never_make_the_best_plan_slower},
    {"idle_gpus_cost_and_do_nothing_else", idle_gpus_cost_and_do_nothing_else},
    {"numbers_without_a_legal_plan_have_one_on_fewer",
     numbers_without_a_legal_plan_have_one_on_fewer},
    {"stated_idle_gpus_are_a_constraint", stated_idle_gpus_are_a_constraint},
    CU_TEST_INFO_NULL,
};
