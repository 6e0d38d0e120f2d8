#include "costmodel/network/site_links.h"

#include "config/cluster/node_order.h"
#include "costmodel/network/collective.h"
#include "costmodel/network/message.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

enum { NUM_NODES = 4 };

// 4 nodes of 8 GPUs with 8e10 B/s of NICs each; NODES is one rank in each, BOTH all of two.
static const Group NODES = {4, 8}, BOTH = {16, 1};
static const int SINGLE[NUM_NODES] = {0, 1, 2, 3}, ONES[NUM_NODES] = {1, 1, 1, 1};
static const int PAIRS[NUM_NODES] = {0, 0, 1, 1}, TWOS[2] = {2, 2};

typedef struct {
    Cluster cluster;
    ClusterSites sites;
    double bytes_per_s[NUM_NODES * NUM_NODES];
} SiteCase;

// A measured matrix in which every pair has what the nodes' NICs have.
static void matrix_case(SiteCase *c) {
    for (int i = 0; i < NUM_NODES * NUM_NODES; i++) c->bytes_per_s[i] = 8e10;
    c->sites = (ClusterSites){SITE_NODE, NUM_NODES, NUM_NODES, SINGLE, ONES, c->bytes_per_s, 0};
    c->cluster = made_up_cluster(8 * NUM_NODES);
    c->cluster.network.sites = &c->sites;
}

// Two groups of two nodes, 1.6e10 B/s and 1 ms between them.
static void groups_case(SiteCase *c) {
    matrix_case(c);
    for (int i = 0; i < 4; i++) c->bytes_per_s[i] = 1.6e10;
    c->sites = (ClusterSites){SITE_GROUP, 2, NUM_NODES, PAIRS, TWOS, c->bytes_per_s, 1e-3};
}

static void a_uniform_matrix_is_the_plain_cluster(void) {
    SiteCase c;
    matrix_case(&c);
    Cluster plain = made_up_cluster(8 * NUM_NODES);
    const Group groups[] = {NODES, BOTH, {32, 1}, {2, 16}, {4, 4}};
    for (int kind = 0; kind < NUM_COLLECTIVES; kind++) {
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
            double time_s =
                collective_s(machines_of(&c.cluster), (CollectiveKind)kind, groups[i], 4e9);
            CU_ASSERT_EQUAL(
                time_s, collective_s(machines_of(&plain), (CollectiveKind)kind, groups[i], 4e9));
        }
    }
}

// The 8 GPUs of node 1 want 8e10 B/s of the 2e10 to node 2: a ring over the nodes takes 4 times the
// 0.3 s. Rings within nodes 0 and 1 do not go there, and no ring goes back from 2 to 1.
static void a_ring_is_as_slow_as_its_slowest_pair(void) {
    SiteCase c;
    matrix_case(&c);
    c.bytes_per_s[1 * NUM_NODES + 2] = 2e10;
    ASSERT_CLOSE(collective_s(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, NODES, 4e9),
                 1e-4 + 4e-5 + 1.2);
    CU_ASSERT_EQUAL(sites_slowdown(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, BOTH, 8,
                                   all_ranks(&c.cluster.pools[0])),
                    1);
    matrix_case(&c);
    c.bytes_per_s[2 * NUM_NODES + 1] = 2e10;
    CU_ASSERT_EQUAL(sites_slowdown(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, NODES, 1,
                                   all_ranks(&c.cluster.pools[0])),
                    1);
}

// 8 x 8 pairs of ranks on nodes 2 and 3, each with an eighth of a NIC: 8e10 of the 4e10 B/s there
// are. The 0.8 s become 1.6.
static void an_all_to_all_reaches_every_pair(void) {
    SiteCase c;
    matrix_case(&c);
    c.bytes_per_s[2 * NUM_NODES + 3] = 4e10;
    ASSERT_CLOSE(collective_s(machines_of(&c.cluster), COLLECTIVE_ALL_TO_ALL, BOTH, 16e9),
                 1e-4 + 1e-5 + 1.6);
    // Over all nodes: 24 partners, 64 pairs of 1e10 / 24 are 2.7e10 of 4e10.
    CU_ASSERT_EQUAL(sites_slowdown(machines_of(&c.cluster), COLLECTIVE_ALL_TO_ALL, (Group){32, 1},
                                   8, all_ranks(&c.cluster.pools[0])),
                    1);
}

