#include "sim/disturb_network.h"
#include "tests/sim/sim_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

static Scenario scenario_with(const Disturb *disturb, int num_disturb) {
    return (Scenario){.file = "job.json",
                      .cluster = sim_cluster(4),
                      .disturb = disturb,
                      .num_disturb = num_disturb};
}

// The capacity of a link by its name after the disturbance; -1 where there is none.
static double capacity(const Scenario *scenario, const char *link) {
    Arena arena = {0};
    Network network = network_build(&scenario->cluster, 1, &arena);
    Network left;
    double found = -1;
    CU_ASSERT_EQUAL(network_disturb(scenario, &network, &arena, &left).code, STATUS_OK);
    for (int i = 0; i < network.num_links; i++) {
        if (strcmp(network_link_name(&network, i, &arena), link) == 0)
            found = left.link_bytes_per_s[i];
    }
    arena_free(&arena);
    return found;
}

static void a_degraded_link_loses_both_directions(void) {
    const Disturb disturb[] = {
        {.kind = DISTURB_LINK, .link = {LINK_NIC, 2, 3}, .bandwidth_factor = 0.5},
        {.kind = DISTURB_LINK, .link = {LINK_NVLINK, 9, 0}, .bandwidth_factor = 0.25},
        {.kind = DISTURB_LINK, .link = {LINK_LEAF, 7, 0}, .bandwidth_factor = 0.1},
    };
    Scenario scenario = scenario_with(disturb, 3);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nic:2.3 out"), 5e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nic:2.3 in"), 5e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nic:2.4 out"), 10e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nvlink:9 in"), 25e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:7 up"), 32e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:7 down"), 32e9, 1);
}

// 16 NICs for 8 GPUs are played as 8 of 20 GB/s: NIC 7 is half of the fourth, of which half
// remains: 15 GB/s.
static void one_of_two_nics_of_a_gpu_is_half_of_its_link(void) {
    const Disturb disturb = {
        .kind = DISTURB_LINK, .link = {LINK_NIC, 0, 7}, .bandwidth_factor = 0.5};
    Scenario scenario = scenario_with(&disturb, 1);
    test_pool(&scenario.cluster)->nics_per_node = 16;
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nic:0.3 out"), 15e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nic:0.4 out"), 20e9, 1);
}

// A leaf has 32 x 10 GB/s up and down.
static void others_take_what_they_send(void) {
    const Disturb disturb = {.kind = DISTURB_BACKGROUND,
                             .link = {LINK_LEAF, 0, 0},
                             .to = {LINK_LEAF, 3, 0},
                             .bytes_per_s = 120e9};
    Scenario scenario = scenario_with(&disturb, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:0 up"), 200e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:3 down"), 200e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:0 down"), 320e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:1 up"), 320e9, 1);
}

// 5 GB/s are left of 10 in any order: what others send does not yield to a link's loss.
static void others_take_their_rate_of_what_is_left(void) {
    const Disturb half = {.kind = DISTURB_LINK, .link = {LINK_LEAF, 0, 0}, .bandwidth_factor = 0.5};
    const Disturb others = {.kind = DISTURB_BACKGROUND,
                            .link = {LINK_LEAF, 0, 0},
                            .to = {LINK_LEAF, 1, 0},
                            .bytes_per_s = 155e9};
    for (int order = 0; order < 2; order++) {
        const Disturb disturb[] = {order ? half : others, order ? others : half};
        Scenario scenario = scenario_with(disturb, 2);
        CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:0 up"), 5e9, 1);
    }
}

