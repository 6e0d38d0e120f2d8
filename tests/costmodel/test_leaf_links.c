#include "costmodel/network/leaf_links.h"

#include "config/cluster/node_order.h"
#include "costmodel/network/collective.h"
#include "costmodel/network/message.h"
#include "costmodel/network/site_links.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

// 64 nodes of 8 GPUs: with rails two blocks of 32 nodes, else 16 leaves of 4 nodes.
static Cluster leaves_case(Topology topology, double oversubscription) {
    Cluster cluster = made_up_cluster(64 * 8);
    test_pool(&cluster)->nics_per_node = 8;
    test_pool(&cluster)->topology = topology;
    test_pool(&cluster)->oversubscription = oversubscription;
    return cluster;
}

static const Group ALL_NODES = {64, 8}, LEAF_NODES = {32, 8}, FAR_NODES = {2, 256};

static double ring_slowdown(const Cluster *cluster, Group group) {
    return leaves_slowdown(machines_of(cluster), COLLECTIVE_ALL_GATHER, group, 1,
                           all_ranks(&cluster->pools[0]));
}

// A ring over all nodes crosses each leaf once: 1 NIC's worth a rail of the 8 that there are. One
// between halves crosses with every node.
static void a_ring_crosses_a_leaf_once(void) {
    const Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 4);
    CU_ASSERT_EQUAL(ring_slowdown(&cluster, ALL_NODES), 1);
    CU_ASSERT_EQUAL(ring_slowdown(&cluster, LEAF_NODES), 1);
    ASSERT_CLOSE(ring_slowdown(&cluster, FAR_NODES), 4);
    const Cluster scarce = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 64);
    ASSERT_CLOSE(ring_slowdown(&scarce, ALL_NODES), 2);
    CU_ASSERT_EQUAL(ring_slowdown(&scarce, LEAF_NODES), 1);
}

// Without rails a leaf is 4 nodes with uplinks for 8 of 32 NICs: the 8 GPUs of its last node cross.
static void leaves_of_whole_nodes_are_smaller(void) {
    const Cluster cluster = leaves_case(TOPOLOGY_FAT_TREE, 4);
    CU_ASSERT_EQUAL(ring_slowdown(&cluster, ALL_NODES), 1);
    ASSERT_CLOSE(ring_slowdown(&cluster, (Group){8, 32}), 4);
    const Cluster scarce = leaves_case(TOPOLOGY_FAT_TREE, 8);
    ASSERT_CLOSE(ring_slowdown(&scarce, ALL_NODES), 2);
}

// Of 63 other nodes 32 are beyond the leaf.
static void an_all_to_all_crosses_by_its_share(void) {
    const Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 4);
    ASSERT_CLOSE(leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_TO_ALL, ALL_NODES, 1,
                                 all_ranks(&cluster.pools[0])),
                 4 * 32.0 / 63);
    ASSERT_CLOSE(leaves_slowdown(machines_of(&cluster), COLLECTIVE_DISPATCH, (Group){512, 1}, 8,
                                 all_ranks(&cluster.pools[0])),
                 4 * 32.0 / 63);
    CU_ASSERT_EQUAL(leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_TO_ALL, LEAF_NODES, 1,
                                    all_ranks(&cluster.pools[0])),
                    1);
    CU_ASSERT_EQUAL(leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_TO_ALL, (Group){8, 1}, 8,
                                    all_ranks(&cluster.pools[0])),
                    1);
}

// Stages of 4 nodes send within their leaf, those of 32 all across.
static void messages_between_whole_leaves_all_cross(void) {
    const Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 4);
    Plan plan = {.tp = 8, .cp = 1, .dp = 4, .pp = 16};
    CU_ASSERT_EQUAL(ranks_leaves_slowdown(&cluster, &plan, 0, 1), 0);
    // 4 nodes of 8 that there are uplinks for.
    ASSERT_CLOSE(ranks_leaves_slowdown(&cluster, &plan, 7, 8), 0.5);
    plan = (Plan){.tp = 8, .cp = 1, .dp = 32, .pp = 2};
    ASSERT_CLOSE(ranks_leaves_slowdown(&cluster, &plan, 0, 1), 4);
}

