// The lowering without SimGrid: along the critical path of its activities every instruction of
// every lane begins and ends when costmodel/step/timeline.c says.
#include "costmodel/network/collective.h"
#include "plan/plan_orders.h"
#include "sim/lower.h"
#include "sim/lowering.h"
#include "tests/sim/sim_case.h"
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>

static Lowered lower(PipelineCase *c, const Cluster *cluster, int num_folded, int period,
                     bool stepwise) {
    LowerInput input = {cluster, &c->plan, &c->program, &c->prices, NULL};
    Folding folding = {.num_folded = num_folded, .period = period};
    Lowered lowered;
    Status status = program_lower(&input, &folding, stepwise, &c->arena, &lowered);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    return lowered;
}

// 2 tensor-parallel and 4 data-parallel ranks a stage; messages and collectives take their time.
static PipelineCase case_new(ScheduleKind kind, int pp, int vpp, int num_microbatches) {
    PipelineCase c = pipeline_new(kind, pp, vpp, num_microbatches);
    c.plan.tp = 2;
    c.plan.dp = c.plan.zero_group = c.plan.expert_dp = 4;
    for (int rank = 0; rank < pp; rank++) {
        c.message_s[rank] = 0.25 + 0.125 * rank;
        c.message_alpha_s[rank] = 0.0625;
        c.optimizer_s[rank] = 0.5;
    }
    return c;
}

// What is added up over tp, of other sizes on the first rank.
static void sums_add(PipelineCase *c) {
    for (int i = 0; i < c->plan.num_chunks; i++) c->chunks[i].partial_parameters = i == 0 ? 10 : 20;
}

// The 8 GPUs of a stage are a node, and its 4 replicas a ring: all of them do as the first 2 do.
static void assert_agrees(PipelineCase *c, const char *what) {
    Cluster cluster = sim_cluster(c->plan.pp);
    pipeline_build(c, 0.75);
    Timeline timeline = pipeline_run(c);
    for (int i = 0; i < 2 * c->plan.tp; i++) {
        int num_folded = i / 2 + 1, period = i % 2 ? 2 : c->program.multiplicity;
        Lowered lowered = lower(c, &cluster, num_folded, period, false);
        CU_ASSERT_EQUAL(lowered.num_lanes, period / num_folded);
        int num_different = sim_count_differences(&c->program, &lowered, &timeline, &c->arena);
        CU_ASSERT_EQUAL(num_different, 0);
        if (num_different == 0) continue;
        fprintf(stderr, "\n%s pp %d vpp %d, %d micro-batches, fold %d of %d: %d differ\n", what,
                c->plan.pp, c->plan.vpp, (int)c->plan.num_microbatches, num_folded, period,
                num_different);
    }
}

static void every_instruction_runs_when_the_timeline_says(void) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const Schedule *schedule = schedule_find((ScheduleKind)kind);
        if (!schedule) continue;
        for (int pp = 1; pp <= 4; pp++) {
            for (int vpp = 1; vpp <= 3; vpp++) {
                for (int overlap = 0; overlap < 2; overlap++) {
                    if (!schedule_takes((ScheduleKind)kind, pp, vpp, 2 * pp)) continue;
                    PipelineCase c = case_new((ScheduleKind)kind, pp, vpp, 2 * pp);
                    c.scenario.execution.overlap_grad_reduce = overlap;
                    c.scenario.execution.overlap_param_gather = overlap;
                    c.scenario.execution.stack.communication.p2p_overlap = overlap;
                    if (pp % 2 == 0) sums_add(&c);
                    assert_agrees(&c, SCHEDULE_NAMES[schedule->kind]);
                    pipeline_free(&c);
                }
            }
        }
    }
}

static void so_do_passes_over_a_spread_vocabulary(void) {
    for (int i = 0; i < NUM_SCHEDULES * 3 * 2 * 2 * 2; i++) {
        const ScheduleKind kind = (ScheduleKind)(i % NUM_SCHEDULES);
        const int k = i / NUM_SCHEDULES, pp = 2 + k % 3, vpp = 1 + k / 3 % 2;
        const int num_microbatches = 2 * pp + (kind == SCHEDULE_DUALPIPE ? 2 : 1);
        if (!schedule_takes(kind, pp, vpp, num_microbatches)) continue;
        PipelineCase c = case_new(kind, pp, vpp, num_microbatches);
        c.plan.vocab_barriers = 1 + k / 6 % 2;
        c.scenario.execution.overlap_grad_reduce = k / 12;
        c.scenario.execution.overlap_param_gather = k / 12;
        assert_agrees(&c, SCHEDULE_NAMES[kind]);
        pipeline_free(&c);
    }
}

