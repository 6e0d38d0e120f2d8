#include "sim/outcome.h"
#include "tests/sim/sim_case.h"

#include <CUnit/CUnit.h>

// One flow of 10 GB on NIC 0.0 (10 GB/s: 1 s) after 1 s of latency, and what became of it.
static Outcome outcome_of(double end_s, Arena *arena) {
    Cluster cluster = sim_cluster(2);
    Lowered lowered = {.network = network_build(&cluster, 1, arena)};
    DagBuilder builder = {.arena = arena};
    dag_add_flow(&builder, 1, 10e9, dag_add_route(&builder, &lowered.network, 0, 8, 1));
    lowered.dag = dag_finish(&builder);
    double start_s[] = {0}, ends_s[] = {end_s};
    Playback playback = {.start_s = start_s, .end_s = ends_s};
    Program program = {0};
    return playback_outcome(&lowered, &program, &playback, 0.5, arena);
}

static void an_undisturbed_flow_is_not_contended(void) {
    Arena arena = {0};
    Outcome outcome = outcome_of(2, &arena);
    CU_ASSERT_EQUAL(outcome.contended, false);
    CU_ASSERT_DOUBLE_EQUAL(outcome.step_time_s, 2.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(outcome.flow_lost_frac, 0, 1e-12);
    arena_free(&arena);
}

// It moved for 3 s instead of 1 s.
static void lost_time_is_a_fraction_of_the_granted(void) {
    Arena arena = {0};
    Outcome outcome = outcome_of(4, &arena);
    CU_ASSERT_EQUAL(outcome.contended, true);
    CU_ASSERT_DOUBLE_EQUAL(outcome.flow_lost_frac, 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(outcome.flow_gained_frac, 0, 1e-12);
    arena_free(&arena);
}

static void a_faster_flow_gained(void) {
    Arena arena = {0};
    Outcome outcome = outcome_of(1.25, &arena);
    CU_ASSERT_EQUAL(outcome.contended, false);
    CU_ASSERT_DOUBLE_EQUAL(outcome.flow_gained_frac, 0.75, 1e-12);
    arena_free(&arena);
}

// 10 GB in 2.5 s on a link that could carry 25 GB.
static void busy_links_are_named(void) {
    Arena arena = {0};
    Outcome outcome = outcome_of(2, &arena);
    CU_ASSERT_EQUAL_FATAL(outcome.num_links, 2);
    CU_ASSERT_STRING_EQUAL(outcome.links[0].name, "nic:0.0 out");
    CU_ASSERT_STRING_EQUAL(outcome.links[1].name, "nic:1.0 in");
    CU_ASSERT_DOUBLE_EQUAL(outcome.links[0].utilization_frac, 0.4, 1e-12);
    arena_free(&arena);
}

CU_TestInfo outcome_tests[] = {
    {"an_undisturbed_flow_is_not_contended", an_undisturbed_flow_is_not_contended},
    {"lost_time_is_a_fraction_of_the_granted", lost_time_is_a_fraction_of_the_granted},
    {"a_faster_flow_gained", a_faster_flow_gained},
    {"busy_links_are_named", busy_links_are_named},
    CU_TEST_INFO_NULL,
};