// Flows that go on by half of the cluster all cross, those to a neighbour once a leaf.
static void single_steps_cross_as_far_as_they_go(void) {
    const Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 4);
    ASSERT_CLOSE(leaves_step_slowdown(machines_of(&cluster), ALL_NODES, 32), 4);
    ASSERT_CLOSE(leaves_step_slowdown(machines_of(&cluster), ALL_NODES, 16), 2);
    CU_ASSERT_EQUAL(leaves_step_slowdown(machines_of(&cluster), ALL_NODES, 1), 1);
}

// Two NICs for 8 GPUs: stages of 2 GPUs send two over a NIC that four hang on, stages of 8 all.
static void few_senders_have_more_of_a_nic(void) {
    Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 1);
    test_pool(&cluster)->nics_per_node = 2;
    Plan plan = {.tp = 2, .cp = 1, .dp = 1, .pp = 8};
    ASSERT_CLOSE(ranks_network_slowdown(&cluster, &plan, 3, 4), 0.5);
    plan = (Plan){.tp = 8, .cp = 1, .dp = 1, .pp = 2};
    ASSERT_CLOSE(ranks_network_slowdown(&cluster, &plan, 0, 1), 1);
}

// 16 stages of one GPU a replica: 8 of them in a node with 2 NICs. Stages 7 and 8 lie in different
// nodes, and one GPU of each sends over a NIC that is for 4.
static void stages_that_alternate_send_from_every_node(void) {
    Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 1);
    test_pool(&cluster)->nics_per_node = 2;
    const Plan plan = {.tp = 1, .cp = 1, .dp = 32, .pp = 16, .order = ORDER_PP_DP};
    CU_ASSERT_TRUE(ranks_share_domain(&cluster, &plan, 3, 4));
    CU_ASSERT_FALSE(ranks_share_domain(&cluster, &plan, 7, 8));
    ASSERT_CLOSE(ranks_network_slowdown(&cluster, &plan, 7, 8), 0.25);
    // Of 3 stages of 2 GPUs the second replica begins with the last 2 of a node.
    Pool three = cluster.pools[0];
    three.num_gpus = 24;
    three.num_nodes = 3;
    cluster = test_cluster(&three);
    const Plan askew = {.tp = 2, .cp = 1, .dp = 4, .pp = 3, .order = ORDER_PP_DP};
    CU_ASSERT_FALSE(ranks_share_domain(&cluster, &askew, 0, 1));
    CU_ASSERT_TRUE(gpus_share_domain(&cluster, 0, 2));
    CU_ASSERT_FALSE(gpus_share_domain(&cluster, 6, 8));
}

// Nodes of 2 stages in turn: their messages stay below one leaf, where those of whole leaves all
// cross. The ring of a stage goes on from leaf to leaf, once a rail: 8 flows over 32 x 8 / 64 NICs'
// worth of uplinks.
static void stages_that_alternate_are_below_one_leaf(void) {
    const Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 64);
    Plan plan = {.tp = 8, .cp = 1, .dp = 32, .pp = 2, .zero_group = 32};
    const Group neighbours = plan_group(&plan, GROUP_DP);
    ASSERT_CLOSE(ranks_leaves_slowdown(&cluster, &plan, 0, 1), 64);
    CU_ASSERT_EQUAL(leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_GATHER, neighbours, 1,
                                    plan_stage_span(&plan, 1)),
                    1);
    plan.order = ORDER_PP_DP;
    const Group apart = plan_group(&plan, GROUP_DP);
    CU_ASSERT_EQUAL(ranks_leaves_slowdown(&cluster, &plan, 0, 1), 0);
    ASSERT_CLOSE(leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_GATHER, apart, 1,
                                 plan_stage_span(&plan, 1)),
                 2);
}

