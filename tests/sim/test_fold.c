#include "plan/layer_plans.h"
#include "sim/fold.h"
#include "sim/lower.h"
#include "tests/sim/sim_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

static const ProgramCollective REDUCE = {
    COLLECTIVE_ALL_REDUCE, GROUP_DP, 1e9, "grad_all_reduce", 1, 0, 0, 0};
static const ProgramCollective SUM = {
    COLLECTIVE_ALL_REDUCE, GROUP_TP, 1e6, "tp_grad_all_reduce", 1, 0, 0, 0};
static const ProgramCollective EXPERTS = {
    COLLECTIVE_ALL_REDUCE, GROUP_EDP, 1e9, "expert_grad_all_reduce", 1, 0, 0, 0};

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

static const RankProgram NOTHING[1] = {{NULL, 0}};

static Status choose_of(FoldMode mode, const Scenario *scenario, const Plan *plan,
                        const Program *program, Arena *arena, Folding *out) {
    LowerInput input = {.cluster = &scenario->cluster, .plan = plan, .program = program};
    return folding_choose(mode, scenario, &input, false, arena, out);
}

static Status choose(FoldMode mode, int tp, const ProgramCollective *collective, Folding *out,
                     Arena *arena) {
    Scenario scenario = {.cluster = sim_cluster(2)};
    Plan plan = plan_of(tp);
    Program program = {.num_ranks = 1,
                       .ranks = NOTHING,
                       .multiplicity = 16,
                       .block_gpus = 16,
                       .collectives = collective,
                       .num_collectives = 1};
    return choose_of(mode, &scenario, &plan, &program, arena, out);
}