// 8 leaves with 32 uplinks, 256 together: 4 spines of 64 ports, each a quarter of a leaf's 320
// GB/s. Half of spine 1 and a quarter of spine 3 remain: 80 x (1 + 0.5 + 1 + 0.25). Half of spine 1
// twice is a quarter.
static void a_spine_is_its_part_of_all_leaves(void) {
    const Disturb disturb[] = {
        {.kind = DISTURB_LINK, .link = {LINK_SPINE, 1, 0}, .bandwidth_factor = 0.5},
        {.kind = DISTURB_LINK, .link = {LINK_SPINE, 3, 0}, .bandwidth_factor = 0.25},
        {.kind = DISTURB_LINK, .link = {LINK_SPINE, 1, 0}, .bandwidth_factor = 0.5},
    };
    Scenario scenario = scenario_with(disturb, 2);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:0 up"), 220e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:7 down"), 220e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nic:0.0 out"), 10e9, 1);
    scenario.num_disturb = 3;
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:0 up"), 200e9, 1);
}

// 64 nodes: every rail has 2 leaves of 32 uplinks and one spine of 64 ports of its own.
static void spines_of_rails_join_one_rail_each(void) {
    const Disturb disturb = {
        .kind = DISTURB_LINK, .link = {LINK_SPINE, 3, 0}, .bandwidth_factor = 0.5};
    Scenario scenario = scenario_with(&disturb, 1);
    scenario.cluster = sim_cluster(64);
    test_pool(&scenario.cluster)->topology = TOPOLOGY_RAIL_ONLY;
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:3 up"), 160e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:11 down"), 160e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:4 up"), 320e9, 1);
}

// Traffic between leaf 0 and a spine takes from one leaf, in one direction.
static void others_may_end_at_a_spine(void) {
    const Disturb disturb = {.kind = DISTURB_BACKGROUND,
                             .link = {LINK_LEAF, 0, 0},
                             .to = {LINK_SPINE, 2, 0},
                             .bytes_per_s = 70e9};
    Scenario scenario = scenario_with(&disturb, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:0 up"), 250e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:0 down"), 320e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "leaf:1 up"), 320e9, 1);
}

// The route between two GPUs after the disturbance.
static void assert_route(const Scenario *scenario, int from_gpu, int to_gpu, const char *expected) {
    Arena arena = {0};
    Network network = network_build(&scenario->cluster, 1, &arena), left;
    CU_ASSERT_EQUAL(network_disturb(scenario, &network, &arena, &left).code, STATUS_OK);
    const char *text = sim_route_text(&left, from_gpu, to_gpu, &arena);
    CU_ASSERT_STRING_EQUAL(text, expected);
    if (strcmp(text, expected) != 0) fprintf(stderr, "\n%s, expected %s\n", text, expected);
    arena_free(&arena);
}

static void the_next_nic_takes_over_from_one_that_failed(void) {
    const Disturb disturb[] = {
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 0, 6}},
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 0, 7}},
    };
    Scenario scenario = scenario_with(disturb, 2);
    assert_route(&scenario, 6, 8 + 6, "nic:0.0 out, leaf:0 up, leaf:6 down, nic:1.6 in");
    assert_route(&scenario, 8 + 7, 7, "nic:1.7 out, leaf:7 up, leaf:0 down, nic:0.0 in");
    assert_route(&scenario, 6, 8, "nic:0.0 out, nic:1.0 in");
    assert_route(&scenario, 5, 8 + 5, "nic:0.5 out, nic:1.5 in");
    assert_route(&scenario, 6, 7, "nvlink:6 out, nvlink:7 in");
}

