#include "costmodel/network/exchange.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

static const Dispatcher KERNELS = {.num_sms = 10,
                                   .sm_bytes_per_s = 1e10,
                                   .sm_forward_bytes_per_s = 1e10,
                                   .sm_reduce_bytes_per_s = 5e9,
                                   .link_efficiency_frac = 0.5,
                                   .nic_efficiency_frac = 0.5,
                                   .latency_s = 1e-5,
                                   .domain_latency_s = 1e-6,
                                   .fill_s = 1e-3};

static Exchange exchange_of(int num_ranks, bool combine, double message_bytes) {
    return (Exchange){.kernels = &KERNELS,
                      .routing = {16, 1, 1, 1},
                      .group = {num_ranks, 1},
                      .combine = combine,
                      .message_bytes = message_bytes};
}

// One domain of 8, one expert a token: 7/8 of 1.6e9 bytes over 5e10 B/s: 0.028 s. The 10 SMs take
// 0.016 s; with 2 SMs 0.08 s.
static void inside_a_domain_link_or_sms_bound(void) {
    const Cluster cluster = made_up_cluster(32);
    Exchange x = exchange_of(8, false, 1.6e9);
    ASSERT_CLOSE(exchange_s(machines_of(&cluster), &x), 1e-5 + 0.028);
    Dispatcher few = KERNELS;
    few.num_sms = 2;
    x.kernels = &few;
    ASSERT_CLOSE(exchange_s(machines_of(&cluster), &x), 1e-5 + 0.08);
}

// Two domains: half of 1.6e9 bytes leave over 5e9 B/s: 0.16 s, and a fill of 1e-3. With NICs of
// 1e12 B/s the SMs bound: 0.16 s of one SM to copy and as much to hand on, over 10 of them: 0.032
// s; combine 0.16 + 0.32. The fill is then the NICs' 1.6e-3 s at most: 1e-3.
static void across_domains_tokens_leave_once(void) {
    Cluster cluster = made_up_cluster(32);
    const Exchange dispatch = exchange_of(16, false, 1.6e9), combine = exchange_of(16, true, 1.6e9);
    ASSERT_CLOSE(exchange_s(machines_of(&cluster), &dispatch), 1e-5 + 1e-6 + 0.16 + 1e-3);
    ASSERT_CLOSE(exchange_s(machines_of(&cluster), &combine), 1e-5 + 1e-6 + 0.16 + 1e-3);
    test_pool(&cluster)->nic_bytes_per_s = 1e12;
    ASSERT_CLOSE(exchange_s(machines_of(&cluster), &dispatch), 1e-5 + 1e-6 + 0.032 + 1e-3);
    ASSERT_CLOSE(exchange_s(machines_of(&cluster), &combine), 1e-5 + 1e-6 + 0.048 + 1e-3);
}

// Of 2 domains with 8 experts each a token with 2 experts of 16 reaches 2 (1 - 7/15 / 2) = 23/15;
// its copies are 2 where every rank has one expert. 2e9 bytes of copies: 1e9 once, 23/30 of that
// leave.
static void copies_are_made_behind_the_nic(void) {
    const Cluster cluster = made_up_cluster(32);
    Exchange x = exchange_of(16, false, 2e9);
    x.routing.experts_per_token = 2;
    ASSERT_CLOSE(exchange_s(machines_of(&cluster), &x), 1.1e-5 + 1e-3 + 1e9 * 23 / 30 / 5e9);
}

static Cluster better(const Cluster *cluster, int what) {
    Cluster c = *cluster;
    Pool *pool = test_pool(&c);
    if (what == 0) pool->scale_up.bandwidth_bytes_per_s *= 2;
    if (what == 1) pool->nic_bytes_per_s *= 2;
    if (what == 2) pool->nics_per_node *= 2;
    if (what == 3) pool->oversubscription = 1;
    return c;
}

static void better_machines_and_smaller_messages_are_never_slower(void) {
    Cluster cluster = made_up_cluster(256);
    test_pool(&cluster)->oversubscription = 2;
    for (int i = 0; i < 2 * 8; i++) {
        Exchange x = exchange_of(1 << (1 + i / 2), i % 2, 0);
        x.routing = (Routing){256, 8, 8, 4};
        CU_ASSERT_EQUAL(exchange_s(machines_of(&cluster), &x), 0);
        double before = 0;
        for (x.message_bytes = 1; x.message_bytes < 1e11; x.message_bytes *= 3) {
            const double time_s = exchange_s(machines_of(&cluster), &x);
            CU_ASSERT_TRUE(time_s >= before);
            before = time_s;
            for (int what = 0; what < 4; what++) {
                const Cluster other = better(&cluster, what);
                CU_ASSERT_TRUE(exchange_s(machines_of(&other), &x) <= time_s);
            }
        }
    }
    const Exchange alone = exchange_of(1, false, 1e9);
    CU_ASSERT_EQUAL(exchange_s(machines_of(&cluster), &alone), 0);
}

static void bundled_dispatchers_load(void) {
    Arena arena = {0};
    Dispatcher dispatcher;
    for (int d = DISPATCH_DEEPEP; d <= DISPATCH_HYBRIDEP; d++)
        CU_ASSERT_EQUAL(dispatcher_load_named(MOE_DISPATCHER_NAMES[d], &arena, &dispatcher).code,
                        STATUS_OK);
    arena_free(&arena);
}

CU_TestInfo exchange_tests[] = {
    {"inside_a_domain_link_or_sms_bound", inside_a_domain_link_or_sms_bound},
    {"across_domains_tokens_leave_once", across_domains_tokens_leave_once},
    {"copies_are_made_behind_the_nic", copies_are_made_behind_the_nic},
    {"better_machines_and_smaller_messages_are_never_slower",
     better_machines_and_smaller_messages_are_never_slower},
    {"bundled_dispatchers_load", bundled_dispatchers_load},
    CU_TEST_INFO_NULL,
};
