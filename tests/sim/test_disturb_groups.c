// Disturbed networks of several sites: groups of one machine, of different machines, and nodes of a
// matrix.
#include "sim/disturb_network.h"
#include "sim/not_played.h"
#include "tests/sim/sim_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <string.h>

// Groups of 40 and 24 nodes with 1 GB/s between them, 2 on the way back.
typedef struct {
    Pool pools[2];
    ClusterSites sites;
    int site_of_node[64];
    double between[4];
    int num_nodes_of[2];
    Scenario scenario;
    Arena arena;
} SitesCase;

static void groups_case(SitesCase *c) {
    *c = (SitesCase){.between = {0, 1e9, 2e9, 0}, .num_nodes_of = {40, 24}};
    for (int node = 40; node < 64; node++) c->site_of_node[node] = 1;
    c->sites = (ClusterSites){SITE_GROUP, 2, 64, c->site_of_node, c->num_nodes_of, c->between, 0};
    c->scenario = (Scenario){.file = "job.json", .cluster = sim_cluster(64)};
    c->scenario.cluster.network.sites = &c->sites;
}

// The second has 2 NICs of 5 GB/s for 4 GPUs.
static void unlike_case(SitesCase *c) {
    groups_case(c);
    c->pools[0] = sim_cluster(40).pools[0];
    c->pools[1] = sim_cluster(24).pools[0];
    c->pools[1].num_gpus = 96;
    c->pools[1].gpus_per_node = c->pools[1].domain_gpus = 4;
    c->pools[1].nics_per_node = 2;
    c->pools[1].nic_bytes_per_s = 5e9;
    c->scenario.cluster =
        cluster_of_pools("two", c->pools, 2, &(ClusterNetwork){.sites = &c->sites});
}

static Status disturbed(SitesCase *c, const Disturb *disturb, int num, Network *out) {
    c->scenario.disturb = disturb;
    c->scenario.num_disturb = num;
    Network network = network_build(&c->scenario.cluster, 1, &c->arena);
    return network_disturb(&c->scenario, &network, &c->arena, out);
}

// The capacity of a link by its name; -1 where there is none.
static double capacity(SitesCase *c, const Network *network, const char *name) {
    for (int i = 0; i < network->num_links; i++)
        if (strcmp(network_link_name(network, i, &c->arena), name) == 0)
            return network->link_bytes_per_s[i];
    return -1;
}

static Disturb background(LinkName from, LinkName to, double bytes_per_s) {
    return (Disturb){
        .kind = DISTURB_BACKGROUND, .link = from, .to = to, .bytes_per_s = bytes_per_s};
}

// Leaves 0 to 15 are the first group's, 16 to 23 the second's: 32 x 10 GB/s each.
static void others_cross_from_group_to_group(void) {
    for (int unlike = 0; unlike < 2; unlike++) {
        SitesCase c;
        Network left;
        (unlike ? unlike_case : groups_case)(&c);
        const Disturb disturb =
            background((LinkName){LINK_LEAF, 3, 0}, (LinkName){LINK_LEAF, 17, 0}, 4e8);
        CU_ASSERT_EQUAL(disturbed(&c, &disturb, 1, &left).code, STATUS_OK);
        CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:3 up"), 320e9 - 4e8, 1);
        CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "group:0-group:1"), 6e8, 1);
        CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "group:1-group:0"), 2e9, 1);
        double whole = unlike ? 160e9 : 320e9;
        CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:17 down"), whole - 4e8, 1);
        CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:17 up"), whole, 1);
        arena_free(&c.arena);
    }
}

static void others_stay_within_a_group(void) {
    SitesCase c;
    Network left;
    groups_case(&c);
    const Disturb disturb =
        background((LinkName){LINK_LEAF, 16, 0}, (LinkName){LINK_LEAF, 17, 0}, 4e9);
    CU_ASSERT_EQUAL(disturbed(&c, &disturb, 1, &left).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:16 up"), 316e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "group:0-group:1"), 1e9, 1);
    arena_free(&c.arena);
}

static void others_are_told_by_their_groups(void) {
    SitesCase c;
    Network left;
    groups_case(&c);
    Disturb disturb = background((LinkName){LINK_GROUP, 1, 0}, (LinkName){LINK_GROUP, 0, 0}, 5e8);
    CU_ASSERT_EQUAL(disturbed(&c, &disturb, 1, &left).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "group:1-group:0"), 1.5e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:0 up"), 320e9, 1);
    disturb.bytes_per_s = 2e9;
    ASSERT_REFUSED(disturbed(&c, &disturb, 1, &left),
                   "job.json: disturb[0].background: 2e+09 bytes/s leave nothing of "
                   "group:1-group:0, which has 2e+09");
    arena_free(&c.arena);
}

// 16 leaves of 32 uplinks need 8 spines of 64 ports, 8 leaves 4: spine 9 is the second of those.
// Half of one of four leaves 7 / 8.
static void groups_have_spines_of_their_own(void) {
    SitesCase c;
    Network left;
    groups_case(&c);
    Disturb disturb = {.kind = DISTURB_LINK, .link = {LINK_SPINE, 9, 0}, .bandwidth_factor = 0.5};
    CU_ASSERT_EQUAL(disturbed(&c, &disturb, 1, &left).code, STATUS_OK);
    CU_ASSERT_EQUAL(left.num_spines, 12);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:15 up"), 320e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:16 up"), 280e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:23 down"), 280e9, 1);
    disturb = background((LinkName){LINK_LEAF, 0, 0}, (LinkName){LINK_SPINE, 9, 0}, 1e9);
    ASSERT_REFUSED(disturbed(&c, &disturb, 1, &left),
                   "job.json: disturb[0].background: leaf:0 is not joined to spine:9");
    disturb.link.index = 16;
    CU_ASSERT_EQUAL(disturbed(&c, &disturb, 1, &left).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "leaf:16 up"), 319e9, 1);
    arena_free(&c.arena);
}