// Without a spine both ends take the next rail on which both have a NIC.
static void rails_without_a_spine_are_left_together(void) {
    const Disturb disturb[] = {
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 0, 1}},
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 1, 2}},
    };
    Scenario scenario = scenario_with(disturb, 2);
    test_pool(&scenario.cluster)->topology = TOPOLOGY_RAIL_ONLY;
    assert_route(&scenario, 1, 8 + 1, "nvlink:1 out, nvlink:3 in, nic:0.3 out, nic:1.3 in");
    assert_route(&scenario, 3, 8 + 1, "nic:0.3 out, nic:1.3 in");
    assert_route(&scenario, 16 + 1, 1, "nvlink:17 out, nvlink:18 in, nic:2.2 out, nic:0.2 in");
    assert_route(&scenario, 1, 16 + 4, "nvlink:1 out, nvlink:4 in, nic:0.4 out, nic:2.4 in");
    test_pool(&scenario.cluster)->nics_per_node = 2; // GPUs 0 to 3 and 4 to 7
    scenario.num_disturb = 1;
    assert_route(&scenario, 5, 8 + 1, "nvlink:5 out, nvlink:1 in, nic:0.0 out, nic:1.0 in");
    assert_route(&scenario, 1, 8 + 5, "nic:0.0 out, nic:1.0 in");
}

// 16 NICs for 8 GPUs: the other of the two remains to the GPU. When both fail, GPU 4's take over.
static void a_gpu_with_two_nics_keeps_one(void) {
    const Disturb disturb[] = {
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 0, 6}},
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 0, 7}},
    };
    Scenario scenario = scenario_with(disturb, 1);
    test_pool(&scenario.cluster)->nics_per_node = 16;
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nic:0.3 out"), 10e9, 1);
    assert_route(&scenario, 3, 8 + 3, "nic:0.3 out, nic:1.3 in");
    scenario.num_disturb = 2;
    CU_ASSERT_DOUBLE_EQUAL(capacity(&scenario, "nic:0.4 out"), 20e9, 1);
    assert_route(&scenario, 3, 8 + 3, "nic:0.4 out, leaf:4 up, leaf:3 down, nic:1.3 in");
}

