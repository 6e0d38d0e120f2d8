// Steps one after the other, in which no rank waits for the others to begin.
#include "costmodel/step/estimate.h"

#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_TIME(is, expected) CU_ASSERT_DOUBLE_EQUAL(is, expected, 1e-9)

static Timeline steady_run(PipelineCase *c) {
    Timeline timeline = {0};
    Status status = timeline_run_steady(&c->program, &c->prices, true, &c->arena, &timeline);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    return timeline;
}

// --- Published bubble rates

// Qi et al. 2023, arXiv:2401.10241: milliseconds that were measured (table 9) and the share of a
// step that is idle, as the authors computed it from them (table 5).
typedef struct {
    int pp, num_microbatches;
    double forward, input, weight, message;
    double bubble_1f1b, bubble_zb_h1, bubble_zb_h2;
} PublishedBubbles;

static const PublishedBubbles PUBLISHED[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083},
    {32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421, 0.0641},
};

static double bubble_of(ScheduleKind kind, const PublishedBubbles *p) {
    PipelineCase c = pipeline_new(kind, p->pp, 1, p->num_microbatches);
    for (int r = 0; r < p->pp; r++) {
        c.forward[r] = price_of_compute(p->forward);
        c.backward[r] = price_of_compute(p->input + p->weight);
        c.backward_input[r] = price_of_compute(p->input);
        c.backward_weight[r] = price_of_compute(p->weight);
        c.message_s[r] = p->message;
    }
    pipeline_build(&c, 0);
    const double busy = p->num_microbatches * (p->forward + p->input + p->weight);
    const double bubble = 1 - busy / steady_run(&c).step_time_s;
    pipeline_free(&c);
    return bubble;
}

// To all digits, but for 1F1B: there messages block here, which costs up to 0.15 % of the step.
static void bubble_rates_are_those_published(void) {
    for (size_t i = 0; i < sizeof PUBLISHED / sizeof *PUBLISHED; i++) {
        const PublishedBubbles *p = &PUBLISHED[i];
        CU_ASSERT_DOUBLE_EQUAL(bubble_of(SCHEDULE_1F1B, p), p->bubble_1f1b, 2e-3);
        CU_ASSERT_DOUBLE_EQUAL(bubble_of(SCHEDULE_ZB_H1, p), p->bubble_zb_h1, 5e-5);
        CU_ASSERT_DOUBLE_EQUAL(bubble_of(SCHEDULE_ZB_H2, p), p->bubble_zb_h2, 5e-5);
    }
}

// --- Closed forms: F = B = W without messages

static double steady_bubble_s(ScheduleKind kind, int pp, int vpp, int num_microbatches) {
    PipelineCase c = pipeline_new(kind, pp, vpp, num_microbatches);
    pipeline_build(&c, 0);
    const double bubble_s = steady_run(&c).step_time_s - 3.0 * vpp * num_microbatches;
    pipeline_free(&c);
    return bubble_s;
}

// Qi et al. 2023, table 2: (p - 1) (F + B - W) = p - 1 of ZB-H1, (p - 1) (F + B - 2W) = 0 of
// ZB-H2 where there are micro-batches to fill it; section 6: none of ZB-V, of a unit a chunk.
static void zero_bubble_schedules_idle_as_published(void) {
    for (int pp = 2; pp <= 8; pp++)
        for (int m = 2 * pp - 1; m <= 3 * pp; m++) {
            ASSERT_TIME(steady_bubble_s(SCHEDULE_ZB_H1, pp, 1, m), pp - 1);
            ASSERT_TIME(steady_bubble_s(SCHEDULE_ZB_H2, pp, 1, m), 0);
            ASSERT_TIME(steady_bubble_s(SCHEDULE_ZB_V, pp, 2, m), 0);
        }
}

// When a rank's optimizer begins.
static double update_s(const PipelineCase *c, const Timeline *t, int rank) {
    const int index = instruction_find(&c->program, rank, INSTRUCTION_OPTIMIZER, -1, -1);
    CU_ASSERT_FATAL(index >= 0);
    return t->start_s[rank][index];
}

