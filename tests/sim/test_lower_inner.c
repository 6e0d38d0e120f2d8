// Collectives inside computations, lowered without SimGrid.
#include "plan/plan_orders.h"
#include "sim/disturb_compute.h"
#include "sim/lower_inner.h"
#include "tests/sim/sim_case.h"
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>

// Of a pass of 1 s: experts take 0.5 s, half of it exposed, and could hide for 0.375 s. Shards take
// 0.375 s, 0.125 s of it exposed, and could hide for 0.875 s.
static InnerPass pass_of_1_s(Arena *arena) {
    InnerPass pass = {.list = ARENA_ARRAY(arena, 2, InnerCollective), .num = 2, .capacity = 2};
    pass.list[0] = (InnerCollective){.group = GROUP_EP,
                                     .queue = INNER_EP,
                                     .all_to_all = true,
                                     .time_s = 0.5,
                                     .latency_s = 0.0625,
                                     .wire_s = 0.375,
                                     .exposed_s = 0.25};
    pass.list[1] = (InnerCollective){.group = GROUP_ZERO,
                                     .queue = INNER_SHARDS,
                                     .time_s = 0.375,
                                     .latency_s = 0.125,
                                     .wire_s = 0.25,
                                     .inside_s = 0.125,
                                     .exposed_s = 0.125};
    pass.window_s[INNER_EP] = 0.375;
    pass.window_s[INNER_SHARDS] = 0.875;
    return pass;
}

static const InnerPass *passes_of(PipelineCase *c, bool some) {
    InnerPass *passes = ARENA_ARRAY(&c->arena, plan_all_chunks(&c->plan), InnerPass);
    for (int i = 0; some && i < c->plan.num_chunks; i++) passes[i] = pass_of_1_s(&c->arena);
    return passes;
}

// Whole backwards and weight parts have none.
static Inner inner_of(PipelineCase *c) {
    InnerPasses passes = {.forward = passes_of(c, true),
                          .backward = passes_of(c, false),
                          .backward_input = passes_of(c, true),
                          .backward_weight = passes_of(c, false)};
    return (Inner){.across = passes, .all = passes};
}

// Stages of two nodes: 2 tensor-parallel ranks, shards over the 8 replicas of each, experts over
// all.
static PipelineCase case_new(ScheduleKind kind, int pp, int vpp, int num_microbatches) {
    PipelineCase c = pipeline_new(kind, pp, vpp, num_microbatches);
    c.plan.tp = 2;
    c.plan.dp = 8;
    c.plan.zero_group = 8;
    c.plan.ep = 16;
    for (int rank = 0; rank < pp; rank++) {
        c.message_s[rank] = 0.25;
        c.message_alpha_s[rank] = 0.0625;
        c.optimizer_s[rank] = 0.5;
    }
    return c;
}

static Lowered lower(PipelineCase *c, const Cluster *cluster, const Inner *inner, int num_folded) {
    LowerInput input = {cluster, &c->plan, &c->program, &c->prices, inner};
    Folding folding = {.num_folded = num_folded, .period = c->program.multiplicity};
    Lowered lowered;
    Status status = program_lower(&input, &folding, false, &c->arena, &lowered);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    return lowered;
}

static void uncontended_passes_take_their_price(void) {
    for (int i = 0; i < NUM_SCHEDULES * 3 * 2 * 2; i++) {
        const ScheduleKind kind = (ScheduleKind)(i / 12);
        const int pp = 1 + i % 3, vpp = 1 + i / 3 % 2, overlap = i / 6 % 2;
        if (!schedule_find(kind) || !schedule_takes(kind, pp, vpp, 2 * pp)) continue;
        PipelineCase c = case_new(kind, pp, vpp, 2 * pp);
        c.scenario.execution.overlap_grad_reduce = overlap;
        c.scenario.execution.overlap_param_gather = overlap;
        pipeline_build(&c, 0.75);
        // The host takes a quarter of a second longer than the device.
        for (int k = 0; overlap && k < c.plan.num_chunks; k++) {
            c.forward[k].term_s[TERM_OTHER] = 0.25;
            c.forward[k].time_s += 0.25;
        }
        Cluster cluster = sim_cluster(2 * pp);
        const Inner inner = inner_of(&c);
        Timeline timeline = pipeline_run(&c);
        for (int num_folded = 1; num_folded <= 2; num_folded++) {
            Lowered lowered = lower(&c, &cluster, &inner, num_folded);
            int num = sim_count_differences(&c.program, &lowered, &timeline, &c.arena);
            CU_ASSERT_EQUAL(num, 0);
            if (num > 0)
                fprintf(stderr, "\n%s pp %d vpp %d: %d differ\n", SCHEDULE_NAMES[kind], pp, vpp,
                        num);
        }
        pipeline_free(&c);
    }
}