// Node 41 is the second of the second group: its GPUs 324 to 327 have NICs 0 and 1.
static void a_nic_of_another_machine_fails(void) {
    SitesCase c;
    Network left;
    unlike_case(&c);
    const Disturb disturb[] = {
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 41, 0}},
        {.kind = DISTURB_LINK, .link = {LINK_NIC, 42, 1}, .bandwidth_factor = 0.5},
        {.kind = DISTURB_LINK, .link = {LINK_NVLINK, 325, 0}, .bandwidth_factor = 0.25},
    };
    CU_ASSERT_EQUAL(disturbed(&c, disturb, 3, &left).code, STATUS_OK);
    CU_ASSERT_PTR_NOT_NULL(left.nic_taken_by);
    const char *route = sim_route_text(&left, 324, 320 + 2, &c.arena);
    CU_ASSERT_STRING_EQUAL(route, "nic:41.1 out, nic:40.1 in");
    route = sim_route_text(&left, 320, 320 + 8, &c.arena);
    CU_ASSERT_STRING_EQUAL(route, "nic:40.0 out, nic:42.0 in");
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "nic:42.1 out"), 2.5e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "nvlink:325 in"), 25e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "nic:1.0 out"), 10e9, 1);
    const Disturb both[] = {{.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 41, 0}},
                            {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 41, 1}}};
    ASSERT_REFUSED(disturbed(&c, both, 2, &left),
                   "job.json: disturb[1].fail_nic: node 41 has no other NIC that works and could "
                   "take its traffic");
    arena_free(&c.arena);
}

static void nodes_of_a_matrix_have_no_switches(void) {
    SitesCase c;
    Network left;
    groups_case(&c);
    int nodes[4] = {0, 1, 2, 3}, ones[4] = {1, 1, 1, 1};
    double matrix[16];
    for (int i = 0; i < 16; i++) matrix[i] = 1e9 * (i + 1);
    c.sites = (ClusterSites){SITE_NODE, 4, 4, nodes, ones, matrix, 0};
    c.scenario.cluster = sim_cluster(4);
    c.scenario.cluster.network.sites = &c.sites;
    Disturb disturb = background((LinkName){LINK_NODE, 1, 0}, (LinkName){LINK_NODE, 3, 0}, 3e9);
    CU_ASSERT_EQUAL(disturbed(&c, &disturb, 1, &left).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "node:1-node:3"), 5e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&c, &left, "node:3-node:1"), 14e9, 1);
    disturb = background((LinkName){LINK_LEAF, 0, 0}, (LinkName){LINK_LEAF, 1, 0}, 1e9);
    ASSERT_REFUSED(
        disturbed(&c, &disturb, 1, &left),
        "job.json: disturb[0].background: a bandwidth_matrix stands in the place of leaf "
        "and spine switches; expected a NIC or port of a GPU, of background two nodes");
    arena_free(&c.arena);
}

// Whichever group has uneven domains: of several none of the exchanges are played.
static void unlike_groups_are_named_before_uneven_domains(void) {
    static const Wires WIRES;
    const Plan plan = {.tp = 4, .cp = 1, .dp = 1, .ep = 1, .etp = 1};
    const Disturb disturb = {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 2, 0}};
    for (int i = 0; i < 2; i++) {
        SitesCase c;
        const char *const *sentences;
        unlike_case(&c);
        c.pools[i].wires = &WIRES;
        c.scenario.disturb = &disturb;
        c.scenario.num_disturb = 1;
        CU_ASSERT_EQUAL_FATAL(not_played_list(&c.scenario, &plan, &c.arena, &sentences), 1);
        CU_ASSERT_STRING_EQUAL(sentences[0],
                               "on groups of different machines the exchanges of tp inside "
                               "computations: a disturbed link does not slow them");
        arena_free(&c.arena);
    }
}

CU_TestInfo disturb_groups_tests[] = {
    {"others_cross_from_group_to_group", others_cross_from_group_to_group},
    {"others_stay_within_a_group", others_stay_within_a_group},
    {"others_are_told_by_their_groups", others_are_told_by_their_groups},
    {"groups_have_spines_of_their_own", groups_have_spines_of_their_own},
    {"a_nic_of_another_machine_fails", a_nic_of_another_machine_fails},
    {"nodes_of_a_matrix_have_no_switches", nodes_of_a_matrix_have_no_switches},
    {"unlike_groups_are_named_before_uneven_domains",
     unlike_groups_are_named_before_uneven_domains},
    CU_TEST_INFO_NULL,
};