// Rings over the nodes cross from one group to the other and back: 8 GPUs share 1.6e10 B/s each way
// and have a fifth of their NICs; an all-gather crosses twice, an all-reduce four times. A chain
// does not return.
static void groups_share_what_is_between_them(void) {
    SiteCase c;
    groups_case(&c);
    ASSERT_CLOSE(collective_s(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, NODES, 4e9),
                 1e-4 + 4e-5 + 2e-3 + 1.5);
    ASSERT_CLOSE(collective_s(machines_of(&c.cluster), COLLECTIVE_ALL_REDUCE, NODES, 4e9),
                 1e-4 + 4e-5 + 4e-3 + 3);
    ASSERT_CLOSE(collective_s(machines_of(&c.cluster), COLLECTIVE_BROADCAST, NODES, 4e9),
                 1e-4 + 1e-3 + 2);
    ASSERT_CLOSE(collective_s(machines_of(&c.cluster), COLLECTIVE_ALL_TO_ALL, BOTH, 16e9),
                 1e-4 + 1e-5 + 0.8);
}

// A stage of 16 GPUs in each group: all 16 share what is between them. On 4 nodes of a matrix, 8
// GPUs of node 0 send to node 2; the way back counts as well.
static void messages_share_it_too(void) {
    SiteCase c;
    groups_case(&c);
    Plan plan = {.tp = 8, .cp = 1, .dp = 2, .pp = 2};
    for (int stage = 0; stage < 2; stage++) {
        ASSERT_CLOSE(ranks_slowdown(&c.cluster, &plan, stage, (stage + 1) % 2), 10);
        CU_ASSERT_EQUAL(ranks_latency_s(&c.cluster, &plan, stage, (stage + 1) % 2), 1e-3);
    }
    plan = (Plan){.tp = 8, .cp = 1, .dp = 1, .pp = 4};
    CU_ASSERT(ranks_slowdown(&c.cluster, &plan, 0, 1) <= 1);
    CU_ASSERT_EQUAL(ranks_latency_s(&c.cluster, &plan, 0, 1), 0);
    ASSERT_CLOSE(ranks_slowdown(&c.cluster, &plan, 1, 2), 5);
    ASSERT_CLOSE(ranks_slowdown(&c.cluster, &plan, 3, 0), 5);

    matrix_case(&c);
    plan = (Plan){.tp = 8, .cp = 1, .dp = 2, .pp = 2};
    c.bytes_per_s[0 * NUM_NODES + 2] = 2e10;
    ASSERT_CLOSE(ranks_slowdown(&c.cluster, &plan, 0, 1), 4);
    c.bytes_per_s[3 * NUM_NODES + 1] = 1e10;
    ASSERT_CLOSE(ranks_slowdown(&c.cluster, &plan, 0, 1), 8);
}

// 2 stages of 8 GPUs in turn on 4 nodes, 2 in each group: messages stay in their group, a stage's
// ring goes there and back: 8 flows of 1e10 over 1e10.
static void stages_that_alternate_meet_in_their_group(void) {
    SiteCase c;
    groups_case(&c);
    Plan plan = {.tp = 8, .cp = 1, .dp = 2, .pp = 2, .zero_group = 2, .order = ORDER_PP_DP};
    CU_ASSERT_EQUAL(ranks_slowdown(&c.cluster, &plan, 0, 1), 0);
    CU_ASSERT_EQUAL(ranks_latency_s(&c.cluster, &plan, 0, 1), 0);
    const Group group = plan_group(&plan, GROUP_DP);
    for (int stage = 0; stage < 2; stage++) {
        const RankSpan ranks = plan_stage_span(&plan, stage);
        ASSERT_CLOSE(
            sites_slowdown(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, group, 1, ranks), 5);
        CU_ASSERT_DOUBLE_EQUAL(
            sites_latency_s(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, group, ranks), 2e-3,
            1e-12);
    }
}

// More bandwidth between any two nodes is never slower.
static void faster_pairs_are_never_slower(void) {
    SiteCase c;
    matrix_case(&c);
    for (int i = 0; i < NUM_NODES * NUM_NODES; i++) c.bytes_per_s[i] = 1e10 * (1 + i * 7 % 5);
    for (int kind = 0; kind < NUM_COLLECTIVES; kind++) {
        const Group groups[] = {NODES, BOTH, {32, 1}, {2, 16}};
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
            double time_s =
                collective_s(machines_of(&c.cluster), (CollectiveKind)kind, groups[g], 4e9);
            for (int i = 0; i < NUM_NODES * NUM_NODES; i++) {
                double before = c.bytes_per_s[i];
                c.bytes_per_s[i] *= 2;
                CU_ASSERT(collective_s(machines_of(&c.cluster), (CollectiveKind)kind, groups[g],
                                       4e9) <= time_s);
                c.bytes_per_s[i] = before;
            }
        }
    }
}

