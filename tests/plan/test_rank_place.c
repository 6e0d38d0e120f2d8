#include "plan/rank_place.h"

#include "workload/pass/group.h"

#include <CUnit/CUnit.h>

static Plan plan_of(int tp, int cp, int dp, int pp, PlanOrder order) {
    return (Plan){.tp = tp, .cp = cp, .dp = dp, .pp = pp, .order = order};
}

// tp 2, dp 2, pp 3. With tp-cp-ep-dp-pp stage 1 has ranks 4 to 7. With tp-cp-ep-pp-dp its first
// replica has 2 and 3, behind stage 0's 0 and 1, and its second, pp x tp further on, 8 and 9.
static void places_by_hand(void) {
    static const int EXPECTED[NUM_PLAN_ORDERS][4] = {{4, 5, 6, 7}, {2, 3, 8, 9}};
    for (int order = 0; order < NUM_PLAN_ORDERS; order++) {
        const Plan plan = plan_of(2, 1, 2, 3, (PlanOrder)order);
        for (int lane = 0; lane < 4; lane++) {
            const int rank = EXPECTED[order][lane];
            CU_ASSERT_EQUAL(plan_rank_at(&plan, 1, lane), rank);
            CU_ASSERT_EQUAL(plan_rank_place(&plan, rank).stage, 1);
            CU_ASSERT_EQUAL(plan_rank_place(&plan, rank).lane, lane);
        }
    }
}

static void check_places(const Plan *plan) {
    const int64_t stage_gpus = plan_stage_gpus(plan);
    for (int64_t rank = 0; rank < stage_gpus * plan->pp; rank++) {
        const RankPlace place = plan_rank_place(plan, rank);
        const RankSpan span = plan_stage_span(plan, place.stage);
        CU_ASSERT_EQUAL(plan_rank_at(plan, place.stage, place.lane), rank);
        CU_ASSERT_EQUAL(span.num, stage_gpus);
        CU_ASSERT_EQUAL(span_rank(&span, place.lane), rank);
        for (int stage = 0; stage < plan->pp; stage++) {
            const RankSpan other = plan_stage_span(plan, stage);
            CU_ASSERT_EQUAL(span_holds(&other, rank), stage == place.stage);
        }
    }
}

static void every_rank_has_one_place(void) {
    for (int bits = 0; bits < 1 << 7; bits++) {
        const Plan plan = plan_of(1 + (bits & 3), 1 + (bits >> 2 & 1), 1 + (bits >> 3 & 3),
                                  1 + (bits >> 5 & 1) * 2, (PlanOrder)(bits >> 6));
        check_places(&plan);
    }
}

// Without a pipeline, and with one replica, both orders number alike.
static void orders_may_be_one(void) {
    const Plan alone = plan_of(2, 2, 4, 1, ORDER_PP_DP), single = plan_of(2, 2, 1, 4, ORDER_PP_DP);
    CU_ASSERT_FALSE(plan_stages_alternate(&alone));
    CU_ASSERT_FALSE(plan_stages_alternate(&single));
    CU_ASSERT_EQUAL(plan_block_gpus(&alone), 16);
    CU_ASSERT_EQUAL(plan_block_gpus(&single), 4);
}

CU_TestInfo rank_place_tests[] = {
    {"places_by_hand", places_by_hand},
    {"every_rank_has_one_place", every_rank_has_one_place},
    {"orders_may_be_one", orders_may_be_one},
    CU_TEST_INFO_NULL,
};
