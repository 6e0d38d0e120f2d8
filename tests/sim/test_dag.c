#include "sim/dag.h"
#include "tests/sim/sim_case.h"

#include <CUnit/CUnit.h>

// A timer of 2 s; after it a message of 20 GB over a NIC of 10 GB/s with 1 s of latency; beside it
// a timer of 7 s; both are met by a node of nothing: 2 + 1 + 2 = 5 s against 7 s.
static void the_longest_way_counts(void) {
    Arena arena = {0};
    Cluster cluster = sim_cluster(2);
    Network network = network_build(&cluster, 1, &arena);
    DagBuilder builder = {.arena = &arena};
    int timer = dag_add_timer(&builder, 2);
    int flow = dag_add_flow(&builder, 1, 20e9, dag_add_route(&builder, &network, 0, 8, 1));
    int beside = dag_add_timer(&builder, 7);
    int meeting = dag_add_timer(&builder, 0);
    dag_add_wait(&builder, timer, flow);
    dag_add_wait(&builder, flow, meeting);
    dag_add_wait(&builder, beside, meeting);
    dag_add_wait(&builder, -1, meeting);
    Dag dag = dag_finish(&builder);
    double end_s[4];
    CU_ASSERT_EQUAL(dag_critical_path(&dag, end_s), 4);
    CU_ASSERT_DOUBLE_EQUAL(end_s[timer], 2, 0);
    CU_ASSERT_DOUBLE_EQUAL(end_s[flow], 5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(end_s[meeting], 7, 0);
    arena_free(&arena);
}

static void a_circle_is_not_reached(void) {
    Arena arena = {0};
    DagBuilder builder = {.arena = &arena};
    for (int i = 0; i < 4; i++) dag_add_timer(&builder, 1);
    dag_add_wait(&builder, 0, 1);
    dag_add_wait(&builder, 1, 2);
    dag_add_wait(&builder, 2, 1);
    Dag dag = dag_finish(&builder);
    double end_s[4];
    CU_ASSERT_EQUAL(dag_critical_path(&dag, end_s), 2);
    arena_free(&arena);
}

// More than the builder's first arrays hold.
static void a_chain_may_be_long(void) {
    enum { LENGTH = 5000 };
    Arena arena = {0};
    DagBuilder builder = {.arena = &arena};
    for (int i = 0; i < LENGTH; i++) dag_add_wait(&builder, i - 1, dag_add_timer(&builder, 1));
    Dag dag = dag_finish(&builder);
    double *end_s = ARENA_ARRAY(&arena, LENGTH, double);
    CU_ASSERT_EQUAL(dag_critical_path(&dag, end_s), LENGTH);
    CU_ASSERT_DOUBLE_EQUAL(end_s[LENGTH - 1], LENGTH, 0);
    arena_free(&arena);
}

CU_TestInfo dag_tests[] = {
    {"the_longest_way_counts", the_longest_way_counts},
    {"a_circle_is_not_reached", a_circle_is_not_reached},
    {"a_chain_may_be_long", a_chain_may_be_long},
    CU_TEST_INFO_NULL,
};
