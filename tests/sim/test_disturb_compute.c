// Stragglers and jitter without SimGrid: along the critical path of the disturbed activities.
#include "sim/disturb_compute.h"
#include "tests/sim/sim_case.h"
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <math.h>

static const unsigned ALL_KINDS = (1u << NUM_DISTURB_KINDS) - 1;

// A pipeline lowered onto two nodes, with one entry of `disturb`.
typedef struct {
    PipelineCase c;
    Cluster cluster;
    LowerInput input;
    Lowered lowered;
} DisturbCase;

static void case_open(DisturbCase *d, int pp, int tp, int dp, int num_microbatches,
                      int num_folded) {
    *d = (DisturbCase){.c = pipeline_new(SCHEDULE_1F1B, pp, 1, num_microbatches)};
    d->c.plan.tp = tp;
    d->c.plan.dp = d->c.plan.zero_group = d->c.plan.expert_dp = dp;
    pipeline_build(&d->c, 0);
    d->c.program.multiplicity = d->c.program.block_gpus = tp * dp;
    d->cluster = sim_cluster(2);
    d->input = (LowerInput){&d->cluster, &d->c.plan, &d->c.program, &d->c.prices, NULL};
    Folding folding = {.num_folded = num_folded, .period = d->c.program.multiplicity};
    Status status = program_lower(&d->input, &folding, false, &d->c.arena, &d->lowered);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
}

static void disturb(DisturbCase *d, Disturb entry, int repetition) {
    computations_disturb(&d->input, &entry, 1, ALL_KINDS, repetition, &d->c.arena, &d->lowered);
}

static double step_s(DisturbCase *d) {
    double *end_s = ARENA_ARRAY(&d->c.arena, d->lowered.dag.num_nodes, double), last_s = 0;
    dag_critical_path(&d->lowered.dag, end_s);
    for (int i = 0; i < d->lowered.dag.num_nodes; i++) last_s = fmax(last_s, end_s[i]);
    return last_s;
}

static double step_with_slow_gpu(int pp, int tp, int dp, int num_folded, int gpu) {
    DisturbCase d;
    case_open(&d, pp, tp, dp, 4, num_folded);
    disturb(&d, (Disturb){.kind = DISTURB_SLOW_GPU, .gpu = gpu, .factor = 2}, 0);
    double time_s = step_s(&d);
    pipeline_free(&d.c);
    return time_s;
}

