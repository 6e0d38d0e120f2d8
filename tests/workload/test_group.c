#include "workload/pass/group.h"

#include <CUnit/CUnit.h>

static Plan plan_of(int tp, int cp, int dp, int pp, int ep, int etp, int zero_group) {
    Plan plan = {.tp = tp, .cp = cp, .dp = dp, .pp = pp, .ep = ep, .etp = etp};
    plan.zero_group = zero_group;
    plan.expert_dp = tp * cp * dp / (ep * etp);
    return plan;
}

static void assert_group(const Plan *plan, GroupKind kind, int size, int stride) {
    Group group = plan_group(plan, kind);
    CU_ASSERT_EQUAL(group.size, size);
    CU_ASSERT_EQUAL(group.stride, stride);
}

// tp 2, cp 2, dp 4, pp 3: a stage has 16 ranks. Rank = t + 2 c + 4 d + 16 p. Neighbours in tp are 1
// apart, in cp 2, in dp x cp 2, in pp 16. Shards over 4 of the 8 ranks of dp x cp: 4 ranks 2 apart;
// those with the same shard are 8 apart. Experts: etp 2, ep 4 leave 16 / 8 = 2 replicas, 8 apart.
static void groups_of_a_plan_by_hand(void) {
    const Plan plan = plan_of(2, 2, 4, 3, 4, 2, 4);
    assert_group(&plan, GROUP_TP, 2, 1);
    assert_group(&plan, GROUP_CP, 2, 2);
    assert_group(&plan, GROUP_DP, 8, 2);
    assert_group(&plan, GROUP_ZERO, 4, 2);
    assert_group(&plan, GROUP_REPLICA, 2, 8);
    assert_group(&plan, GROUP_ETP, 2, 1);
    assert_group(&plan, GROUP_EP, 4, 2);
    assert_group(&plan, GROUP_EDP, 2, 8);
    assert_group(&plan, GROUP_EZERO, 2, 8);
    assert_group(&plan, GROUP_EREPLICA, 1, 16);
    assert_group(&plan, GROUP_PP, 3, 16);
}

// Whether the groups of these kinds, one inside the other, number the ranks 0 .. count - 1.
static bool nest(const Plan *plan, const GroupKind *kinds, int num_kinds, int count) {
    int stride = plan_group(plan, kinds[0]).stride;
    for (int i = 0; i < num_kinds; i++) {
        const Group group = plan_group(plan, kinds[i]);
        if (group.size > 1 && group.stride != stride) return false;
        stride *= group.size;
    }
    return stride == count * plan_group(plan, kinds[0]).stride;
}

static void groups_divide_the_ranks(void) {
    static const GroupKind ALL[] = {GROUP_TP, GROUP_DP, GROUP_PP};
    static const GroupKind EXPERT[] = {GROUP_ETP, GROUP_EP, GROUP_EDP, GROUP_PP};
    static const GroupKind SHARDS[] = {GROUP_ZERO, GROUP_REPLICA};
    static const GroupKind EXPERT_SHARDS[] = {GROUP_EZERO, GROUP_EREPLICA};
    for (int bits = 0; bits < 1 << 6; bits++) {
        const int tp = 1 + (bits & 1), cp = 1 + (bits >> 1 & 1), dp = 1 << (bits >> 2 & 3);
        const int zero = bits >> 4 & 1 ? dp * cp : dp, stage = tp * cp * dp;
        const int ep = bits >> 5 & 1 ? dp : 1;
        const Plan plan = plan_of(tp, cp, dp, 3, ep, tp, zero);
        CU_ASSERT_TRUE(nest(&plan, ALL, 3, 3 * stage));
        CU_ASSERT_TRUE(nest(&plan, EXPERT, 4, 3 * stage));
        CU_ASSERT_TRUE(nest(&plan, SHARDS, 2, dp * cp));
        CU_ASSERT_TRUE(nest(&plan, EXPERT_SHARDS, 2, plan.expert_dp));
    }
}

// Whether the groups of a kind are those of the ranks that differ in one coordinate: the rank with
// coordinate i stands at place i, i strides from the first.
static void check_axis(const Plan *plan, GroupKind kind, int size, int stride, int rank, int i) {
    const Group group = plan_group(plan, kind);
    CU_ASSERT_EQUAL(group.size, size);
    if (size == 1) return;
    CU_ASSERT_EQUAL(group.stride, stride);
    CU_ASSERT_EQUAL(rank / group.stride % group.size, i);
}

