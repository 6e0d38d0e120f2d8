#include "sim/lanes.h"

#include <CUnit/CUnit.h>

static void replicas_in_turn_are_alike(void) {
    Arena arena = {0};
    const Lanes lanes = lanes_by_period(4, 6, 2, &arena);
    for (int i = 0; i < 6; i++) CU_ASSERT_EQUAL(lanes.of[i], i % 2);
    CU_ASSERT_EQUAL(lanes.replica[0], 0);
    CU_ASSERT_EQUAL(lanes.replica[1], 1);
    CU_ASSERT_EQUAL(lanes.num_alike[0], 3);
    CU_ASSERT_EQUAL(lanes.num_alike[1], 3);
    arena_free(&arena);
}

// Of 2 ranks each: ranks 4 apart are replicas 2 apart. Replica 3 is in the group of 1, 3 and 5.
static void places_are_those_of_replicas(void) {
    Arena arena = {0};
    const Lanes lanes = lanes_by_period(2, 6, 6, &arena);
    const Group group = {.size = 3, .stride = 4};
    CU_ASSERT_EQUAL(replica_place(&lanes, group, 3), 1);
    CU_ASSERT_EQUAL(replica_at_place(&lanes, group, 3, 0), 1);
    CU_ASSERT_EQUAL(replica_at_place(&lanes, group, 3, 2), 5);
    const Group folded = {.size = 2, .stride = 1}; // inside of a replica
    CU_ASSERT_EQUAL(replica_place(&lanes, folded, 3), 0);
    CU_ASSERT_EQUAL(replica_at_place(&lanes, folded, 3, 0), 3);
    arena_free(&arena);
}

// Replicas of lanes 0 and 1, 0 and 1, 2 and 2, 3 and 1 share groups: lane 3 hangs together with 0
// through 1.
static void groups_join_lanes(void) {
    Arena arena = {0};
    static const int of[] = {0, 1, 0, 1, 2, 2, 3, 1};
    const Lanes lanes = lanes_of(1, 8, 4, of, &arena);
    CU_ASSERT_EQUAL(lanes.replica[2], 4);
    CU_ASSERT_EQUAL(lanes.num_alike[1], 3);
    const int *firsts = lanes_group_firsts(&lanes, (Group){.size = 2, .stride = 1}, &arena);
    CU_ASSERT_EQUAL(firsts[0], 0);
    CU_ASSERT_EQUAL(firsts[1], 0);
    CU_ASSERT_EQUAL(firsts[2], 2);
    CU_ASSERT_EQUAL(firsts[3], 0);
    firsts = lanes_group_firsts(&lanes, (Group){.size = 1, .stride = 1}, &arena);
    for (int lane = 0; lane < 4; lane++) CU_ASSERT_EQUAL(firsts[lane], lane);
    arena_free(&arena);
}

// cp joins replicas 2 i and 2 i + 1 of tp 2 inside computations.
static void computations_join_lanes(void) {
    Arena arena = {0};
    const Plan plan = {
        .tp = 2, .pp = 1, .dp = 3, .cp = 2, .ep = 1, .etp = 1, .zero_group = 3, .expert_dp = 12};
    const Lanes lanes = lanes_by_period(2, 6, 6, &arena);
    const int *firsts = lanes_meeting_firsts(&lanes, &plan, &arena);
    for (int lane = 0; lane < 6; lane++) CU_ASSERT_EQUAL(firsts[lane], lane / 2 * 2);
    arena_free(&arena);
}

CU_TestInfo lanes_tests[] = {
    {"replicas_in_turn_are_alike", replicas_in_turn_are_alike},
    {"places_are_those_of_replicas", places_are_those_of_replicas},
    {"groups_join_lanes", groups_join_lanes},
    {"computations_join_lanes", computations_join_lanes},
    CU_TEST_INFO_NULL,
};
