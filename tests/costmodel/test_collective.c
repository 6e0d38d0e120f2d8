#include "costmodel/network/collective.h"
#include "tests/costmodel/made_up.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

static const Group INSIDE = {4, 1}, NODES = {4, 8}, BOTH = {16, 1};

static void group_of_one_is_free(void) {
    const Cluster cluster = made_up_cluster(32);
    for (int kind = 0; kind < NUM_COLLECTIVES; kind++) {
        CU_ASSERT_EQUAL(
            collective_s(machines_of(&cluster), (CollectiveKind)kind, (Group){1, 1}, 1e9), 0);
        CU_ASSERT_EQUAL(collective_s(machines_of(&cluster), (CollectiveKind)kind, BOTH, 0), 0);
    }
}

// 4 ranks of one domain, 8e9 bytes at 1e11 B/s. All-reduce: 2 x 3/4 of them on the wire, 0.12 s,
// and 6 steps of 1e-6. All-gather, reduce-scatter: half of that. All-to-all: 3/4 of the bytes, 1
// step. Ring exchange: 3 steps of 8e9 bytes.
static void rings_inside_a_domain(void) {
    const Cluster cluster = made_up_cluster(32);
    const double base_s = 1e-5;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_REDUCE, INSIDE, 8e9),
                 base_s + 6e-6 + 0.12);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, INSIDE, 8e9),
                 base_s + 3e-6 + 0.06);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_REDUCE_SCATTER, INSIDE, 8e9),
                 base_s + 3e-6 + 0.06);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_TO_ALL, INSIDE, 8e9),
                 base_s + 1e-6 + 0.06);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_RING_EXCHANGE, INSIDE, 8e9),
                 base_s + 3e-6 + 0.24);
}

// One rank in each of 4 domains: 3/4 of 4e9 bytes over one NIC of 1e10 B/s, 4 crossings.
// 8 ranks in each of 2: 15/16 of 16e9 bytes twice, over 8 NICs (0.375 s; 0.3 s over the links
// inside); down a tree over 2 domains with chains of 8: 2 (1e-5 + 7e-6), less than the ring's 2
// (2e-5 + 14e-6).
static void rings_across_domains(void) {
    const Cluster cluster = made_up_cluster(32);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, NODES, 4e9),
                 1e-4 + 4e-5 + 0.3);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_REDUCE, BOTH, 16e9),
                 1e-4 + 3.4e-5 + 0.375);
}

// 4 crossings of 1e-6 s at half the rate, or of 1e-3 s at the full one: 3e-7 s of bytes take the
// first, 0.3 s the second. All-reduce of 2 domains with 8 ranks: trees of 1 level and chains of 8,
// 2 (2e-6 + 7 x 1e-7), less than the rings' 2 (2 x 1e-6 + 14 x 2e-7).
static void small_messages_take_the_quick_protocol(void) {
    Cluster cluster = made_up_cluster(32);
    test_pool(&cluster)->scale_out.num_protocols = 2;
    test_pool(&cluster)->scale_out.protocols[0] =
        (LinkProtocol){"quick", 1e-6, 2e-7, 2e-6, 1e-7, 0.5};
    test_pool(&cluster)->scale_out.protocols[1] = (LinkProtocol){"full", 1e-3, 1e-3, 1e-3, 1e-3, 1};
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, NODES, 4e3),
                 1e-4 + 4e-6 + 6e-7);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, NODES, 4e9),
                 1e-4 + 4e-3 + 0.3);
    const double wire_s = 2 * 15.0 / 16 * 16e3 / 8e10;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_REDUCE, BOTH, 16e3),
                 1e-4 + 2 * (2e-6 + 7e-7) + 2 * wire_s);
}

// Every byte once over each link; a chain of 4 ranks has 3 hops.
static void broadcast_is_a_chain(void) {
    Cluster cluster = made_up_cluster(32);
    test_pool(&cluster)->scale_up.chain_hop_latency_s = 2e-6;
    test_pool(&cluster)->scale_out.chain_hop_latency_s = 3e-5;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_BROADCAST, INSIDE, 8e9),
                 1e-5 + 6e-6 + 0.08);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_BROADCAST, NODES, 4e9),
                 1e-4 + 9e-5 + 0.4);
}