static void so_do_the_messages_of_tied_embeddings(void) {
    PipelineCase c = case_new(SCHEDULE_1F1B, 3, 1, 6);
    c.scenario.model.tie_word_embeddings = true;
    c.scenario.model.vocab_size = 100;
    c.scenario.model.hidden_size = 10;
    assert_agrees(&c, "tied");
    CU_ASSERT(c.program.embedding_message_bytes > 0);
    pipeline_free(&c);
}

// A collective of one stage alone.
static Lowered lower_collective(PipelineCase *c, const Cluster *cluster, int tp, int dp,
                                bool stepwise, int32_t *end) {
    *c = pipeline_new(SCHEDULE_1F1B, 1, 1, 1);
    c->plan.tp = tp;
    c->plan.dp = dp;
    c->plan.zero_stage = 0;
    c->chunks[0].dense_parameters = 25e9; // gradients of 100 GB
    pipeline_build(c, 0);
    Group group = plan_group(&c->plan, GROUP_DP);
    c->collective_s[0] = collective_s(machines_of(cluster), COLLECTIVE_ALL_REDUCE, group, 100e9);
    Lowered lowered = lower(c, cluster, 1, c->program.multiplicity, stepwise);
    int i = instruction_find(&c->program, 0, INSTRUCTION_COLLECTIVE, 0, -1);
    *end = lowered.end_node[0][i];
    return lowered;
}

// Ring all-reduce of 100 GB over 4 GPUs of a domain: 6 steps; each GPU passes on 2 x 3/4 x 100 GB
// at 50 GB/s: 3 s, and 1 ms + 6 x 0.1 ms of latency. It begins after forward and backward, 3 s.
static void a_ring_takes_what_its_formula_says(void) {
    for (int stepwise = 0; stepwise < 2; stepwise++) {
        PipelineCase c;
        Cluster cluster = sim_cluster(1);
        int32_t end;
        Lowered lowered = lower_collective(&c, &cluster, 1, 4, stepwise, &end);
        CU_ASSERT_DOUBLE_EQUAL(sim_ends(&lowered, &c.arena)[end], 3 + 3 + 1.6e-3, 1e-6);
        pipeline_free(&c);
    }
}

// 16 ranks in 2 domains, all of them on their own NIC: every rank sends 2 x 15/16 x 100 GB / 8 of
// the 8 channels through its NIC at 5 GB/s: 4.6875 s, which NVLink's 187.5 GB / 50 GB/s hides.
// Latency: 1 ms and 2 x (1 + 7) hops of a tree. So 1 flow a rank on a NIC, 1 on a port.
static void domains_are_crossed_once_per_channel(void) {
    for (int stepwise = 0; stepwise < 2; stepwise++) {
        PipelineCase c;
        Cluster cluster = sim_cluster(2);
        int32_t end;
        Lowered lowered = lower_collective(&c, &cluster, 1, 16, stepwise, &end);
        CU_ASSERT_DOUBLE_EQUAL(sim_ends(&lowered, &c.arena)[end], 3 + 4.6875 + 2.6e-3, 1e-6);
        double nic_bytes = 0;
        for (int i = 0; i < lowered.dag.num_nodes; i++) {
            const DagNode *node = &lowered.dag.nodes[i];
            if (node->route == NO_ROUTE) continue;
            const DagRoute *route = &lowered.dag.routes[node->route];
            if (route->share_bytes_per_s == 10e9) nic_bytes += node->bytes;
        }
        // What half the efficiency makes of 16 x 23.4375 GB.
        CU_ASSERT_DOUBLE_EQUAL(nic_bytes, 2 * 16 * 23.4375e9, 1e6);
        pipeline_free(&c);
    }
}

// 18 instructions on 2 ranks, 2^22 GPUs each.
static void too_much_is_refused(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 2, 1, 2);
    Cluster cluster = sim_cluster(1 << 20);
    pipeline_build(&c, 0);
    c.program.multiplicity = 1 << 22;
    LowerInput input = {&cluster, &c.plan, &c.program, &c.prices, NULL};
    Folding folding = {.num_folded = 1, .period = c.program.multiplicity};
    Lowered lowered;
    Status status = program_lower(&input, &folding, false, &c.arena, &lowered);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text,
                           "75497472 instructions on 8388608 simulated GPUs are too many to "
                           "simulate; at most 40000000 are possible");
    pipeline_free(&c);
}

CU_TestInfo lower_tests[] = {
    {"every_instruction_runs_when_the_timeline_says",
     every_instruction_runs_when_the_timeline_says},
    {"so_do_passes_over_a_spread_vocabulary", so_do_passes_over_a_spread_vocabulary},
    {"so_do_the_messages_of_tied_embeddings", so_do_the_messages_of_tied_embeddings},
    {"a_ring_takes_what_its_formula_says", a_ring_takes_what_its_formula_says},
    {"domains_are_crossed_once_per_channel", domains_are_crossed_once_per_channel},
    {"too_much_is_refused", too_much_is_refused},
    CU_TEST_INFO_NULL,
};
