// Groups of different machines: 40 nodes as in sim_case.h, then 3 nodes of 4 GPUs and 2 NICs of
// 5 GB/s on one fat-tree leaf.
#include "sim/network_groups.h"
#include "tests/sim/sim_case.h"

#include <CUnit/CUnit.h>

#include <string.h>

enum { FIRST = 320 }; // GPU of the second group

typedef struct {
    Pool pools[2];
    Cluster cluster;
    ClusterSites sites;
    Arena arena;
    Network network;
} GroupsCase;

static const double BETWEEN[4] = {0, 3e9, 4e9, 0};
static const int NUM_NODES_OF[2] = {40, 3};

static void groups_case(GroupsCase *c, int num_folded) {
    *c = (GroupsCase){.pools = {sim_cluster(40).pools[0], sim_cluster(3).pools[0]}};
    Pool *second = &c->pools[1];
    second->num_gpus = 12;
    second->gpus_per_node = second->domain_gpus = 4;
    second->nics_per_node = 2;
    second->nic_bytes_per_s = 5e9;
    second->scale_up.bandwidth_bytes_per_s = 50e9;
    second->topology = TOPOLOGY_FAT_TREE;
    second->oversubscription = 4;
    int *site_of_node = ARENA_ARRAY(&c->arena, 43, int);
    for (int node = 40; node < 43; node++) site_of_node[node] = 1;
    c->sites = (ClusterSites){SITE_GROUP, 2, 43, site_of_node, NUM_NODES_OF, BETWEEN, 0};
    c->cluster = cluster_of_pools("two", c->pools, 2, &(ClusterNetwork){.sites = &c->sites});
    c->network = network_build(&c->cluster, num_folded, &c->arena);
}

static void assert_route(GroupsCase *c, int from_gpu, int to_gpu, const char *expected) {
    const char *text = sim_route_text(&c->network, from_gpu, to_gpu, &c->arena);
    CU_ASSERT_STRING_EQUAL(text, expected);
    if (strcmp(text, expected) != 0) fprintf(stderr, "\n%s, expected %s\n", text, expected);
}

static void a_group_is_a_network_of_its_own(void) {
    GroupsCase c;
    groups_case(&c, 1);
    assert_route(&c, 8, 13, "nvlink:8 out, nvlink:13 in");
    assert_route(&c, FIRST + 4, FIRST + 7, "nvlink:324 out, nvlink:327 in");
    assert_route(&c, 2, 8 + 5, "nic:0.2 out, leaf:2 up, leaf:5 down, nic:1.5 in");
    assert_route(&c, FIRST + 1, FIRST + 4 + 2, "nic:40.0 out, nic:41.1 in");
    CU_ASSERT(!network_share_domain(&c.network, FIRST - 1, FIRST));
    CU_ASSERT(network_share_domain(&c.network, FIRST, FIRST + 3));
    arena_free(&c.arena);
}

// 40 nodes are two blocks of 8 leaves; the 17th leaf is the second group's.
static void between_groups_leaves_join_the_link(void) {
    GroupsCase c;
    groups_case(&c, 1);
    assert_route(&c, 3, FIRST + 4 + 1,
                 "nic:0.3 out, leaf:3 up, group:0-group:1, leaf:16 down, nic:41.0 in");
    assert_route(&c, FIRST + 4 + 2, 8 + 6,
                 "nic:41.1 out, leaf:16 up, group:1-group:0, leaf:6 down, nic:1.6 in");
    arena_free(&c.arena);
}

static double capacity(const GroupsCase *c, int from_gpu, int to_gpu, int hop) {
    int links[MAX_HOPS];
    CU_ASSERT(network_route(&c->network, from_gpu, to_gpu, links) > hop);
    return c->network.link_bytes_per_s[links[hop]];
}

// Two GPUs share a NIC of 5 GB/s; a leaf holds 16 nodes of 2 NICs: 160 / 4 GB/s.
static void capacities_are_those_of_each_machine(void) {
    GroupsCase c;
    groups_case(&c, 1);
    CU_ASSERT_EQUAL(capacity(&c, 0, 1, 0), 100e9);
    CU_ASSERT_EQUAL(capacity(&c, FIRST, FIRST + 1, 0), 50e9);
    CU_ASSERT_EQUAL(capacity(&c, 0, FIRST, 0), 10e9);
    CU_ASSERT_EQUAL(capacity(&c, 0, FIRST, 2), 3e9);
    CU_ASSERT_EQUAL(capacity(&c, FIRST, 0, 2), 4e9);
    CU_ASSERT_EQUAL(capacity(&c, FIRST, 0, 0), 5e9);
    CU_ASSERT_EQUAL(capacity(&c, FIRST, 0, 1), 40e9);
    CU_ASSERT_EQUAL(network_share_bytes_per_s(&c.network, 0, FIRST), 2.5e9);
    CU_ASSERT_EQUAL(network_share_bytes_per_s(&c.network, FIRST, 8), 2.5e9);
    CU_ASSERT_EQUAL(network_share_bytes_per_s(&c.network, 0, 8), 10e9);
    CU_ASSERT_EQUAL(network_share_bytes_per_s(&c.network, FIRST, FIRST + 1), 50e9);
    arena_free(&c.arena);
}

// Blocks of 4: one NIC each in the first group, two of four on a NIC in the second.
static void folded_blocks_keep_their_part_in_each_group(void) {
    GroupsCase c;
    groups_case(&c, 4);
    CU_ASSERT_PTR_NULL(network_folds(&c.cluster, 4));
    CU_ASSERT_EQUAL(capacity(&c, 0, FIRST, 0), 10e9);
    CU_ASSERT_EQUAL(capacity(&c, FIRST, 0, 0), 2.5e9);
    CU_ASSERT_EQUAL(capacity(&c, 0, FIRST, 2), 0.75e9);
    CU_ASSERT_STRING_EQUAL(network_folds(&c.cluster, 6), "the GPUs do not divide into such blocks");
    arena_free(&c.arena);
}

// Every link has one name, and the name leads back to it.
static void names_lead_to_their_links(void) {
    GroupsCase c;
    groups_case(&c, 1);
    int num_named = 0;
    for (int link = 0; link < c.network.num_links; link++) {
        LinkName name;
        int way, links[2];
        if (!network_name_of(&c.network, link, &name, &way)) continue;
        network_links_of(&c.network, &name, links);
        CU_ASSERT_EQUAL(links[way], link);
        num_named++;
    }
    CU_ASSERT_EQUAL(num_named, c.network.num_links - 4);
    arena_free(&c.arena);
}

CU_TestInfo network_groups_tests[] = {
    {"a_group_is_a_network_of_its_own", a_group_is_a_network_of_its_own},
    {"between_groups_leaves_join_the_link", between_groups_leaves_join_the_link},
    {"capacities_are_those_of_each_machine", capacities_are_those_of_each_machine},
    {"folded_blocks_keep_their_part_in_each_group", folded_blocks_keep_their_part_in_each_group},
    {"names_lead_to_their_links", names_lead_to_their_links},
    CU_TEST_INFO_NULL,
};