static double given_duration_s(const void *durations_s, int node) {
    return ((const double *)durations_s)[node];
}

// The only forward of one stage, when flows of a group take `factor` times as long: its seconds.
static double forward_s(GroupKind slowed, double factor, double host_s, double slow_gpu) {
    PipelineCase c = case_new(SCHEDULE_1F1B, 1, 1, 1);
    pipeline_build(&c, 0);
    c.forward[0].term_s[TERM_OTHER] = host_s;
    c.forward[0].time_s += host_s;
    Cluster cluster = sim_cluster(2);
    const Inner inner = inner_of(&c);
    Lowered lowered = lower(&c, &cluster, &inner, 1);
    Disturb disturb = {.kind = DISTURB_SLOW_GPU, .gpu = 5, .factor = slow_gpu};
    LowerInput input = {&cluster, &c.plan, &c.program, &c.prices, &inner};
    computations_disturb(&input, &disturb, 1, 1u << DISTURB_SLOW_GPU, 0, &c.arena, &lowered);
    double *duration_s = ARENA_ARRAY(&c.arena, lowered.dag.num_nodes, double);
    double *end_s = ARENA_ARRAY(&c.arena, lowered.dag.num_nodes, double);
    for (int i = 0; i < lowered.dag.num_nodes; i++) {
        const int route = lowered.dag.nodes[i].route;
        const bool slow = route != NO_ROUTE && lowered.dag.routes[route].inner == 1 + (int)slowed;
        duration_s[i] =
            lowered.dag.nodes[i].delay_s + dag_flow_s(&lowered.dag, i) * (slow ? factor : 1);
    }
    dag_replay(&lowered.dag, given_duration_s, duration_s, end_s);
    double time_s = end_s[lowered.end_node[0][0]];
    pipeline_free(&c);
    return time_s;
}