// 8/16 of 16e9 bytes leave the domain, over the rank's own NIC.
static void all_to_all_leaves_by_its_own_nic(void) {
    const Cluster cluster = made_up_cluster(32);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_TO_ALL, BOTH, 16e9),
                 1e-4 + 1e-5 + 0.8);
}

// Over links inside that are slower than the NICs the 7/16 that stay there take longer.
static void slow_links_bound_the_all_to_all(void) {
    Cluster cluster = made_up_cluster(32);
    test_pool(&cluster)->scale_up.bandwidth_bytes_per_s = 1e9;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_TO_ALL, BOTH, 16e9),
                 1e-4 + 1e-5 + 7);
}

// 15 steps of 1e9 bytes: each step one rank of a domain sends to the next domain, over its NIC. A
// single NIC of 8e10 B/s for the node is all that rank's: 0.1875 s instead of 1.5 s.
static void ring_exchange_crosses_by_one_rank(void) {
    Cluster cluster = made_up_cluster(32);
    const double alpha_s = 1e-4 + 2e-5 + 14e-6;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_RING_EXCHANGE, BOTH, 1e9),
                 alpha_s + 1.5);
    test_pool(&cluster)->nics_per_node = 1;
    test_pool(&cluster)->nic_bytes_per_s = 8e10;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_RING_EXCHANGE, BOTH, 1e9),
                 alpha_s + 0.1875);
}

// One NIC for 8 GPUs: each has an eighth, as their groups communicate at the same time.
static void gpus_share_their_nics(void) {
    Cluster cluster = made_up_cluster(32);
    test_pool(&cluster)->nics_per_node = 1;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, NODES, 4e9),
                 1e-4 + 4e-5 + 2.4);
    ASSERT_CLOSE(p2p_s(&cluster.pools[0], false, 1e9, NULL), 2e-5 + 0.8);
    double alpha_s;
    ASSERT_CLOSE(p2p_s(&cluster.pools[0], true, 1e9, &alpha_s), 2e-6 + 0.01);
    CU_ASSERT_EQUAL(alpha_s, 2e-6);
}

static void assert_layout(const Cluster *cluster, Group group, int num_domains, int inside) {
    const GroupLayout layout = group_layout(&cluster->pools[0], group);
    CU_ASSERT_EQUAL(layout.num_ranks, group.size);
    CU_ASSERT_EQUAL(layout.num_domains, num_domains);
    CU_ASSERT_EQUAL(layout.ranks_per_domain, inside);
}

// Domains of 8. Groups of 6 begin at 0, 6, 12, ...: that at 6 lies on two domains. Of 4 ranks 3
// apart, 12 GPUs wide, the worst begins at GPU 7 and touches 3 domains. A domain of 3 nodes:
static void worst_placed_group_counts(void) {
    Cluster cluster = made_up_cluster(48);
    assert_layout(&cluster, (Group){8, 1}, 1, 8);
    assert_layout(&cluster, (Group){4, 2}, 1, 4);
    assert_layout(&cluster, (Group){8, 4}, 4, 2);
    assert_layout(&cluster, (Group){3, 16}, 3, 1);
    assert_layout(&cluster, (Group){6, 1}, 2, 3);
    assert_layout(&cluster, (Group){9, 1}, 2, 4);
    assert_layout(&cluster, (Group){4, 3}, 3, 1);
    test_pool(&cluster)->domain_gpus = 24;
    assert_layout(&cluster, (Group){3, 8}, 1, 3);
    assert_layout(&cluster, (Group){6, 8}, 2, 3);
    test_pool(&cluster)->domain_gpus = 72; // all GPUs lie in one
    assert_layout(&cluster, (Group){6, 8}, 1, 6);
}

static void domains_hold_neighbours(void) {
    const Cluster cluster = made_up_cluster(32);
    CU_ASSERT_TRUE(gpus_share_domain(&cluster, 0, 7));
    CU_ASSERT_FALSE(gpus_share_domain(&cluster, 7, 8));
}

// The rate grows as 1 / (1 + sqrt(half / wire)): where 3e9 bytes are on the wire and half_bytes is
// that too, half the rate.
static void small_messages_move_slowly(void) {
    Cluster cluster = made_up_cluster(32);
    test_pool(&cluster)->scale_up.half_bytes = 3e9;
    test_pool(&cluster)->scale_out.half_bytes = 3e9;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, INSIDE, 4e9),
                 1e-5 + 3e-6 + 0.06);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, NODES, 4e9),
                 1e-4 + 4e-5 + 0.6);
}

