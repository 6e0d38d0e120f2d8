#include "sim/meeting.h"

#include "plan/layer_plans.h"

#include <CUnit/CUnit.h>

enum { NUM_REPLICAS = 8 };

static Plan plan_of(int tp, int cp, int ep, int zero_stage) {
    int dp = NUM_REPLICAS / tp / cp;
    return (Plan){.tp = tp,
                  .cp = cp,
                  .dp = dp,
                  .pp = 1,
                  .ep = ep,
                  .etp = 1,
                  .zero_stage = zero_stage,
                  .zero_group = dp * cp,
                  .expert_dp = NUM_REPLICAS / ep};
}

static void assert_firsts(const Plan *plan, const int expected[NUM_REPLICAS]) {
    Arena arena = {0};
    const int *firsts = meeting_firsts(plan, NUM_REPLICAS, NUM_REPLICAS, &arena);
    for (int i = 0; i < NUM_REPLICAS; i++) CU_ASSERT_EQUAL(firsts[i], expected[i]);
    arena_free(&arena);
}

static void data_parallel_replicas_run_apart(void) {
    Plan plan = plan_of(1, 1, 1, 1);
    assert_firsts(&plan, (int[]){0, 1, 2, 3, 4, 5, 6, 7});
}

static void tensor_and_context_parallel_ones_meet(void) {
    Plan plan = plan_of(2, 1, 1, 1);
    assert_firsts(&plan, (int[]){0, 0, 2, 2, 4, 4, 6, 6});
    plan = plan_of(2, 2, 1, 1);
    assert_firsts(&plan, (int[]){0, 0, 0, 0, 4, 4, 4, 4});
}

// Experts over 4 replicas join two pairs of tensor-parallel ranks; shards of ZeRO 3 all.
static void so_do_experts_and_shards(void) {
    Plan plan = plan_of(2, 1, 4, 1);
    assert_firsts(&plan, (int[]){0, 0, 0, 0, 4, 4, 4, 4});
    plan = plan_of(1, 1, 1, 3);
    assert_firsts(&plan, (int[]){0, 0, 0, 0, 0, 0, 0, 0});
}

// Hybrid sharding: shards within 2 data-parallel ranks, 2 ranks apart.
static void shards_meet_in_their_group(void) {
    Plan plan = plan_of(2, 1, 1, 3);
    plan.zero_group = 2;
    plan.expert_dp = 4;
    assert_firsts(&plan, (int[]){0, 0, 0, 0, 4, 4, 4, 4});
}

// One layer of tp 2 and one of tp 4, or of ZeRO 3, beside others of tp 2: all of the larger groups
// meet, and the neighbours among which activations change are as many.
static void so_do_those_of_any_layer(void) {
    Arena arena = {0};
    Plan plan = plan_of(2, 1, 1, 1);
    Plan own[2] = {plan, plan_of(4, 1, 1, 1)};
    plan_set_layers(&plan, own, 2, &arena);
    assert_firsts(&plan, (int[]){0, 0, 0, 0, 4, 4, 4, 4});
    // tp 2 here, cp 4 there: 4 neighbours hold the same sequences either way.
    plan = plan_of(2, 1, 1, 1);
    own[0] = plan;
    own[1] = plan_of(1, 4, 1, 1);
    plan_set_layers(&plan, own, 2, &arena);
    assert_firsts(&plan, (int[]){0, 0, 0, 0, 4, 4, 4, 4});
    plan = plan_of(2, 1, 1, 1);
    own[0] = plan;
    own[1] = plan_of(2, 1, 1, 3);
    plan_set_layers(&plan, own, 2, &arena);
    assert_firsts(&plan, (int[]){0, 0, 0, 0, 0, 0, 0, 0});
    arena_free(&arena);
}

// Every second of 8 replicas is the same: tp 2 joins the two, nothing does with tp 1 and ZeRO 1.
static void replicas_that_are_one_meet_as_one(void) {
    Arena arena = {0};
    Plan plan = plan_of(2, 1, 1, 1);
    const int *firsts = meeting_firsts(&plan, NUM_REPLICAS, 2, &arena);
    CU_ASSERT(firsts[0] == 0 && firsts[1] == 0);
    plan = plan_of(1, 1, 1, 1);
    firsts = meeting_firsts(&plan, NUM_REPLICAS, 2, &arena);
    CU_ASSERT(firsts[0] == 0 && firsts[1] == 1);
    arena_free(&arena);
}

CU_TestInfo meeting_tests[] = {
    {"data_parallel_replicas_run_apart", data_parallel_replicas_run_apart},
    {"tensor_and_context_parallel_ones_meet", tensor_and_context_parallel_ones_meet},
    {"so_do_experts_and_shards", so_do_experts_and_shards},
    {"so_do_those_of_any_layer", so_do_those_of_any_layer},
    {"shards_meet_in_their_group", shards_meet_in_their_group},
    {"replicas_that_are_one_meet_as_one", replicas_that_are_one_meet_as_one},
    CU_TEST_INFO_NULL,
};