// The norm of the gradients comes from rank to rank: none would wait for it.
static void gradients_are_done_in_the_order_of_ranks(void) {
    static const ScheduleKind KINDS[] = {SCHEDULE_ZB_H1, SCHEDULE_ZB_H2, SCHEDULE_ZB_V};
    for (int k = 0; k < 3; k++)
        for (int pp = 2; pp <= 8; pp++) {
            PipelineCase c = pipeline_new(KINDS[k], pp, k == 2 ? 2 : 1, 3 * pp);
            pipeline_build(&c, 0);
            const Timeline t = steady_run(&c);
            for (int r = 1; r < pp; r++)
                CU_ASSERT(update_s(&c, &t, r - 1) <= update_s(&c, &t, r) + 1e-9);
            pipeline_free(&c);
        }
}

// Rank 0 of 1F1B has the first forward of a step and its last backward: nothing is gained.
static void one_f_one_b_gains_nothing(void) {
    for (int pp = 1; pp <= 6; pp++)
        ASSERT_TIME(steady_bubble_s(SCHEDULE_1F1B, pp, 1, 8), 3 * (pp - 1));
}

// --- Laws

static void check_laws(PipelineCase *c) {
    pipeline_build(c, 0.125);
    const Timeline together = pipeline_run(c), apart = steady_run(c);
    CU_ASSERT(apart.step_time_s <= together.step_time_s + 1e-9);
    double sum_s = 0, first_s = INFINITY;
    for (int t = 0; t < NUM_TERMS; t++) sum_s += apart.term_s[t];
    ASSERT_TIME(sum_s, apart.step_time_s);
    for (int r = 0; r < c->plan.pp; r++) {
        const RankProgram *rank = &c->program.ranks[r];
        double busy_s = 0;
        for (int i = 0; i < rank->num_instructions; i++) {
            if (rank->instructions[i].stream == STREAM_COMPUTE)
                busy_s += apart.end_s[r][i] - apart.start_s[r][i];
            first_s = fmin(first_s, apart.start_s[r][i]);
        }
        CU_ASSERT(busy_s <= apart.step_time_s + 1e-9);
    }
    CU_ASSERT(first_s >= 0);
    CU_ASSERT(apart.begin_s >= 0);
    c->scenario.execution.optimizer_post_validation = true;
    CU_ASSERT(estimate_lower_bound_s(&c->scenario, &c->plan, &c->workload, &c->prices) <=
              apart.step_time_s + 1e-9);
    pipeline_free(c);
}

static void steps_apart_are_no_longer_than_together(void) {
    for (int kind = 0; kind < SCHEDULE_FILE; kind++)
        for (int pp = 1; pp <= 6; pp++)
            for (int vpp = 1; vpp <= 2; vpp++) {
                if (!schedule_takes((ScheduleKind)kind, pp, vpp, 12)) continue;
                PipelineCase c = pipeline_new((ScheduleKind)kind, pp, vpp, 12);
                for (int chunk = 0; chunk < pp * vpp; chunk++)
                    c.forward[chunk] = price_of_compute(1 + 0.1 * (chunk * 7 % 5));
                for (int r = 0; r < pp; r++) c.message_s[r] = 0.05;
                c.optimizer_s[pp - 1] = 0.5;
                check_laws(&c);
            }
}

// Two ranks, ZB-H2, one of which takes twice as long: it never waits, and sets the pace.
//   rank 1: 4 x (2 + 2 + 2) = 24
static void a_slow_rank_sets_the_pace(void) {
    PipelineCase c = pipeline_new(SCHEDULE_ZB_H2, 2, 1, 4);
    c.forward[1] = c.backward_input[1] = c.backward_weight[1] = price_of_compute(2);
    pipeline_build(&c, 0);
    const Timeline t = steady_run(&c);
    ASSERT_TIME(t.step_time_s, 24);
    CU_ASSERT_EQUAL(t.slowest_rank, 1);
    ASSERT_TIME(t.term_s[TERM_BUBBLE], 0);
    pipeline_free(&c);
}

CU_TestInfo timeline_steady_tests[] = {
    {"bubble_rates_are_those_published", bubble_rates_are_those_published},
    {"zero_bubble_schedules_idle_as_published", zero_bubble_schedules_idle_as_published},
    {"gradients_are_done_in_the_order_of_ranks", gradients_are_done_in_the_order_of_ranks},
    {"one_f_one_b_gains_nothing", one_f_one_b_gains_nothing},
    {"steps_apart_are_no_longer_than_together", steps_apart_are_no_longer_than_together},
    {"a_slow_rank_sets_the_pace", a_slow_rank_sets_the_pace},
    CU_TEST_INFO_NULL,
};
