#include "sim/rotation.h"
#include "tests/sim/sim_case.h"

#include <CUnit/CUnit.h>

static Network network_of(const Cluster *cluster, Arena *arena) {
    return network_build(cluster, 1, arena);
}

// Two stages of 32 nodes, each a block with a leaf per rail, turned by one node: of 32 NICs of a
// rail one is left; the leaf (32 x 10 GB/s) stays where it is and carries 32 flows for each of it.
static void stages_that_fill_blocks_turn_by_nodes(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(64);
    Network network = network_of(&cluster, &arena);
    Rotation rotation = {2, 256, 256, 8};
    CU_ASSERT_PTR_NULL(network_rotates(&network, &rotation));
    network_rotate(&network, &rotation, &arena);
    const char *route = "nic:0.0 out, leaf:0 up, leaf:8 down, nic:32.0 in";
    CU_ASSERT_STRING_EQUAL(sim_route_text(&network, 0, 256, &arena), route);
    CU_ASSERT_STRING_EQUAL(sim_route_text(&network, 31 * 8, 63 * 8, &arena), route);
    int links[MAX_HOPS];
    network_route(&network, 0, 256, links);
    for (int i = 0; i < 4; i++) CU_ASSERT_DOUBLE_EQUAL(network.link_bytes_per_s[links[i]], 10e9, 1);
    arena_free(&arena);
}

// One stage of 64 nodes: two blocks turn into one another, each with its leaf as it is. The ring
// comes from the last node to the first as it does from the first block to the second.
static void blocks_turn_into_blocks(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(64);
    Network network = network_of(&cluster, &arena);
    Rotation by_node = {1, 512, 512, 8}, by_block = {1, 512, 512, 256};
    CU_ASSERT_STRING_EQUAL(network_rotates(&network, &by_node),
                           "they share leaf switches unevenly");
    CU_ASSERT_PTR_NULL(network_rotates(&network, &by_block));
    network_rotate(&network, &by_block, &arena);
    const char *route = "nic:31.0 out, leaf:0 up, leaf:0 down, nic:0.0 in";
    CU_ASSERT_STRING_EQUAL(sim_route_text(&network, 31 * 8, 32 * 8, &arena), route);
    CU_ASSERT_STRING_EQUAL(sim_route_text(&network, 63 * 8, 0, &arena), route);
    int links[MAX_HOPS];
    network_route(&network, 63 * 8, 0, links);
    CU_ASSERT_DOUBLE_EQUAL(network.link_bytes_per_s[links[0]], 10e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(network.link_bytes_per_s[links[1]], 320e9, 1);
    arena_free(&arena);
}

static void uneven_places_do_not_turn(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(3);
    Network network = network_of(&cluster, &arena);
    CU_ASSERT_STRING_EQUAL(network_rotates(&network, &(Rotation){2, 12, 12, 4}),
                           "they lie across scale-up domains unevenly");
    // GPUs 0 to 3 share a NIC, of which 2 and 3 would turn to the other.
    test_pool(&cluster)->nics_per_node = 2;
    network = network_of(&cluster, &arena);
    CU_ASSERT_STRING_EQUAL(network_rotates(&network, &(Rotation){3, 8, 8, 2}),
                           "they share NICs unevenly");
    CU_ASSERT_PTR_NULL(network_rotates(&network, &(Rotation){3, 8, 8, 4}));
    test_pool(&cluster)->topology = TOPOLOGY_RAIL_ONLY;
    network = network_of(&cluster, &arena);
    CU_ASSERT_STRING_EQUAL(network_rotates(&network, &(Rotation){3, 8, 8, 4}),
                           "they are not whole nodes, which rail-only needs");
    CU_ASSERT_PTR_NULL(network_rotates(&network, &(Rotation){1, 24, 24, 8}));
    arena_free(&arena);
}

// Blocks of 2 GPUs of 4 stages in turn, 4 replicas: the next replica is one node on.
static void stages_that_alternate_turn_by_replicas(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(4);
    Network network = network_of(&cluster, &arena);
    Rotation rotation = {4, 8, 2, 2};
    CU_ASSERT_PTR_NULL(network_rotates(&network, &rotation));
    test_pool(&cluster)->topology = TOPOLOGY_RAIL_ONLY;
    Network rails = network_of(&cluster, &arena);
    CU_ASSERT_PTR_NULL(network_rotates(&rails, &rotation));
    // With 2 stages it is half a node on.
    CU_ASSERT_STRING_EQUAL(network_rotates(&rails, &(Rotation){2, 16, 2, 2}),
                           "they are not whole nodes, which rail-only needs");
    CU_ASSERT_PTR_NULL(network_rotates(&rails, &(Rotation){2, 16, 2, 4}));
    network_rotate(&network, &rotation, &arena);
    for (int node = 0; node < 3; node++)
        CU_ASSERT_STRING_EQUAL(sim_route_text(&network, 8 * node, 8 * node + 8, &arena),
                               "nic:0.0 out, nic:0.0 in");
    arena_free(&arena);
}

CU_TestInfo rotation_tests[] = {
    {"stages_that_fill_blocks_turn_by_nodes", stages_that_fill_blocks_turn_by_nodes},
    {"blocks_turn_into_blocks", blocks_turn_into_blocks},
    {"stages_that_alternate_turn_by_replicas", stages_that_alternate_turn_by_replicas},
    {"uneven_places_do_not_turn", uneven_places_do_not_turn},
    CU_TEST_INFO_NULL,
};