// Down for 0.2 of every 2 s: some time in the first 2 s, or already at the start. The same
// (seed, repetition) draws the same, both directions alike; in the mean it is 0.8 s.
static void a_flap_begins_where_chance_says(void) {
    Arena arena = {0};
    Disturb disturb = {.kind = DISTURB_FLAP, .link = {LINK_NIC, 3, 2}};
    disturb.period_s = 2;
    disturb.down_frac = 0.1;
    disturb.seed = 7;
    Scenario scenario = scenario_with(&disturb, 1);
    Network network = network_build(&scenario.cluster, 1, &arena), left;
    CU_ASSERT_EQUAL(network_disturb(&scenario, &network, &arena, &left).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(left.num_flaps, 2);
    CU_ASSERT_STRING_EQUAL(network_link_name(&left, left.flaps[0].link, &arena), "nic:3.2 out");
    CU_ASSERT_STRING_EQUAL(network_link_name(&left, left.flaps[1].link, &arena), "nic:3.2 in");
    double sum_s = 0, first_s = 0;
    for (int repetition = 0; repetition < 1000; repetition++) {
        network_draw_flaps(&scenario, repetition, &left);
        const LinkFlap *flap = &left.flaps[0];
        CU_ASSERT_DOUBLE_EQUAL(flap->down_s, 0.2, 1e-12);
        CU_ASSERT(flap->first_down_s > -0.2 && flap->first_down_s <= 1.8);
        CU_ASSERT_EQUAL(flap->first_down_s, left.flaps[1].first_down_s);
        if (repetition == 0) first_s = flap->first_down_s;
        sum_s += flap->first_down_s;
    }
    // The standard error of the mean is 2 / sqrt(12 x 1000) = 0.018 s.
    CU_ASSERT_DOUBLE_EQUAL(sum_s / 1000, 0.8, 0.06);
    network_draw_flaps(&scenario, 0, &left);
    CU_ASSERT_EQUAL(left.flaps[0].first_down_s, first_s);
    disturb.seed = 8;
    network_draw_flaps(&scenario, 0, &left);
    CU_ASSERT_NOT_EQUAL(left.flaps[0].first_down_s, first_s);
    arena_free(&arena);
}

static double drawn_s(Disturb *disturb, int num_disturb, int flap) {
    Arena arena = {0};
    Scenario scenario = scenario_with(disturb, num_disturb);
    Network network = network_build(&scenario.cluster, 1, &arena), left;
    CU_ASSERT_EQUAL(network_disturb(&scenario, &network, &arena, &left).code, STATUS_OK);
    network_draw_flaps(&scenario, 0, &left);
    double first_down_s = left.flaps[2 * flap].first_down_s;
    arena_free(&arena);
    return first_down_s;
}

// What stands before it and is no flap changes nothing; a second flap of the same seed has a draw
// of its own.
static void a_flap_is_known_by_its_number_among_flaps(void) {
    Disturb flap = {.kind = DISTURB_FLAP, .link = {LINK_NIC, 3, 2}, .seed = 7};
    flap.period_s = 2;
    flap.down_frac = 0.1;
    Disturb alone[] = {flap};
    Disturb after[] = {{.kind = DISTURB_SLOW_GPU, .factor = 2}, flap};
    Disturb twice[] = {flap, flap};
    twice[1].ordinal = 1;
    CU_ASSERT_EQUAL(drawn_s(after, 2, 0), drawn_s(alone, 1, 0));
    CU_ASSERT_EQUAL(drawn_s(twice, 2, 0), drawn_s(alone, 1, 0));
    CU_ASSERT_NOT_EQUAL(drawn_s(twice, 2, 1), drawn_s(alone, 1, 0));
}

// One of 4 spines takes a quarter of every leaf's links with it.
static void a_spine_flaps_on_all_its_leaves(void) {
    Arena arena = {0};
    Disturb disturb = {.kind = DISTURB_FLAP, .link = {LINK_SPINE, 3, 0}};
    disturb.period_s = 1;
    disturb.down_frac = 0.5;
    Scenario scenario = scenario_with(&disturb, 1);
    Network network = network_build(&scenario.cluster, 1, &arena), left;
    CU_ASSERT_EQUAL(network_disturb(&scenario, &network, &arena, &left).code, STATUS_OK);
    CU_ASSERT_EQUAL(left.num_flaps, 16);
    for (int i = 0; i < left.num_flaps; i++)
        CU_ASSERT_DOUBLE_EQUAL(left.flaps[i].bytes_per_s, 80e9, 1);
    arena_free(&arena);
}

static Status refusal_on(const Cluster *cluster, Disturb disturb, Arena *arena) {
    Scenario scenario = scenario_with(&disturb, 1);
    scenario.cluster = *cluster;
    Network network = network_build(&scenario.cluster, 1, arena), left;
    return network_disturb(&scenario, &network, arena, &left);
}

static Status refusal(Disturb disturb, Arena *arena) {
    Cluster cluster = sim_cluster(4);
    return refusal_on(&cluster, disturb, arena);
}

static void what_is_not_there_is_refused(void) {
    Arena arena = {0};
    Disturb disturb = {.kind = DISTURB_LINK, .link = {LINK_LEAF, 8, 0}, .bandwidth_factor = 0.5};
    ASSERT_REFUSED(refusal(disturb, &arena),
                   "job.json: disturb[0].link: leaf 8 is out of range; expected 0 to 7");
    disturb.link = (LinkName){LINK_SPINE, 4, 0};
    ASSERT_REFUSED(refusal(disturb, &arena),
                   "job.json: disturb[0].link: spine 4 is out of range; expected 0 to 3");
    Cluster cluster = sim_cluster(4);
    test_pool(&cluster)->topology = TOPOLOGY_DRAGONFLY;
    ASSERT_REFUSED(refusal_on(&cluster, disturb, &arena),
                   "job.json: disturb[0].link: the network has no spine switches");
    disturb = (Disturb){.kind = DISTURB_BACKGROUND, .to = {LINK_LEAF, 1, 0}, .bytes_per_s = 4e11};
    disturb.link = (LinkName){LINK_LEAF, 0, 0};
    ASSERT_REFUSED(refusal(disturb, &arena),
                   "job.json: disturb[0].background: 4e+11 bytes/s leave nothing of leaf:0 up, "
                   "which has 3.2e+11");
    disturb.to = (LinkName){LINK_SPINE, 2, 0};
    disturb.bytes_per_s = 9e10;
    ASSERT_REFUSED(refusal(disturb, &arena),
                   "job.json: disturb[0].background: 9e+10 bytes/s leave nothing of leaf:0 up at "
                   "spine:2, which has 8e+10");
    disturb.link = (LinkName){LINK_SPINE, 0, 0};
    ASSERT_REFUSED(refusal(disturb, &arena),
                   "job.json: disturb[0].background: spines are not joined to each other; expected "
                   "a leaf at one end");
    disturb.link = (LinkName){LINK_LEAF, 3, 0};
    cluster = sim_cluster(64);
    test_pool(&cluster)->topology = TOPOLOGY_RAIL_ONLY;
    ASSERT_REFUSED(refusal_on(&cluster, disturb, &arena),
                   "job.json: disturb[0].background: leaf:3 is not joined to spine:2");
    arena_free(&arena);
}

static void a_nic_that_no_other_replaces_cannot_fail(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(4);
    test_pool(&cluster)->nics_per_node = 1;
    ASSERT_REFUSED(
        refusal_on(&cluster, (Disturb){.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 2, 0}}, &arena),
        "job.json: disturb[0].fail_nic: node 2 has no other NIC that works and could take its "
        "traffic");
    const Disturb disturb[] = {
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 0, 0}},
        {.kind = DISTURB_FAIL_NIC, .link = {LINK_NIC, 3, 1}},
    };
    Scenario scenario = scenario_with(disturb, 2);
    test_pool(&scenario.cluster)->nics_per_node = 2;
    test_pool(&scenario.cluster)->topology = TOPOLOGY_RAIL_ONLY;
    Network network = network_build(&scenario.cluster, 1, &arena), left;
    ASSERT_REFUSED(network_disturb(&scenario, &network, &arena, &left),
                   "job.json: disturb[0].fail_nic: nodes 0 and 3 have no rail left on which the "
                   "NICs of both work, and no spine joins rails");
    arena_free(&arena);
}

