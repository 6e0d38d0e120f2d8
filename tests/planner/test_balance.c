#include "planner/stages/balance.h"

#include "costmodel/pass/price.h"
#include "tests/planner/placement_case.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

static Plan plan_of(const Scenario *scenario, int tp, int pp, Arena *arena) {
    Plan plan = {.tp = tp, .pp = pp, .cp = 1, .ep = 1, .etp = 1, .vpp = 1, .micro_batch = 1};
    plan.dp = scenario->cluster.num_gpus / (tp * pp);
    plan.zero_group = plan.dp;
    plan.sequence_parallel = tp > 1;
    plan.recompute_layers = ABSENT;
    plan.num_chunks = pp;
    plan.schedule = SCHEDULE_1F1B;
    Status status = plan_default_chunks(&scenario->model, pp, arena, &plan.chunks);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    plan_derive(scenario, &plan);
    return plan;
}

static double relative(double found, double expected) {
    return found / expected - 1;
}

// Single layers add up to chunks: what the whole model costs as one chunk, where the host keeps up.
static void pieces_add_up_to_the_model(void) {
    static const char *const MODELS[] = {"llama-3.1-8b", "deepseek-v2-lite", "mixtral-8x7b"};
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        Arena arena = {0};
        Scenario scenario;
        Status status = case_preset(MODELS[i], "dgx-h100:1", 4096, 64, NULL, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        Stack *stack = &scenario.execution.stack;
        stack->training.host_microbatch_s = stack->launch.host_layer_s =
            stack->launch.host_launch_s = stack->launch.host_expert_s = 0;
        Plan plan = plan_of(&scenario, 2, 1, &arena);
        BalanceCosts costs = balance_costs(&scenario, &plan, &arena);
        double sum = costs.first_s + costs.last_s;
        for (int l = 0; l < costs.num_layers; l++) sum += costs.layer_s[l];
        Workload workload = workload_build(&scenario, &plan, &arena);
        Prices prices = chunks_price(&scenario, &plan, &workload, &arena);
        double whole = prices.forward[0].time_s + prices.backward[0].time_s;
        CU_ASSERT_DOUBLE_EQUAL(relative(sum, whole), 0, 1e-9);
        arena_free(&arena);
    }
}

// 16 layers on 4 stages with a vocabulary of 256,000: the head costs several layers.
static void a_heavy_head_takes_layers_off_its_stage(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *model = "{\"model_type\": \"generic\", \"hidden_size\": 2048, "
                        "\"intermediate_size\": 8192, \"num_hidden_layers\": 16, "
                        "\"num_attention_heads\": 16, \"vocab_size\": 256000}";
    const char *training = "{\"seq_len\": 4096, \"global_batch\": 64}";
    Status status = scenario_of(scenario_text(&arena, model, "\"dgx-h100:1\"", training, NULL),
                                &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    Plan plan = plan_of(&scenario, 1, 4, &arena);
    Estimate even, balanced;
    CU_ASSERT_EQUAL(estimate_plan(&scenario, &plan, &arena, &even, NULL).code, STATUS_OK);
    Arena scratch = {0};
    BalanceCosts costs = balance_costs(&scenario, &plan, &scratch);
    plan.chunks = balance_chunks(&costs, 4, 1, plan.chunks, &arena, &scratch);
    CU_ASSERT_PTR_NOT_NULL_FATAL(plan.chunks);
    CU_ASSERT(plan.chunks[3].num_layers < 4 && plan.chunks[3].loss);
    CU_ASSERT(plan.chunks[0].num_layers > 4 && plan.chunks[0].embedding);
    int next = 0;
    for (int c = 0; c < 4; c++) {
        CU_ASSERT_EQUAL(plan.chunks[c].first_layer, next);
        next += plan.chunks[c].num_layers;
    }
    CU_ASSERT_EQUAL(next, 16);
    CU_ASSERT_EQUAL(estimate_plan(&scenario, &plan, &arena, &balanced, NULL).code, STATUS_OK);
    CU_ASSERT(balanced.step_time_s < 0.9 * even.step_time_s);
    arena_free(&scratch);
    arena_free(&arena);
}

// 126 layers and 2 for embedding and head on 16 stages: the default is as good as it gets.
static void an_even_split_is_left_alone(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-405b", "dgx-h100:16", 8192, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    Plan plan = plan_of(&scenario, 8, 16, &arena);
    BalanceCosts costs = balance_costs(&scenario, &plan, &arena);
    Arena scratch = {0};
    CU_ASSERT_PTR_NULL(balance_chunks(&costs, 16, 1, plan.chunks, &arena, &scratch));
    arena_free(&scratch);
    arena_free(&arena);
}

// Two kinds of layers and the ends are four pieces, on two stages: all ranks that are priced are of
// the cluster, or site_of (costmodel/network/site_links.c) would end the program.
static void pieces_stay_on_the_gpus_that_are_there(void) {
    Arena arena = {0};
    Scenario scenario;
    const Status status =
        case_preset("deepseek-v2-lite", "dgx-h100:6", 4096, 96, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    MatrixCase matrix = {0};
    matrix_case(&matrix, MATRIX_LOG_NORMAL, 7, 2, &scenario.cluster);
    const Plan plan = plan_of(&scenario, 1, 2, &arena);
    CU_ASSERT(scenario.model.num_kinds + 2 > plan.pp);
    const BalanceCosts costs = balance_costs(&scenario, &plan, &arena);
    CU_ASSERT(costs.first_s > 0 && costs.last_s > 0);
    arena_free(&arena);
}

CU_TestInfo balance_tests[] = {
    {"pieces_stay_on_the_gpus_that_are_there", pieces_stay_on_the_gpus_that_are_there},
    {"pieces_add_up_to_the_model", pieces_add_up_to_the_model},
    {"a_heavy_head_takes_layers_off_its_stage", a_heavy_head_takes_layers_off_its_stage},
    {"an_even_split_is_left_alone", an_even_split_is_left_alone},
    CU_TEST_INFO_NULL,
};
