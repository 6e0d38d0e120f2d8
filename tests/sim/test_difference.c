#include "sim/difference.h"
#include "tests/sim/sim_case.h"

#include <CUnit/CUnit.h>

// A timer of 2 s and a flow of 20 GB over a NIC of 10 GB/s (2 s) begin at 0; after the flow another
// timer of 1 s. As granted the step is 3 s; the estimate says so. The host takes 0.5 s more.
typedef struct {
    Arena arena;
    Dag dag;
    double start_s[3], end_s[3];
} DifferenceCase;

static void case_build(DifferenceCase *c) {
    *c = (DifferenceCase){0};
    Cluster cluster = sim_cluster(2);
    Network network = network_build(&cluster, 1, &c->arena);
    DagBuilder builder = {.arena = &c->arena};
    dag_add_timer(&builder, 2);
    int flow = dag_add_flow(&builder, 0, 20e9, dag_add_route(&builder, &network, 0, 8, 1));
    dag_add_wait(&builder, flow, dag_add_timer(&builder, 1));
    c->dag = dag_finish(&builder);
}

// The flow took flow_s.
static Difference difference_of(DifferenceCase *c, double flow_s, double estimate_s) {
    c->end_s[0] = 2;
    c->end_s[1] = c->start_s[2] = flow_s;
    c->end_s[2] = flow_s + 1;
    Playback playback = {.start_s = c->start_s, .end_s = c->end_s};
    return playback_difference(&c->dag, &playback, 0.5, estimate_s);
}

static void assert_effects(const Difference *d, double model_s, double spare_s,
                           double contention_s) {
    CU_ASSERT_DOUBLE_EQUAL(d->effect_s[EFFECT_MODEL], model_s, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(d->effect_s[EFFECT_SPARE_BANDWIDTH], spare_s, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(d->effect_s[EFFECT_CONTENTION], contention_s, 1e-12);
}

static void a_slow_flow_is_contention(void) {
    DifferenceCase c;
    case_build(&c);
    Difference d = difference_of(&c, 5, 3.5);
    assert_effects(&d, 0, 0, 3);
    arena_free(&c.arena);
}

// The flow and what follows take 0.5 + 1 s, the other timer 2 s: 1 of the 1.5 s gained counts.
static void a_fast_flow_had_spare_bandwidth(void) {
    DifferenceCase c;
    case_build(&c);
    Difference d = difference_of(&c, 0.5, 3.5);
    assert_effects(&d, 0, -1, 0);
    arena_free(&c.arena);
}

// An estimate of 4 s for activities that take 3.5 s as granted: something models them wrongly.
static void an_estimate_of_other_work_is_the_models(void) {
    DifferenceCase c;
    case_build(&c);
    Difference d = difference_of(&c, 5, 4);
    assert_effects(&d, -0.5, 0, 3);
    arena_free(&c.arena);
}

CU_TestInfo difference_tests[] = {
    {"a_slow_flow_is_contention", a_slow_flow_is_contention},
    {"a_fast_flow_had_spare_bandwidth", a_fast_flow_had_spare_bandwidth},
    {"an_estimate_of_other_work_is_the_models", an_estimate_of_other_work_is_the_models},
    CU_TEST_INFO_NULL,
};