static void even_tensor_parallel_ranks_fold(void) {
    Arena arena = {0};
    Folding folding;
    CU_ASSERT_EQUAL(choose(FOLD_TP, 4, &REDUCE, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 4);
    CU_ASSERT_EQUAL(folding.period, 16);
    CU_ASSERT_STRING_EQUAL(folding.name, "tp");
    CU_ASSERT_EQUAL(choose(FOLD_TP, 4, &SUM, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 4);
    CU_ASSERT_EQUAL(choose(FOLD_NONE, 4, &REDUCE, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 1);
    CU_ASSERT_EQUAL(folding.period, 16);
    CU_ASSERT_STRING_EQUAL(folding.reason, "asked for");
    arena_free(&arena);
}

// Where some layers are of tp 2, ranks that tp 4 joins do not all do the same; where they differ in
// ZeRO stage alone, they do.
static void ranks_fold_where_layers_lie_alike(void) {
    Arena arena = {0};
    Scenario scenario = {.cluster = sim_cluster(2)};
    Program program = {.num_ranks = 1,
                       .ranks = NOTHING,
                       .multiplicity = 16,
                       .collectives = &REDUCE,
                       .num_collectives = 1};
    Folding folding;
    for (int tp = 2; tp <= 4; tp += 2) {
        Plan plan = plan_of(4), own[2] = {plan, plan_of(tp)};
        own[1].zero_stage = 3;
        plan_set_layers(&plan, own, 2, &arena);
        CU_ASSERT_PTR_NOT_NULL(plan.layers);
        const Status status = choose_of(FOLD_TP, &scenario, &plan, &program, &arena, &folding);
        if (tp == 4) CU_ASSERT(status.code == STATUS_OK && folding.num_folded == 4);
        if (tp == 2)
            ASSERT_REFUSED(status, "--fold tp is not possible: layers differ in the ranks that "
                                   "share their activations");
    }
    arena_free(&arena);
}

// The ring of 4 replicas is 0, 4, 8, 12: two in each of the nodes, so it turns by nodes only.
static void replicas_in_lockstep_fold(void) {
    Arena arena = {0};
    Folding folding;
    for (FoldMode mode = FOLD_AUTO; mode < NUM_FOLD_MODES; mode++) {
        if (mode != FOLD_AUTO && mode != FOLD_FULL) continue;
        CU_ASSERT_EQUAL(choose(mode, 4, &REDUCE, &folding, &arena).code, STATUS_OK);
        CU_ASSERT_EQUAL(folding.num_folded, 4);
        CU_ASSERT_EQUAL(folding.period, 8);
        CU_ASSERT_STRING_EQUAL(folding.name, "full");
        CU_ASSERT_STRING_EQUAL(folding.reason,
                               "the 16 GPUs of a stage run in lockstep and lie alike in the "
                               "network every 8: 2 of them are simulated, each for 8");
    }
    arena_free(&arena);
}

// Slow GPUs and jitter leave tensor-parallel ranks together, but not the replicas.
static void replicas_out_of_lockstep_do_not(void) {
    Arena arena = {0};
    Disturb disturb = {.kind = DISTURB_JITTER};
    Scenario scenario = {.cluster = sim_cluster(2), .disturb = &disturb, .num_disturb = 1};
    Plan plan = plan_of(4);
    Program program = {.num_ranks = 1,
                       .ranks = NOTHING,
                       .multiplicity = 16,
                       .block_gpus = 16,
                       .collectives = &REDUCE,
                       .num_collectives = 1};
    Folding folding;
    ASSERT_REFUSED(choose_of(FOLD_FULL, &scenario, &plan, &program, &arena, &folding),
                   "--fold full is not possible: the data-parallel replicas cannot be folded: "
                   "disturb[0].jitter_frac breaks their lockstep");
    CU_ASSERT_EQUAL(choose_of(FOLD_AUTO, &scenario, &plan, &program, &arena, &folding).code,
                    STATUS_OK);
    CU_ASSERT_EQUAL(folding.period, 16);
    CU_ASSERT_STRING_EQUAL(folding.name, "tp");
    arena_free(&arena);
}

static void groups_across_them_do_not(void) {
    Arena arena = {0};
    Folding folding;
    CU_ASSERT_EQUAL(choose(FOLD_AUTO, 4, &EXPERTS, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 1);
    CU_ASSERT_EQUAL(folding.period, 8);
    CU_ASSERT_STRING_EQUAL(folding.reason,
                           "the 16 GPUs of a stage run in lockstep and lie alike in the network "
                           "every 8: 8 of them are simulated, each for 2; tensor-parallel ranks "
                           "are not folded: the edp groups of expert_grad_all_reduce run across "
                           "tensor-parallel ranks");
    ASSERT_REFUSED(choose(FOLD_TP, 4, &EXPERTS, &folding, &arena),
                   "--fold tp is not possible: the edp groups of expert_grad_all_reduce run across "
                   "tensor-parallel ranks");
    arena_free(&arena);
}

// Experts over 4 of 12 ranks: 6 ranks further on a group would begin inside another, and 4 further
// on a scale-up domain of 8 would. Step by step only a rotation folds.
static void groups_that_do_not_lie_alike_do_not(void) {
    Arena arena = {0};
    Scenario scenario = {.cluster = sim_cluster(2)};
    Plan plan = plan_of(2);
    plan.dp = plan.zero_group = 6;
    plan.ep = 4;
    plan.expert_dp = 3;
    Program program = {.num_ranks = 1, .ranks = NOTHING, .multiplicity = 12, .block_gpus = 12};
    LowerInput input = {.cluster = &scenario.cluster, .plan = &plan, .program = &program};
    Folding folding;
    ASSERT_REFUSED(folding_choose(FOLD_FULL, &scenario, &input, true, &arena, &folding),
                   "--fold full is not possible: the data-parallel replicas cannot be folded: "
                   "their ep groups do not lie alike");
    arena_free(&arena);
}

static void one_rank_is_nothing_to_fold(void) {
    Arena arena = {0};
    Folding folding;
    ASSERT_REFUSED(choose(FOLD_TP, 1, &REDUCE, &folding, &arena),
                   "--fold tp is not possible: there is one tensor-parallel rank");
    Scenario scenario = {.cluster = sim_cluster(1)};
    Plan plan = plan_of(8);
    plan.dp = plan.zero_group = plan.ep = 1;
    Program program = {.num_ranks = 1, .ranks = NOTHING, .multiplicity = 8, .block_gpus = 8};
    ASSERT_REFUSED(choose_of(FOLD_FULL, &scenario, &plan, &program, &arena, &folding),
                   "--fold full is not possible: the data-parallel replicas cannot be folded: "
                   "there is one of them");
    arena_free(&arena);
}

// 16 tensor-parallel ranks in 2 nodes send to the other node, each from a NIC of its own. Experts
// over all of 4 nodes do so from blocks of 4 tensor-parallel ranks to blocks of 4.
static void rings_across_domains_keep_to_blocks(void) {
    Arena arena = {0};
    Folding folding;
    ASSERT_REFUSED(choose(FOLD_TP, 16, &REDUCE, &folding, &arena),
                   "--fold tp is not possible: the tp groups cross scale-up domains inside a block "
                   "of tensor-parallel ranks");
    CU_ASSERT_EQUAL(choose(FOLD_AUTO, 16, &REDUCE, &folding, &arena).code, STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 1);
    CU_ASSERT_EQUAL(folding.period, 8);
    Scenario scenario = {.cluster = sim_cluster(4)};
    Plan plan = plan_of(4);
    plan.dp = plan.zero_group = 8;
    plan.ep = 32;
    plan.expert_dp = 1;
    Program program = {.num_ranks = 1, .ranks = NOTHING, .multiplicity = 32, .block_gpus = 32};
    CU_ASSERT_EQUAL(choose_of(FOLD_TP, &scenario, &plan, &program, &arena, &folding).code,
                    STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 4);
    arena_free(&arena);
}

static void an_uneven_network_does_not_fold(void) {
    Arena arena = {0};
    Disturb disturb[] = {{.kind = DISTURB_JITTER}, {.kind = DISTURB_SLOW_GPU, .factor = 2}};
    Scenario scenario = {.cluster = sim_cluster(2), .disturb = disturb, .num_disturb = 2};
    Plan plan = plan_of(4);
    Program program = {.num_ranks = 1,
                       .ranks = NOTHING,
                       .multiplicity = 16,
                       .block_gpus = 16,
                       .collectives = &REDUCE,
                       .num_collectives = 1};
    Folding folding;
    CU_ASSERT_EQUAL(choose_of(FOLD_AUTO, &scenario, &plan, &program, &arena, &folding).code,
                    STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 4);
    disturb[1] = (Disturb){.kind = DISTURB_LINK, .bandwidth_factor = 0.5};
    CU_ASSERT_EQUAL(choose_of(FOLD_AUTO, &scenario, &plan, &program, &arena, &folding).code,
                    STATUS_OK);
    CU_ASSERT_EQUAL(folding.num_folded, 1);
    CU_ASSERT_STRING_EQUAL(folding.reason, "disturb[1].link makes the network of the "
                                           "tensor-parallel ranks uneven; the data-parallel "
                                           "replicas are not folded: disturb[0].jitter_frac breaks "
                                           "their lockstep");
    ASSERT_REFUSED(choose_of(FOLD_TP, &scenario, &plan, &program, &arena, &folding),
                   "--fold tp is not possible: disturb[1].link makes the network of the "
                   "tensor-parallel ranks uneven");
    arena_free(&arena);
}

CU_TestInfo fold_tests[] = {
    {"even_tensor_parallel_ranks_fold", even_tensor_parallel_ranks_fold},
    {"ranks_fold_where_layers_lie_alike", ranks_fold_where_layers_lie_alike},
    {"replicas_in_lockstep_fold", replicas_in_lockstep_fold},
    {"replicas_out_of_lockstep_do_not", replicas_out_of_lockstep_do_not},
    {"groups_across_them_do_not", groups_across_them_do_not},
    {"groups_that_do_not_lie_alike_do_not", groups_that_do_not_lie_alike_do_not},
    {"an_uneven_network_does_not_fold", an_uneven_network_does_not_fold},
    {"one_rank_is_nothing_to_fold", one_rank_is_nothing_to_fold},
    {"rings_across_domains_keep_to_blocks", rings_across_domains_keep_to_blocks},
    CU_TEST_INFO_NULL,
};