// Node i of the order takes what the i-th node of a matrix with its rows and columns in that order
// does.
static void a_placement_is_a_matrix_in_another_order(void) {
    static const int ORDER[NUM_NODES] = {2, 0, 3, 1};
    SiteCase placed, moved;
    Arena arena = {0};
    matrix_case(&placed);
    matrix_case(&moved);
    for (int i = 0; i < NUM_NODES * NUM_NODES; i++)
        placed.bytes_per_s[i] = 1e10 * (1 + i * 7 % 13) / 2;
    for (int i = 0; i < NUM_NODES * NUM_NODES; i++)
        moved.bytes_per_s[i] =
            placed.bytes_per_s[ORDER[i / NUM_NODES] * NUM_NODES + ORDER[i % NUM_NODES]];
    placed.cluster.network.order = node_order_new(ORDER, NUM_NODES, &arena);
    const Group groups[] = {NODES, BOTH, {32, 1}, {2, 16}, {2, 8}};
    for (int kind = 0; kind < NUM_COLLECTIVES; kind++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            CU_ASSERT_EQUAL(
                collective_s(machines_of(&placed.cluster), (CollectiveKind)kind, groups[g], 4e9),
                collective_s(machines_of(&moved.cluster), (CollectiveKind)kind, groups[g], 4e9));
    const Plan plan = {.tp = 8, .cp = 1, .dp = 1, .pp = 4};
    for (int rank = 0; rank < 4; rank++)
        CU_ASSERT_EQUAL(ranks_slowdown(&placed.cluster, &plan, rank, (rank + 1) % 4),
                        ranks_slowdown(&moved.cluster, &plan, rank, (rank + 1) % 4));
    arena_free(&arena);
}

// Nodes 0 and 1 in one group, 2 and 3 in the other: in the order 0, 2, 1, 3 all 8 + 8 GPUs that a
// ring over the four takes from one group to the other share 1.6e10 B/s, twice as many as in their
// own order; a ring of 0 and 2 alone has half of them.
static void placed_nodes_share_what_is_between_their_groups(void) {
    static const int ORDER[NUM_NODES] = {0, 2, 1, 3};
    SiteCase c;
    Arena arena = {0};
    groups_case(&c);
    const RankSpan all = all_ranks(&c.cluster.pools[0]), first = {.num = 16};
    ASSERT_CLOSE(sites_slowdown(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, NODES, 1, all), 5);
    c.cluster.network.order = node_order_new(ORDER, NUM_NODES, &arena);
    ASSERT_CLOSE(sites_slowdown(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, NODES, 1, all), 10);
    ASSERT_CLOSE(
        sites_slowdown(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, (Group){2, 8}, 1, first), 5);
    arena_free(&arena);
}

// A slow pair of the second stage is nothing to the first.
static void a_stage_pays_for_its_own_links(void) {
    SiteCase c;
    matrix_case(&c);
    c.bytes_per_s[2 * NUM_NODES + 3] = 2e10;
    for (int stage = 0; stage < 2; stage++) {
        const RankSpan ranks = {.first = 16 * stage, .num = 16};
        CU_ASSERT_EQUAL(
            sites_slowdown(machines_of(&c.cluster), COLLECTIVE_ALL_GATHER, (Group){2, 8}, 1, ranks),
            stage == 0 ? 1 : 4);
    }
}

// What is known of some traffic is not looked up in the matrix.
static void known_slowdowns_are_taken(void) {
    SiteCase c;
    matrix_case(&c);
    const Plan plan = {.tp = 8, .cp = 1, .dp = 1, .pp = 4};
    const KnownSlowdown known = {message_traffic(&plan, 2, 1), 7};
    c.cluster.network.known = &known;
    c.cluster.network.num_known = 1;
    CU_ASSERT_EQUAL(ranks_network_slowdown(&c.cluster, &plan, 1, 2), 7);
    CU_ASSERT_EQUAL(ranks_network_slowdown(&c.cluster, &plan, 2, 3), 1);
}

CU_TestInfo site_links_tests[] = {
    {"a_placement_is_a_matrix_in_another_order", a_placement_is_a_matrix_in_another_order},
    {"placed_nodes_share_what_is_between_their_groups",
     placed_nodes_share_what_is_between_their_groups},
    {"a_stage_pays_for_its_own_links", a_stage_pays_for_its_own_links},
    {"known_slowdowns_are_taken", known_slowdowns_are_taken},
    {"a_uniform_matrix_is_the_plain_cluster", a_uniform_matrix_is_the_plain_cluster},
    {"a_ring_is_as_slow_as_its_slowest_pair", a_ring_is_as_slow_as_its_slowest_pair},
    {"an_all_to_all_reaches_every_pair", an_all_to_all_reaches_every_pair},
    {"groups_share_what_is_between_them", groups_share_what_is_between_them},
    {"messages_share_it_too", messages_share_it_too},
    {"stages_that_alternate_meet_in_their_group", stages_that_alternate_meet_in_their_group},
    {"faster_pairs_are_never_slower", faster_pairs_are_never_slower},
    CU_TEST_INFO_NULL,
};
