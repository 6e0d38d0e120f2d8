#include "sim/job_flows.h"
#include "sim/likeness.h"
#include "tests/sim/sim_case.h"

#include <CUnit/CUnit.h>

// Two stages of 5 nodes each, tp 8, that send one message forward and sum gradients, on a fat tree:
// leaf switches of 4 nodes, so that the stages meet inside of the second.
static const ProgramCollective REDUCE = {
    COLLECTIVE_ALL_REDUCE, GROUP_DP, 1e9, "grad_all_reduce", 1, 0, 0, 0};
static const Instruction FIRST[] = {
    {.kind = INSTRUCTION_SEND, .peer = 1, .match = 0, .collective = -1, .waits = {-1, -1}},
    {.kind = INSTRUCTION_COLLECTIVE, .peer = -1, .match = -1, .waits = {-1, -1}},
};
static const Instruction SECOND[] = {
    {.kind = INSTRUCTION_RECV, .peer = 0, .match = 0, .collective = -1, .waits = {-1, -1}},
    {.kind = INSTRUCTION_COLLECTIVE, .peer = -1, .match = -1, .waits = {-1, -1}},
};
static const RankProgram RANKS[] = {{FIRST, 2}, {SECOND, 2}};
static const Program PROGRAM = {.num_ranks = 2,
                                .multiplicity = 40,
                                .block_gpus = 40,
                                .ranks = RANKS,
                                .collectives = &REDUCE,
                                .num_collectives = 1};
static const Plan PLAN = {
    .tp = 8, .pp = 2, .dp = 5, .cp = 1, .ep = 1, .etp = 1, .zero_group = 5, .expert_dp = 5};

static Cluster fat_tree(double oversubscription) {
    Cluster cluster = sim_cluster(10);
    test_pool(&cluster)->topology = TOPOLOGY_FAT_TREE;
    test_pool(&cluster)->oversubscription = oversubscription;
    return cluster;
}

// Ways: the message, and each stage's ring across nodes. The ring of the first stage goes from node
// 0 to 1 inside a leaf, from 3 to 4 to the next one, and from 4 back to 0; the message of node 0
// goes to node 5 of that.
static void flows_are_messages_and_rings(void) {
    Arena arena = {0};
    const Cluster cluster = fat_tree(1);
    const LowerInput input = {.cluster = &cluster, .plan = &PLAN, .program = &PROGRAM};
    const Network network = network_build(&cluster, 8, &arena);
    const JobFlows flows = job_flows(&input, &network, 8, &arena);
    CU_ASSERT_EQUAL(flows.num_ways, 3);
    CU_ASSERT_EQUAL(flows.num_replicas, 5);
    CU_ASSERT_EQUAL(flows.first_link[0], 0);
    int num_within = 0, num_between = 0;
    for (int flow = 0; flow < 15; flow++) {
        const int num = flows.first_link[flow + 1] - flows.first_link[flow];
        num_within += num == 2;  // two NICs
        num_between += num == 4; // and two leaves
    }
    // Nodes 0-3 | 4-7 | 8-9. Messages 0>5 1>6 2>7 between, 3>8 and 4>9 too; ring 0>1>2>3 within,
    // 3>4>0 between; ring 5>6>7 within, 7>8 between, 8>9 within, 9>5 between.
    CU_ASSERT_EQUAL(num_within, 3 + 3);
    CU_ASSERT_EQUAL(num_between, 5 + 2 + 2);
    // What meets inside computations (each itself), and the group of all.
    CU_ASSERT_EQUAL(flows.num_groups, 2);
    for (int i = 0; i < 5; i++) CU_ASSERT_EQUAL(flows.group_firsts[1][i], 0);
    arena_free(&arena);
}

// Leaves that carry all that their NICs can send limit nothing; NICs carry the same two flows each.
// The NICs' capacities stay what a flow sees of them: five of them, with five flows of each way.
static void replicas_of_full_bandwidth_are_one_sort(void) {
    Arena arena = {0};
    const Cluster cluster = fat_tree(1);
    const LowerInput input = {.cluster = &cluster, .plan = &PLAN, .program = &PROGRAM};
    Likeness likeness;
    CU_ASSERT_FATAL(likeness_find(&input, 8, LIKENESS_EXACT, &arena, &likeness));
    CU_ASSERT_EQUAL(likeness.lanes.num_lanes, 1);
    CU_ASSERT_EQUAL(likeness.lanes.num_alike[0], 5);
    CU_ASSERT(likeness.num_leaves_left_out > 0);
    Network network = network_build(&cluster, 8, &arena);
    const Network whole = network_build(&cluster, 8, &arena);
    network_merge(&network, &input, &likeness, &arena);
    CU_ASSERT_STRING_EQUAL(sim_route_text(&network, 0, 40, &arena), "nic:0.0 out, nic:5.0 in");
    int links[MAX_HOPS];
    CU_ASSERT_EQUAL_FATAL(network_route(&network, 0, 40, links), 2);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(network_num_crossings(&network, 0, links[i]), 1);
        CU_ASSERT_DOUBLE_EQUAL(network.link_bytes_per_s[links[i]], whole.link_bytes_per_s[links[i]],
                               1);
    }
    arena_free(&arena);
}

// Where uplinks are short each of the five meets something else there, by its distance from the
// border: no two are alike.
static void short_uplinks_tell_replicas_apart(void) {
    Arena arena = {0};
    const Cluster cluster = fat_tree(4);
    const LowerInput input = {.cluster = &cluster, .plan = &PLAN, .program = &PROGRAM};
    Likeness likeness;
    CU_ASSERT_FALSE(likeness_find(&input, 8, LIKENESS_EXACT, &arena, &likeness));
    arena_free(&arena);
}

// Of tp 1 the eight GPUs of a node are alike, but the nodes are not: 5 sorts of 40. Sorting up to
// fewer stops there at the earliest round, and never has more sorts than the exact one.
static void approximations_are_no_finer(void) {
    Arena arena = {0};
    const Cluster cluster = fat_tree(4);
    Plan plan = PLAN;
    plan.tp = 1;
    plan.dp = plan.zero_group = plan.expert_dp = 40;
    const LowerInput input = {.cluster = &cluster, .plan = &plan, .program = &PROGRAM};
    Likeness exact, rough;
    CU_ASSERT_FATAL(likeness_find(&input, 1, LIKENESS_EXACT, &arena, &exact));
    CU_ASSERT_FATAL(likeness_find(&input, 1, 1, &arena, &rough));
    CU_ASSERT(exact.lanes.num_lanes <= 20);
    CU_ASSERT(rough.lanes.num_lanes > 1);
    CU_ASSERT(rough.lanes.num_lanes <= exact.lanes.num_lanes);
    // Replicas of one exact sort are of one rough sort.
    for (int i = 0; i < 40; i++) {
        const int first = exact.lanes.replica[exact.lanes.of[i]];
        CU_ASSERT_EQUAL(rough.lanes.of[i], rough.lanes.of[first]);
    }
    arena_free(&arena);
}

CU_TestInfo likeness_tests[] = {
    {"flows_are_messages_and_rings", flows_are_messages_and_rings},
    {"replicas_of_full_bandwidth_are_one_sort", replicas_of_full_bandwidth_are_one_sort},
    {"short_uplinks_tell_replicas_apart", short_uplinks_tell_replicas_apart},
    {"approximations_are_no_finer", approximations_are_no_finer},
    CU_TEST_INFO_NULL,
};