// Of the experts' flows 3/8 s are wire, 1/16 s latency, and 1/16 s SMs that copy beside. In two
// halves, exposed and hidden: 3/16, 1/32 and 1/32 s. Twice as slow the exposed half takes 13/32 s
// instead of 1/4: 5/32 s more. The hidden half takes 13/32 s, where 3/8 s do not show: 1/32 s more.
// Of the shards' wire 2/3 is hidden, 1/6 s; with 1/12 s of latency, 7/8 s do not show. The exposed
// third takes 1/12 s more for each time it is slower. Ten times: 9/12 s; hidden 21/12 s, 7/8 s
// more.
static void slower_flows_show_as_far_as_nothing_hides_them(void) {
    CU_ASSERT_DOUBLE_EQUAL(forward_s(GROUP_EP, 1, 0, 1), 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(forward_s(GROUP_EP, 2, 0, 1), 1 + 5. / 32 + 1. / 32, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(forward_s(GROUP_ZERO, 2, 0, 1), 1 + 1. / 12, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(forward_s(GROUP_ZERO, 10, 0, 1), 1 + 7. / 8, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(forward_s(GROUP_TP, 10, 0, 1), 1, 1e-12);
}

// The device of a pass that the host launches in 1.25 s has 0.25 s to spare.
static void what_the_host_hides_does_not_show(void) {
    CU_ASSERT_DOUBLE_EQUAL(forward_s(GROUP_EP, 2, 0.25, 1), 1.25, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(forward_s(GROUP_EP, 3, 0.25, 1), 1 + 2 * 3. / 16 - 1. / 32 + 7. / 32,
                           1e-12);
}

// A GPU that is half as fast takes 1 s more for what the price calls its own; flows stay.
static void a_slow_gpu_computes_longer(void) {
    CU_ASSERT_DOUBLE_EQUAL(forward_s(GROUP_EP, 1, 0, 2), 2, 1e-12);
}

// How many of the routes of inner flows have so many links.
static int count_routes(const Lowered *lowered, int num_links) {
    int num = 0;
    for (int i = 0; i < lowered->dag.num_routes; i++)
        num += lowered->dag.routes[i].inner > 0 && lowered->dag.routes[i].num_links == num_links;
    return num;
}

// Experts over 64 nodes, 32 to a leaf: of 63 other nodes 32 have other leaves. Flows go to the
// node 16 further on: of each leaf's 32, 16 leave it. Every NIC sends one and receives one.
static void an_all_to_all_loads_leaves_as_it_should(void) {
    PipelineCase c = case_new(SCHEDULE_1F1B, 1, 1, 1);
    c.plan.tp = 1;
    c.plan.dp = c.plan.ep = 512;
    c.plan.zero_group = 1;
    pipeline_build(&c, 0);
    Cluster cluster = sim_cluster(64);
    Inner inner = inner_of(&c);
    ((InnerPass *)inner.across.forward)->num = 1;
    ((InnerPass *)inner.across.backward_input)->num = 1;
    Lowered lowered = lower(&c, &cluster, &inner, 1);
    CU_ASSERT_EQUAL(count_routes(&lowered, 2), 256);
    CU_ASSERT_EQUAL(count_routes(&lowered, 4), 256);
    int *num_on = ARENA_ARRAY(&c.arena, lowered.network.num_links, int), most = 0;
    for (int i = 0; i < lowered.dag.num_routes; i++) {
        const DagRoute *route = &lowered.dag.routes[i];
        if (route->inner == 0) continue;
        CU_ASSERT_EQUAL((route->to_gpu - route->from_gpu + 512) % 512, 16 * 8);
        for (int hop = 0; hop < route->num_links; hop++) num_on[route->links[hop]]++;
    }
    for (int i = 0; i < lowered.network.num_links; i++) most = num_on[i] > most ? num_on[i] : most;
    CU_ASSERT_EQUAL(most, 16);
    pipeline_free(&c);
}

// Two stages of 2 nodes; the port of a GPU of the second is disturbed. There shards also flow
// inside domains, 16 GPUs over their ports; the first has no such flows.
static void ports_are_played_where_one_is_disturbed(void) {
    PipelineCase c = case_new(SCHEDULE_1F1B, 2, 1, 2);
    pipeline_build(&c, 0);
    Cluster cluster = sim_cluster(4);
    Inner inner = inner_of(&c);
    bool is_disturbed[32] = {[17] = true};
    inner.is_disturbed = is_disturbed;
    Timeline timeline = pipeline_run(&c);
    Lowered lowered = lower(&c, &cluster, &inner, 1);
    CU_ASSERT_EQUAL(sim_count_differences(&c.program, &lowered, &timeline, &c.arena), 0);
    int num_inside = 0;
    for (int i = 0; i < lowered.dag.num_routes; i++) {
        const DagRoute *route = &lowered.dag.routes[i];
        if (route->inner == 0 || route->from_gpu / 8 != route->to_gpu / 8) continue;
        CU_ASSERT(route->from_gpu >= 16);
        num_inside += route->inner == 1 + GROUP_ZERO;
    }
    CU_ASSERT_EQUAL(num_inside, 16);
    pipeline_free(&c);
}

CU_TestInfo lower_inner_tests[] = {
    {"uncontended_passes_take_their_price", uncontended_passes_take_their_price},
    {"slower_flows_show_as_far_as_nothing_hides_them",
     slower_flows_show_as_far_as_nothing_hides_them},
    {"what_the_host_hides_does_not_show", what_the_host_hides_does_not_show},
    {"a_slow_gpu_computes_longer", a_slow_gpu_computes_longer},
    {"an_all_to_all_loads_leaves_as_it_should", an_all_to_all_loads_leaves_as_it_should},
    {"ports_are_played_where_one_is_disturbed", ports_are_played_where_one_is_disturbed},
    CU_TEST_INFO_NULL,
};