// As RankGenerator numbers them for tp-cp-ep-pp-dp (megatron/core/parallel_state.py): of attention
// rank = t + tp (p + pp d), of experts rank = et + etp (e + ep (p + pp ed)), where etp x ep is tp.
static void groups_where_stages_alternate(void) {
    for (int bits = 0; bits < 1 << 4; bits++) {
        const int tp = 1 << (bits & 3), ep = tp > 1 && bits >> 2 & 1 ? 2 : 1, etp = tp / ep;
        const int pp = 3, dp = bits >> 3 & 1 ? 4 : 6, zero = dp / 2;
        Plan plan = plan_of(tp, 1, dp, pp, ep, etp, zero);
        plan.order = ORDER_PP_DP;
        for (int rank = 0; rank < tp * pp * dp; rank++) {
            const int t = rank % tp, p = rank / tp % pp, d = rank / tp / pp;
            check_axis(&plan, GROUP_TP, tp, 1, rank, t);
            check_axis(&plan, GROUP_DP, dp, tp * pp, rank, d);
            check_axis(&plan, GROUP_ZERO, zero, tp * pp, rank, d % zero);
            check_axis(&plan, GROUP_REPLICA, 2, tp * pp * zero, rank, d / zero);
            check_axis(&plan, GROUP_ETP, etp, 1, rank, t % etp);
            check_axis(&plan, GROUP_EP, ep, etp, rank, t / etp);
            check_axis(&plan, GROUP_EDP, dp, tp * pp, rank, d);
            check_axis(&plan, GROUP_PP, pp, tp, rank, p);
        }
        const Group lanes = plan_lane_group(&plan, GROUP_DP);
        CU_ASSERT_EQUAL(lanes.size, dp);
        CU_ASSERT_EQUAL(lanes.stride, tp);
    }
}

// With cp a data-parallel group has cp ranks in each block. Of tp 2, cp 2, pp 2, dp 4 rank 0 meets
// 0 and 2, 8 and 10, 16 and 18, 24 and 26: two to a domain of 8, as at a stride of 4; of pp 4 0 and
// 2, 16 and 18, ...: two to each domain that has any, the same; where a block is a domain, or
// several, as if stages did not alternate.
static void groups_of_several_ranks_to_a_block_are_spread(void) {
    static const struct {
        int pp, domain, stride;
    } CASES[] = {{2, 8, 4}, {4, 8, 4}, {2, 16, 4}, {2, 4, 2}, {2, 2, 2}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Plan plan = plan_of(2, 2, 4, CASES[i].pp, 1, 4, 8);
        plan.order = ORDER_PP_DP;
        plan.domain_gpus = CASES[i].domain;
        CU_ASSERT_EQUAL(plan_group(&plan, GROUP_DP).size, 8);
        CU_ASSERT_EQUAL(plan_group(&plan, GROUP_DP).stride, CASES[i].stride);
        CU_ASSERT_EQUAL(plan_group(&plan, GROUP_CP).stride, 2);
        CU_ASSERT_EQUAL(plan_group(&plan, GROUP_EDP).stride, 4 * CASES[i].pp);
    }
}

// 12 replicas of the experts, shards over 8 ranks of 24: the most of 8, 7, 6, ... that divide 12.
static void expert_shards_divide_their_replicas(void) {
    const Plan plan = plan_of(1, 1, 24, 1, 2, 1, 8);
    assert_group(&plan, GROUP_EZERO, 6, 2);
    assert_group(&plan, GROUP_EREPLICA, 2, 12);
    const Plan all = plan_of(1, 1, 24, 1, 2, 1, 24);
    assert_group(&all, GROUP_EZERO, 12, 2);
}

CU_TestInfo group_tests[] = {
    {"groups_of_a_plan_by_hand", groups_of_a_plan_by_hand},
    {"groups_divide_the_ranks", groups_divide_the_ranks},
    {"groups_where_stages_alternate", groups_where_stages_alternate},
    {"groups_of_several_ranks_to_a_block_are_spread",
     groups_of_several_ranks_to_a_block_are_spread},
    {"expert_shards_divide_their_replicas", expert_shards_divide_their_replicas},
    CU_TEST_INFO_NULL,
};