// F = 1 s, B = 2 s, 4 micro-batches, two stages: 15 s. With the last stage twice as slow it works
// without a pause from 1 s on, 4 x (2 + 4) s, and the last backward of the first takes 2 s: 27 s.
// With the first twice as slow that works all the time, 4 x (2 + 4) s, but for the 1 s in which
// its second forward (2 s) is done and the first backward of the other (1 + 2 s) is not: 25 s.
static void a_slow_stage_holds_up_the_pipeline(void) {
    CU_ASSERT_DOUBLE_EQUAL(step_with_slow_gpu(2, 1, 1, 1, 1), 27, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(step_with_slow_gpu(2, 1, 1, 1, 0), 25, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(step_with_slow_gpu(2, 1, 1, 1, 9), 15, 1e-12);
}

// tp 2, dp 2, two stages: GPUs 4 and 5 are a tensor-parallel group of the last stage. Its partner
// waits for the slow one, whichever of the two that is, folded or not; all wait for the replica.
static void its_tensor_parallel_peers_wait(void) {
    for (int num_folded = 1; num_folded <= 2; num_folded++) {
        for (int gpu = 4; gpu < 8; gpu++) {
            CU_ASSERT_DOUBLE_EQUAL(step_with_slow_gpu(2, 2, 2, num_folded, gpu), 27, 1e-12);
        }
    }
}

// 1.5 of 2 s of a forward are the GPU's own; the rest is waiting for messages: 0.5 + 2 x 1.5 s.
static void only_its_own_work_is_slower(void) {
    DisturbCase d;
    case_open(&d, 1, 1, 1, 1, 1);
    d.c.forward[0] = (Price){.time_s = 2};
    d.c.forward[0].term_s[TERM_COMPUTE] = 1.5;
    d.c.forward[0].term_s[TERM_TP] = 0.5;
    disturb(&d, (Disturb){.kind = DISTURB_SLOW_GPU, .factor = 2}, 0);
    int forward = instruction_find(&d.c.program, 0, INSTRUCTION_FORWARD, 0, 0);
    CU_ASSERT_DOUBLE_EQUAL(d.lowered.dag.nodes[d.lowered.begin_node[0][forward]].delay_s, 3.5,
                           1e-12);
    pipeline_free(&d.c);
}

static void no_spread_changes_no_bit(void) {
    DisturbCase plain, d;
    case_open(&plain, 2, 2, 2, 4, 1);
    case_open(&d, 2, 2, 2, 4, 1);
    disturb(&d, (Disturb){.kind = DISTURB_JITTER, .jitter_frac = 0, .seed = 1}, 3);
    for (int i = 0; i < d.lowered.dag.num_nodes; i++)
        CU_ASSERT(d.lowered.dag.nodes[i].delay_s == plain.lowered.dag.nodes[i].delay_s);
    pipeline_free(&plain.c);
    pipeline_free(&d.c);
}

static double jittered_step(int64_t seed, int repetition, int num_folded) {
    DisturbCase d;
    case_open(&d, 2, 2, 2, 8, num_folded);
    disturb(&d, (Disturb){.kind = DISTURB_JITTER, .jitter_frac = 0.1, .seed = seed}, repetition);
    double time_s = step_s(&d);
    pipeline_free(&d.c);
    return time_s;
}

static void a_draw_is_known_by_its_place(void) {
    CU_ASSERT(jittered_step(1, 0, 1) == jittered_step(1, 0, 1));
    CU_ASSERT(jittered_step(1, 0, 1) == jittered_step(1, 0, 2));
    CU_ASSERT(jittered_step(1, 0, 1) != jittered_step(2, 0, 1));
    CU_ASSERT(jittered_step(1, 0, 1) != jittered_step(1, 1, 1));
}

// What stands before it and is no jitter changes no draw; a second jitter of the same seed has its
// own.
static void a_draw_is_known_by_its_number_among_jitters(void) {
    const Disturb jitter = {.kind = DISTURB_JITTER, .jitter_frac = 0.1, .seed = 5};
    const Disturb after[] = {
        {.kind = DISTURB_SLOW_GPU, .factor = 1}, {.kind = DISTURB_FLAP, .down_frac = 0.1}, jitter};
    Disturb second = jitter;
    second.ordinal = 1;
    DisturbCase d;
    case_open(&d, 2, 2, 2, 8, 1);
    disturb(&d, jitter, 0);
    double alone_s = step_s(&d);
    computations_disturb(&d.input, after, 3, ALL_KINDS, 0, &d.c.arena, &d.lowered);
    CU_ASSERT_EQUAL(step_s(&d), alone_s);
    disturb(&d, second, 0);
    CU_ASSERT_NOT_EQUAL(step_s(&d), alone_s);
    pipeline_free(&d.c);
}

static double forward_s(const DisturbCase *d, int lane, int microbatch) {
    int i = instruction_find(&d->c.program, 0, INSTRUCTION_FORWARD, 0, microbatch);
    int slot = lane * d->c.program.ranks[0].num_instructions + i;
    return d->lowered.dag.nodes[d->lowered.begin_node[0][slot]].delay_s;
}

// The same four GPUs as four replicas and as two tensor-parallel pairs: the same draws, and a
// pair takes as long as the slower of its two.
static void a_group_takes_as_long_as_its_slowest(void) {
    Disturb jitter = {.kind = DISTURB_JITTER, .jitter_frac = 0.1, .seed = 5};
    DisturbCase alone, pairs;
    case_open(&alone, 1, 1, 4, 4, 1);
    case_open(&pairs, 1, 2, 2, 4, 1);
    disturb(&alone, jitter, 0);
    disturb(&pairs, jitter, 0);
    for (int microbatch = 0; microbatch < 4; microbatch++) {
        for (int lane = 0; lane < 4; lane++) {
            int first = lane / 2 * 2;
            CU_ASSERT(forward_s(&pairs, lane, microbatch) ==
                      fmax(forward_s(&alone, first, microbatch),
                           forward_s(&alone, first + 1, microbatch)));
        }
    }
    pipeline_free(&alone.c);
    pipeline_free(&pairs.c);
}

// 4 x 1,000 forwards of 1 s with a spread of 0.1: mean and spread within 4 standard errors
// (0.1 / sqrt(n) and, near the normal distribution, 0.1 / sqrt(2 n)).
static void jitter_has_its_mean_and_spread(void) {
    enum { NUM_MICROBATCHES = 1000, NUM_DRAWS = 4 * NUM_MICROBATCHES };
    DisturbCase d;
    case_open(&d, 1, 1, 4, NUM_MICROBATCHES, 1);
    disturb(&d, (Disturb){.kind = DISTURB_JITTER, .jitter_frac = 0.1, .seed = 11}, 0);
    double sum = 0, square_sum = 0;
    for (int i = 0; i < NUM_DRAWS; i++) {
        double time_s = forward_s(&d, i % 4, i / 4);
        sum += time_s;
        square_sum += (time_s - 1) * (time_s - 1);
    }
    CU_ASSERT_DOUBLE_EQUAL(sum / NUM_DRAWS, 1, 4 * 0.1 / sqrt(NUM_DRAWS));
    CU_ASSERT_DOUBLE_EQUAL(sqrt(square_sum / NUM_DRAWS), 0.1, 4 * 0.1 / sqrt(2.0 * NUM_DRAWS));
    pipeline_free(&d.c);
}

CU_TestInfo disturb_compute_tests[] = {
    {"a_slow_stage_holds_up_the_pipeline", a_slow_stage_holds_up_the_pipeline},
    {"its_tensor_parallel_peers_wait", its_tensor_parallel_peers_wait},
    {"only_its_own_work_is_slower", only_its_own_work_is_slower},
    {"no_spread_changes_no_bit", no_spread_changes_no_bit},
    {"a_draw_is_known_by_its_place", a_draw_is_known_by_its_place},
    {"a_draw_is_known_by_its_number_among_jitters", a_draw_is_known_by_its_number_among_jitters},
    {"a_group_takes_as_long_as_its_slowest", a_group_takes_as_long_as_its_slowest},
    {"jitter_has_its_mean_and_spread", jitter_has_its_mean_and_spread},
    CU_TEST_INFO_NULL,
};
