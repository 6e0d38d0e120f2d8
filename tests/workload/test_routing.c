#include "workload/pass/routing.h"

#include <CUnit/CUnit.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-12)

// 2 of 8 experts, 2 on each of 4 ranks: the second is beside the first in 1 case of 7.
static void different_experts_share_a_rank_by_chance(void) {
    const Routing r = {8, 2, 1, 1};
    ASSERT_CLOSE(routing_parts_reached(&r, 4), 2 - 1.0 / 7);
    ASSERT_CLOSE(routing_parts_reached(&r, 8), 2);
    ASSERT_CLOSE(routing_parts_reached(&r, 1), 1);
}

// 2 of 4 groups of 2 experts, 2 of their 4 experts. Two halves: both groups lie in one in 1 case of
// 3; else both experts are of one group in 1 case of 3: 1/3 + 2/3 (1/3 + 2 x 2/3) = 13/9. Single
// experts: 2. Whole groups: 1/3 + 2 x 2/3 = 5/3.
static void groups_limit_the_choice(void) {
    const Routing r = {8, 2, 4, 2};
    ASSERT_CLOSE(routing_parts_reached(&r, 2), 13.0 / 9);
    ASSERT_CLOSE(routing_parts_reached(&r, 8), 2);
    ASSERT_CLOSE(routing_parts_reached(&r, 4), 5.0 / 3);
}

// No more parts than experts chosen or parts there are; more parts, more reached; a limit to all
// groups is none, a tighter one reaches fewer domains.
static void more_parts_reach_more(void) {
    for (int chosen = 1; chosen <= 8; chosen++) {
        const Routing r = {256, chosen, 1, 1}, all = {256, chosen, 8, 8},
                      four = {256, chosen, 8, 4};
        double before = 0;
        for (int parts = 1; parts <= 256; parts *= 2) {
            const double reached = routing_parts_reached(&r, parts);
            CU_ASSERT(reached >= before && reached <= parts && reached <= chosen + 1e-12);
            if (parts <= 8)
                CU_ASSERT_DOUBLE_EQUAL(routing_parts_reached(&all, parts), reached, 1e-9);
            CU_ASSERT(routing_parts_reached(&four, parts) <= reached + 1e-12);
            before = reached;
        }
    }
}

CU_TestInfo routing_tests[] = {
    {"different_experts_share_a_rank_by_chance", different_experts_share_a_rank_by_chance},
    {"groups_limit_the_choice", groups_limit_the_choice},
    {"more_parts_reach_more", more_parts_reach_more},
    CU_TEST_INFO_NULL,
};