// 2 ranks of measured: all-gather 1e-5 s to 1e3 bytes, 1e-2 s for 1e9 bytes; 2e9 bytes twice that.
// Measured at twice the link's 1e11 B/s: 1e9 bytes on the wire take 5e-3 s longer. Ring exchanges
// are not measured. 4 ranks of an all-gather: latency 1 + 2 x 0.17 times, the rest 3/4 over 1/2
// (costmodel/kernel/kernel_nccl.c).
static void measured_curves_price_the_inside(void) {
    static const double BYTES[] = {1e3, 1e9}, SECONDS[] = {1e-5, 1e-2};
    const NcclCurve curve = {NCCL_ALL_GATHER, NCCL_ANY, 2, 2, BYTES, SECONDS, 0, 0};
    const NcclKernels curves = {.num_curves = 1, .curves = &curve};
    const Group pair = {2, 1};
    Cluster cluster = made_up_cluster(32);
    const double exchange_s =
        collective_s(machines_of(&cluster), COLLECTIVE_RING_EXCHANGE, pair, 2e9);
    const double reduce_s = collective_s(machines_of(&cluster), COLLECTIVE_ALL_REDUCE, pair, 2e9);
    test_pool(&cluster)->scale_up_curves = &curves;
    test_pool(&cluster)->scale_up.measured_bandwidth_bytes_per_s = 1e11;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, pair, 2e9), 2e-2);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, pair, 1), 1e-5);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, INSIDE, 2e9),
                 1.34e-5 + 1.5 * (2e-2 - 1e-5));
    CU_ASSERT_EQUAL(collective_s(machines_of(&cluster), COLLECTIVE_RING_EXCHANGE, pair, 2e9),
                    exchange_s);
    CU_ASSERT_EQUAL(collective_s(machines_of(&cluster), COLLECTIVE_ALL_REDUCE, pair, 2e9),
                    reduce_s);
    test_pool(&cluster)->scale_up.measured_bandwidth_bytes_per_s = 2e11;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, pair, 2e9),
                 2e-2 + 5e-3);
}

// On every bundled machine, of whatever curves: more ranks and more bytes are never faster, but for
// more ranks of a mesh, which have more links.
static void bundled_machines_keep_the_laws(void) {
    Arena arena = {0};
    ClusterSummary *presets;
    int num_presets;
    CU_ASSERT_EQUAL_FATAL(cluster_list(&arena, &presets, &num_presets).code, STATUS_OK);
    for (int i = 0; i < num_presets; i++) {
        Scenario scenario = {0};
        const char *text = scenario_text(
            &arena, "\"llama-3.1-8b\"", arena_printf(&arena, "\"%s:1\"", presets[i].name),
            "{\"seq_len\": 4096, \"global_batch\": 1152, \"precision\": \"fp16\"}", NULL);
        CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
        for (int kind = 0; kind < NUM_COLLECTIVES; kind++) {
            for (int size = 2; size < scenario.cluster.pools[0].domain_gpus; size++) {
                const Group group = {size, 1}, larger = {size + 1, 1};
                double before = 0;
                for (double bytes = 100; bytes < 1e10; bytes *= 1.7) {
                    double s = collective_s(machines_of(&scenario.cluster), (CollectiveKind)kind,
                                            group, bytes);
                    CU_ASSERT(s >= before * (1 - 1e-12));
                    CU_ASSERT(scenario.cluster.pools[0].wires ||
                              collective_s(machines_of(&scenario.cluster), (CollectiveKind)kind,
                                           larger, bytes) >= s * (1 - 1e-12));
                    before = s;
                }
            }
        }
    }
    arena_free(&arena);
}