CU_TestInfo disturb_network_tests[] = {
    {"a_degraded_link_loses_both_directions", a_degraded_link_loses_both_directions},
    {"one_of_two_nics_of_a_gpu_is_half_of_its_link", one_of_two_nics_of_a_gpu_is_half_of_its_link},
    {"others_take_what_they_send", others_take_what_they_send},
    {"others_take_their_rate_of_what_is_left", others_take_their_rate_of_what_is_left},
    {"a_spine_is_its_part_of_all_leaves", a_spine_is_its_part_of_all_leaves},
    {"spines_of_rails_join_one_rail_each", spines_of_rails_join_one_rail_each},
    {"others_may_end_at_a_spine", others_may_end_at_a_spine},
    {"the_next_nic_takes_over_from_one_that_failed", the_next_nic_takes_over_from_one_that_failed},
    {"rails_without_a_spine_are_left_together", rails_without_a_spine_are_left_together},
    {"a_gpu_with_two_nics_keeps_one", a_gpu_with_two_nics_keeps_one},
    {"a_flap_begins_where_chance_says", a_flap_begins_where_chance_says},
    {"a_flap_is_known_by_its_number_among_flaps", a_flap_is_known_by_its_number_among_flaps},
    {"a_spine_flaps_on_all_its_leaves", a_spine_flaps_on_all_its_leaves},
    {"what_is_not_there_is_refused", what_is_not_there_is_refused},
    {"a_nic_that_no_other_replaces_cannot_fail", a_nic_that_no_other_replaces_cannot_fail},
    CU_TEST_INFO_NULL,
};
