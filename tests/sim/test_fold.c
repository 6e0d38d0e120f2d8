#include "sim/fold.h"
#include "tests/sim/sim_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

static const ProgramCollective REDUCE = {COLLECTIVE_ALL_REDUCE, GROUP_DP, 1e9,
                                         "grad_all_reduce",     1,        0};
static const ProgramCollective EXPERTS = {COLLECTIVE_ALL_REDUCE,    GROUP_EDP, 1e9,
                                          "expert_grad_all_reduce", 1,         0};

// tp 4, dp 4 on 2 nodes; experts over 2 of the 16 ranks, so that their replicas are 2 ranks apart.
static Plan plan_of(int tp) {
    return (Plan){.tp = tp,
                  .pp = 1,
                  .dp = 16 / tp,
                  .cp = 1,
                  .ep = 2,
                  .etp = 1,
                  .zero_group = 16 / tp,
                  .expert_dp = 8};
}

static Status choose(FoldMode mode, int tp, const ProgramCollective *collective, Folding *out,
                     Arena *arena) {
    Scenario scenario = {.cluster = sim_cluster(2)};
    Plan plan = plan_of(tp);
    Program program = {.collectives = collective, .num_collectives = 1};
    return folding_choose(mode, &scenario, &plan, &program, arena, out);
}

static void even_tensor_parallel_ranks_fold(void) {
    Arena arena = {0};
    Folding folding;
    CU_ASSERT_EQUAL(choose(FOLD_AUTO, 4, &REDUCE, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 4);
    CU_ASSERT_STRING_EQUAL(folding.name, "tp");
    CU_ASSERT_EQUAL(choose(FOLD_NONE, 4, &REDUCE, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 1);
    CU_ASSERT_STRING_EQUAL(folding.reason, "asked for");
    arena_free(&arena);
}

static void groups_across_them_do_not(void) {
    Arena arena = {0};
    Folding folding;
    CU_ASSERT_EQUAL(choose(FOLD_AUTO, 4, &EXPERTS, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 1);
    CU_ASSERT_STRING_EQUAL(folding.reason, "the edp groups of expert_grad_all_reduce run across "
                                           "tensor-parallel ranks");
    ASSERT_REFUSED(choose(FOLD_TP, 4, &EXPERTS, &folding, &arena),
                   "--fold tp is not possible: the edp groups of expert_grad_all_reduce run across "
                   "tensor-parallel ranks");
    arena_free(&arena);
}

static void one_rank_is_nothing_to_fold(void) {
    Arena arena = {0};
    Folding folding;
    CU_ASSERT_EQUAL(choose(FOLD_AUTO, 1, &REDUCE, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(folding.reason, "there is one tensor-parallel rank");
    arena_free(&arena);
}

static void an_uneven_network_does_not_fold(void) {
    Arena arena = {0};
    Disturb disturb[] = {{.kind = DISTURB_JITTER}, {.kind = DISTURB_SLOW_GPU, .factor = 2}};
    Scenario scenario = {.cluster = sim_cluster(2), .disturb = disturb, .num_disturb = 2};
    Plan plan = plan_of(4);
    Program program = {.collectives = &REDUCE, .num_collectives = 1};
    Folding folding;
    CU_ASSERT_EQUAL(folding_choose(FOLD_AUTO, &scenario, &plan, &program, &arena, &folding).code,
                    STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 4);
    disturb[1] = (Disturb){.kind = DISTURB_LINK, .bandwidth_factor = 0.5};
    CU_ASSERT_EQUAL(folding_choose(FOLD_AUTO, &scenario, &plan, &program, &arena, &folding).code,
                    STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 1);
    CU_ASSERT_STRING_EQUAL(folding.reason, "disturb[1].link makes the network of the "
                                           "tensor-parallel ranks uneven");
    ASSERT_REFUSED(folding_choose(FOLD_TP, &scenario, &plan, &program, &arena, &folding),
                   "--fold tp is not possible: disturb[1].link makes the network of the "
                   "tensor-parallel ranks uneven");
    arena_free(&arena);
}

CU_TestInfo fold_tests[] = {
    {"even_tensor_parallel_ranks_fold", even_tensor_parallel_ranks_fold},
    {"groups_across_them_do_not", groups_across_them_do_not},
    {"an_uneven_network_does_not_fold", an_uneven_network_does_not_fold},
    {"one_rank_is_nothing_to_fold", one_rank_is_nothing_to_fold},
    CU_TEST_INFO_NULL,
};
