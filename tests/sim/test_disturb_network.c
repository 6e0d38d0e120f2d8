#include "sim/disturb_network.h"
#include "tests/sim/sim_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

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
    double *left, found = -1;
    CU_ASSERT_EQUAL(network_disturb(scenario, &network, &arena, &left).code, STATUS_OK);
    for (int i = 0; i < network.num_links; i++) {
        if (strcmp(network_link_name(&network, i, &arena), link) == 0) found = left[i];
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
    scenario.cluster.nics_per_node = 16;
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

static Status refusal(Disturb disturb, Arena *arena) {
    Scenario scenario = scenario_with(&disturb, 1);
    Network network = network_build(&scenario.cluster, 1, arena);
    double *left;
    return network_disturb(&scenario, &network, arena, &left);
}

static void what_is_not_there_is_refused(void) {
    Arena arena = {0};
    Disturb disturb = {.kind = DISTURB_LINK, .link = {LINK_LEAF, 8, 0}, .bandwidth_factor = 0.5};
    ASSERT_REFUSED(refusal(disturb, &arena),
                   "job.json: disturb[0].link: leaf 8 is out of range; expected 0 to 7");
    disturb.link = (LinkName){LINK_SPINE, 0, 0};
    ASSERT_REFUSED(refusal(disturb, &arena),
                   "job.json: disturb[0].link: spines are legal, but not supported yet");
    disturb = (Disturb){.kind = DISTURB_BACKGROUND, .to = {LINK_LEAF, 1, 0}, .bytes_per_s = 4e11};
    disturb.link = (LinkName){LINK_LEAF, 0, 0};
    ASSERT_REFUSED(refusal(disturb, &arena),
                   "job.json: disturb[0].background: 4e+11 bytes/s leave nothing of leaf:0 up, "
                   "which has 3.2e+11");
    arena_free(&arena);
}

CU_TestInfo disturb_network_tests[] = {
    {"a_degraded_link_loses_both_directions", a_degraded_link_loses_both_directions},
    {"one_of_two_nics_of_a_gpu_is_half_of_its_link", one_of_two_nics_of_a_gpu_is_half_of_its_link},
    {"others_take_what_they_send", others_take_what_they_send},
    {"what_is_not_there_is_refused", what_is_not_there_is_refused},
    CU_TEST_INFO_NULL,
};
