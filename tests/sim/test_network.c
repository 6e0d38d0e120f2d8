#include "sim/network.h"
#include "tests/sim/sim_case.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

static void assert_route(const Cluster *cluster, int from_gpu, int to_gpu, const char *expected) {
    Arena arena = {0};
    Network network = network_build(cluster, 1, &arena);
    const char *text = sim_route_text(&network, from_gpu, to_gpu, &arena);
    CU_ASSERT_STRING_EQUAL(text, expected);
    if (strcmp(text, expected) != 0) fprintf(stderr, "\n%s, expected %s\n", text, expected);
    arena_free(&arena);
}

static void inside_a_domain_is_port_to_port(void) {
    Cluster cluster = sim_cluster(4);
    assert_route(&cluster, 8, 13, "nvlink:8 out, nvlink:13 in");
}

static void a_domain_may_span_nodes(void) {
    Cluster cluster = sim_cluster(4);
    test_pool(&cluster)->domain_gpus = 16;
    assert_route(&cluster, 3, 12, "nvlink:3 out, nvlink:12 in");
    assert_route(&cluster, 3, 19, "nic:0.3 out, nic:2.3 in");
}

static void one_rail_stays_in_its_leaf(void) {
    Cluster cluster = sim_cluster(32);
    assert_route(&cluster, 2, 31 * 8 + 2, "nic:0.2 out, nic:31.2 in");
}

// 32 nodes share the leaves of the 8 rails: node 32 is the first of the second block.
static void rails_and_blocks_meet_in_the_spine(void) {
    Cluster cluster = sim_cluster(64);
    assert_route(&cluster, 2, 8 + 5, "nic:0.2 out, leaf:2 up, leaf:5 down, nic:1.5 in");
    assert_route(&cluster, 2, 32 * 8 + 2, "nic:0.2 out, leaf:2 up, leaf:10 down, nic:32.2 in");
}

static void rail_only_changes_the_rail_inside_the_node(void) {
    Cluster cluster = sim_cluster(4);
    test_pool(&cluster)->topology = TOPOLOGY_RAIL_ONLY;
    assert_route(&cluster, 2, 8 + 5, "nvlink:2 out, nvlink:5 in, nic:0.5 out, nic:1.5 in");
    assert_route(&cluster, 2, 8 + 2, "nic:0.2 out, nic:1.2 in");
}

// A leaf of a fat tree holds the 32 NICs of 4 nodes, a dragonfly's group those of 128.
static void other_topologies_gather_nodes(void) {
    Cluster cluster = sim_cluster(256);
    test_pool(&cluster)->topology = TOPOLOGY_FAT_TREE;
    assert_route(&cluster, 0, 3 * 8 + 7, "nic:0.0 out, nic:3.7 in");
    assert_route(&cluster, 0, 4 * 8, "nic:0.0 out, leaf:0 up, leaf:1 down, nic:4.0 in");
    test_pool(&cluster)->topology = TOPOLOGY_DRAGONFLY;
    assert_route(&cluster, 0, 127 * 8, "nic:0.0 out, nic:127.0 in");
    assert_route(&cluster, 0, 128 * 8, "nic:0.0 out, leaf:0 up, leaf:1 down, nic:128.0 in");
}

static void gpus_share_few_nics(void) {
    Cluster cluster = sim_cluster(4);
    test_pool(&cluster)->nics_per_node = 2;
    assert_route(&cluster, 3, 8 + 3, "nic:0.0 out, nic:1.0 in");
    assert_route(&cluster, 4, 8 + 4, "nic:0.1 out, nic:1.1 in");
}

static double capacity(const Network *network, int from_gpu, int to_gpu, int hop) {
    int links[MAX_HOPS];
    CU_ASSERT(network_route(network, from_gpu, to_gpu, links) > hop);
    return network->link_bytes_per_s[links[hop]];
}

// Leaves: 32 ports of 10 GB/s, of which oversubscription 4 leaves a quarter.
static void capacities_are_those_of_the_hardware(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(64);
    test_pool(&cluster)->oversubscription = 4;
    Network network = network_build(&cluster, 1, &arena);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 1, 0), 100e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 8, 0), 10e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 9, 1), 80e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(network_share_bytes_per_s(&network, 0, 9), 10e9, 1);
    arena_free(&arena);
}