// Half the bandwidth is reached: the bytes take twice as long.
static void links_are_not_used_fully(void) {
    Cluster cluster = made_up_cluster(32);
    Pool *pool = test_pool(&cluster);
    pool->scale_up.efficiency_frac = pool->scale_out.efficiency_frac = 0.5;
    pool->scale_up.p2p_efficiency_frac = pool->scale_out.p2p_efficiency_frac = 0.25;
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, INSIDE, 8e9),
                 1e-5 + 3e-6 + 0.12);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, NODES, 4e9),
                 1e-4 + 4e-5 + 0.6);
    ASSERT_CLOSE(collective_s(machines_of(&cluster), COLLECTIVE_ALL_TO_ALL, BOTH, 16e9),
                 1e-4 + 1e-5 + 1.6);
    ASSERT_CLOSE(p2p_s(&cluster.pools[0], true, 1e9, NULL), 2e-6 + 0.04);
    ASSERT_CLOSE(p2p_s(&cluster.pools[0], false, 1e9, NULL), 2e-5 + 0.4);
}

// One cluster with something better about it.
static Cluster better(const Cluster *cluster, int what) {
    Cluster c = *cluster;
    Pool *pool = test_pool(&c);
    if (what == 0) pool->scale_up.bandwidth_bytes_per_s *= 2;
    if (what == 1) pool->nic_bytes_per_s *= 2;
    if (what == 2) pool->nics_per_node *= 2;
    if (what == 3) pool->scale_up.hop_latency_s /= 2;
    if (what == 4) pool->scale_out.latency_s /= 2;
    return c;
}

static void better_networks_and_smaller_messages_are_never_slower(void) {
    for (int i = 0; i < NUM_COLLECTIVES * 5 * 6 * 4; i++) {
        const CollectiveKind kind = (CollectiveKind)(i % NUM_COLLECTIVES);
        const Group group = {2 << (i / NUM_COLLECTIVES % 5), 1 << (i / (NUM_COLLECTIVES * 5) % 6)};
        Cluster cluster = made_up_cluster(1024);
        Pool *pool = test_pool(&cluster);
        pool->scale_up.half_bytes = pool->scale_out.half_bytes = 1e6;
        pool->nics_per_node = 1 << i / (NUM_COLLECTIVES * 30);
        double before = 0;
        for (double bytes = 1; bytes < 1e11; bytes *= 10) {
            const double time_s = collective_s(machines_of(&cluster), kind, group, bytes);
            CU_ASSERT_TRUE(time_s >= before);
            before = time_s;
            for (int what = 0; what < 5; what++) {
                const Cluster other = better(&cluster, what);
                CU_ASSERT_TRUE(collective_s(machines_of(&other), kind, group, bytes) <= time_s);
            }
        }
    }
}

// What a ring gathers it has scattered before: an all-reduce is no faster than either half.
static void all_reduce_is_two_halves(void) {
    const Cluster cluster = made_up_cluster(32);
    const Group groups[] = {INSIDE, NODES, BOTH};
    for (int g = 0; g < 3; g++) {
        const double all =
            collective_s(machines_of(&cluster), COLLECTIVE_ALL_REDUCE, groups[g], 1e9);
        const double half =
            collective_s(machines_of(&cluster), COLLECTIVE_ALL_GATHER, groups[g], 1e9);
        CU_ASSERT_TRUE(all > half && all < 2 * half);
    }
}

CU_TestInfo collective_tests[] = {
    {"group_of_one_is_free", group_of_one_is_free},
    {"rings_inside_a_domain", rings_inside_a_domain},
    {"rings_across_domains", rings_across_domains},
    {"small_messages_take_the_quick_protocol", small_messages_take_the_quick_protocol},
    {"broadcast_is_a_chain", broadcast_is_a_chain},
    {"all_to_all_leaves_by_its_own_nic", all_to_all_leaves_by_its_own_nic},
    {"slow_links_bound_the_all_to_all", slow_links_bound_the_all_to_all},
    {"ring_exchange_crosses_by_one_rank", ring_exchange_crosses_by_one_rank},
    {"gpus_share_their_nics", gpus_share_their_nics},
    {"worst_placed_group_counts", worst_placed_group_counts},
    {"domains_hold_neighbours", domains_hold_neighbours},
    {"small_messages_move_slowly", small_messages_move_slowly},
    {"measured_curves_price_the_inside", measured_curves_price_the_inside},
    {"bundled_machines_keep_the_laws", bundled_machines_keep_the_laws},
    {"links_are_not_used_fully", links_are_not_used_fully},
    {"better_networks_and_smaller_messages_are_never_slower",
     better_networks_and_smaller_messages_are_never_slower},
    {"all_reduce_is_two_halves", all_reduce_is_two_halves},
    CU_TEST_INFO_NULL,
};