static void full_uplinks_take_nothing(void) {
    const Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 1);
    CU_ASSERT_EQUAL(ring_slowdown(&cluster, FAR_NODES), 1);
    CU_ASSERT_EQUAL(leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_TO_ALL, ALL_NODES, 1,
                                    all_ranks(&cluster.pools[0])),
                    1);
}

// The price of a collective follows.
static void transfers_take_longer_by_it(void) {
    const Cluster plain = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 1);
    const Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 4);
    const double alpha_s =
        collective_s(machines_of(&plain), COLLECTIVE_ALL_GATHER, FAR_NODES, 1e-6);
    const double plain_s =
        collective_s(machines_of(&plain), COLLECTIVE_ALL_GATHER, FAR_NODES, 4e9) - alpha_s;
    const double slow_s =
        collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, FAR_NODES, 4e9) - alpha_s;
    CU_ASSERT_DOUBLE_EQUAL(slow_s / plain_s, 4, 1e-3);
    CU_ASSERT_EQUAL(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, LEAF_NODES, 4e9),
                    collective_s(machines_of(&plain), COLLECTIVE_ALL_GATHER, LEAF_NODES, 4e9));
}

// Node 40 stands among the first 32 instead of node 5: 8 flows go from node 4 to the other block
// over the 32 x 8 / 64 NICs' worth of uplinks that there are, and 8 come back. The other 32 are
// crossed as often; a ring of the first 4 nodes is not.
static void a_placed_ring_crosses_where_its_nodes_stand(void) {
    Cluster cluster = leaves_case(TOPOLOGY_RAIL_FAT_TREE, 64);
    int nodes[64];
    for (int i = 0; i < 64; i++) nodes[i] = i == 5 ? 40 : i == 40 ? 5 : i;
    Arena arena = {0};
    CU_ASSERT_EQUAL(leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_GATHER, LEAF_NODES, 1,
                                    all_ranks(&cluster.pools[0])),
                    1);
    cluster.network.order = node_order_new(nodes, 64, &arena);
    for (int stage = 0; stage < 2; stage++) {
        const RankSpan ranks = {.first = 256 * stage, .num = 256};
        ASSERT_CLOSE(
            leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_GATHER, LEAF_NODES, 1, ranks), 2);
    }
    const RankSpan first = {.num = 32};
    CU_ASSERT_EQUAL(
        leaves_slowdown(machines_of(&cluster), COLLECTIVE_ALL_GATHER, (Group){4, 8}, 1, first), 1);
    const Plan plan = {.tp = 8, .cp = 1, .dp = 1, .pp = 64};
    ASSERT_CLOSE(ranks_leaves_slowdown(&cluster, &plan, 4, 5), 2);
    CU_ASSERT_EQUAL(ranks_leaves_slowdown(&cluster, &plan, 3, 4), 0);
    arena_free(&arena);
}

CU_TestInfo leaf_links_tests[] = {
    {"a_placed_ring_crosses_where_its_nodes_stand", a_placed_ring_crosses_where_its_nodes_stand},
    {"a_ring_crosses_a_leaf_once", a_ring_crosses_a_leaf_once},
    {"leaves_of_whole_nodes_are_smaller", leaves_of_whole_nodes_are_smaller},
    {"an_all_to_all_crosses_by_its_share", an_all_to_all_crosses_by_its_share},
    {"messages_between_whole_leaves_all_cross", messages_between_whole_leaves_all_cross},
    {"single_steps_cross_as_far_as_they_go", single_steps_cross_as_far_as_they_go},
    {"few_senders_have_more_of_a_nic", few_senders_have_more_of_a_nic},
    {"stages_that_alternate_send_from_every_node", stages_that_alternate_send_from_every_node},
    {"stages_that_alternate_are_below_one_leaf", stages_that_alternate_are_below_one_leaf},
    {"full_uplinks_take_nothing", full_uplinks_take_nothing},
    {"transfers_take_longer_by_it", transfers_take_longer_by_it},
    CU_TEST_INFO_NULL,
};