// 16 NICs for 8 GPUs: a GPU drives two of 10 GB/s as one of 20.
static void more_nics_than_gpus_are_faster_ones(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(4);
    test_pool(&cluster)->nics_per_node = 16;
    Network network = network_build(&cluster, 1, &arena);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 8, 0), 20e9, 1);
    arena_free(&arena);
}

// Blocks of 4 GPUs on 2 NICs a node: all 4 of a block are on one NIC.
static void a_folded_gpu_keeps_its_part_of_shared_links(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(4);
    test_pool(&cluster)->nics_per_node = 2;
    CU_ASSERT_PTR_NULL(network_folds(&cluster, 4));
    Network network = network_build(&cluster, 4, &arena);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 8, 0), 2.5e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 1, 0), 100e9, 1);
    arena_free(&arena);
}

// 3 NICs for 8 GPUs: GPUs 0-2, 3-5, 6-7 share one. The first block of 4 has three GPUs on the NIC
// of its first, the second block two.
static void uneven_blocks_do_not_fold(void) {
    Cluster cluster = sim_cluster(4);
    test_pool(&cluster)->nics_per_node = 3;
    CU_ASSERT_STRING_EQUAL(network_folds(&cluster, 4), "its ranks share NICs unevenly");
    cluster = sim_cluster(3);
    CU_ASSERT_STRING_EQUAL(network_folds(&cluster, 6),
                           "its ranks lie across scale-up domains unevenly");
}

static const int SITE_OF_NODE[4] = {0, 1, 2, 3}, NODES_OF_SITE[4] = {1, 1, 1, 1};
static const double MATRIX[16] = {0,   1e9, 2e9, 3e9, 4e9,  0,    5e9,  6e9,
                                  7e9, 8e9, 0,   9e9, 1e10, 2e10, 3e10, 0};
static const ClusterSites MEASURED = {SITE_NODE, 4, 4, SITE_OF_NODE, NODES_OF_SITE, MATRIX, 0};

// 4 nodes in a matrix: the NICs and the pair are all that limits.
static void a_matrix_is_a_link_per_pair_of_nodes(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(4);
    cluster.network.sites = &MEASURED;
    assert_route(&cluster, 2, 16 + 5, "nic:0.2 out, node:0-node:2, nic:2.5 in");
    assert_route(&cluster, 16 + 5, 2, "nic:2.5 out, node:2-node:0, nic:0.2 in");
    assert_route(&cluster, 2, 5, "nvlink:2 out, nvlink:5 in");
    Network network = network_build(&cluster, 1, &arena);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 16, 1), 2e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 16, 0, 1), 7e9, 1);
    CU_ASSERT_PTR_NULL(network_folds(&cluster, 8));
    network = network_build(&cluster, 8, &arena);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 16, 1), 0.25e9, 1);
    CU_ASSERT_STRING_EQUAL(network_folds(&cluster, 16),
                           "its ranks lie on nodes between which the bandwidth_matrix differs");
    arena_free(&arena);
}

// Groups of 40 and 24 nodes: blocks of 32 begin anew in the second, so its first leaves are those
// of the third block, 16 to 23.
static void groups_have_leaves_of_their_own(void) {
    static int site_of_node[64];
    static const int num_nodes_of[2] = {40, 24};
    static const double between[4] = {1e9, 2e9, 3e9, 4e9};
    for (int node = 40; node < 64; node++) site_of_node[node] = 1;
    const ClusterSites sites = {SITE_GROUP, 2, 64, site_of_node, num_nodes_of, between, 0};
    Cluster cluster = sim_cluster(64);
    cluster.network.sites = &sites;
    assert_route(&cluster, 0, 8, "nic:0.0 out, nic:1.0 in");
    assert_route(&cluster, 0, 39 * 8, "nic:0.0 out, leaf:0 up, leaf:8 down, nic:39.0 in");
    assert_route(&cluster, 39 * 8, 40 * 8 + 1,
                 "nic:39.0 out, leaf:8 up, group:0-group:1, leaf:17 down, nic:40.1 in");
    assert_route(&cluster, 40 * 8, 63 * 8, "nic:40.0 out, nic:63.0 in");
    test_pool(&cluster)->topology = TOPOLOGY_RAIL_ONLY;
    assert_route(&cluster, 40 * 8 + 1, 0,
                 "nvlink:321 out, nvlink:320 in, nic:40.0 out, leaf:16 up, group:1-group:0, "
                 "leaf:0 down, nic:0.0 in");
    CU_ASSERT_STRING_EQUAL(network_folds(&cluster, 128), "its ranks lie in several groups");
}

// The second node's GPUs 8 to 15 are the mesh once more: 8 and 15 lie as 0 and 7 do, which have
// GPU 4 between them.
static void a_mesh_has_links_between_pairs(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(2);
    Link link;
    CU_ASSERT_EQUAL(link_load_named("nvlink2", &arena, &link).code, STATUS_OK);
    test_pool(&cluster)->wires = wires_mesh(&link, 8, &arena);
    assert_route(&cluster, 0, 3, "nvlink:0 out, nvlink:0-nvlink:3, nvlink:3 in");
    assert_route(&cluster, 8, 15,
                 "nvlink:8 out, nvlink:8-nvlink:12, nvlink:12-nvlink:15, nvlink:15 in");
    assert_route(&cluster, 2, 8 + 2, "nic:0.2 out, nic:1.2 in");
    Network network = network_build(&cluster, 1, &arena);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 3, 1), 50e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 8, 9, 1), 25e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 8, 0), 10e9, 1);
    CU_ASSERT_STRING_EQUAL(network_folds(&cluster, 2),
                           "links inside its scale-up domain are uneven");
    arena_free(&arena);
}

// 4 GPUs to a switch and socket. Of 2 NICs each hangs on the switch of its GPUs; a single one on
// the first, so that the GPUs of the second cross the sockets to it.
static void a_tree_leads_to_peers_and_nics(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(2);
    const PcieTree tree = {.gpus_per_switch = 4, .num_sockets = 2, .socket_bytes_per_s = 20e9};
    test_pool(&cluster)->scale_up.name = "pcie5";
    test_pool(&cluster)->wires = wires_tree(&tree, 100e9, 8, 8, &arena);
    test_pool(&cluster)->topology = TOPOLOGY_FAT_TREE;
    test_pool(&cluster)->nics_per_node = 2;
    assert_route(&cluster, 0, 3, "pcie:0 out, pcie:3 in");
    assert_route(&cluster, 9, 14,
                 "pcie:9 out, switch:1.0 up, socket:1.0-socket:1.1, switch:1.1 down, pcie:14 in");
    assert_route(&cluster, 6, 8, "pcie:6 out, nic:0.1 out, nic:1.0 in, pcie:8 in");
    test_pool(&cluster)->nics_per_node = 1;
    assert_route(&cluster, 6, 8,
                 "pcie:6 out, switch:0.1 up, socket:0.1-socket:0.0, switch:0.0 down, "
                 "nic:0.0 out, nic:1.0 in, pcie:8 in");
    Network network = network_build(&cluster, 1, &arena);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 4, 1), 100e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&network, 0, 4, 2), 20e9, 1);
    arena_free(&arena);
}

CU_TestInfo network_tests[] = {
    {"inside_a_domain_is_port_to_port", inside_a_domain_is_port_to_port},
    {"a_domain_may_span_nodes", a_domain_may_span_nodes},
    {"one_rail_stays_in_its_leaf", one_rail_stays_in_its_leaf},
    {"rails_and_blocks_meet_in_the_spine", rails_and_blocks_meet_in_the_spine},
    {"rail_only_changes_the_rail_inside_the_node", rail_only_changes_the_rail_inside_the_node},
    {"other_topologies_gather_nodes", other_topologies_gather_nodes},
    {"gpus_share_few_nics", gpus_share_few_nics},
    {"capacities_are_those_of_the_hardware", capacities_are_those_of_the_hardware},
    {"more_nics_than_gpus_are_faster_ones", more_nics_than_gpus_are_faster_ones},
    {"a_folded_gpu_keeps_its_part_of_shared_links", a_folded_gpu_keeps_its_part_of_shared_links},
    {"uneven_blocks_do_not_fold", uneven_blocks_do_not_fold},
    {"a_matrix_is_a_link_per_pair_of_nodes", a_matrix_is_a_link_per_pair_of_nodes},
    {"groups_have_leaves_of_their_own", groups_have_leaves_of_their_own},
    {"a_mesh_has_links_between_pairs", a_mesh_has_links_between_pairs},
    {"a_tree_leads_to_peers_and_nics", a_tree_leads_to_peers_and_nics},
    CU_TEST_INFO_NULL,
};
