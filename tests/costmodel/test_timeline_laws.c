// Laws of timelines over a grid of programs.
#include "costmodel/step/estimate.h"
#include "costmodel/step/timeline.h"

#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_TIME(actual, expected) CU_ASSERT_DOUBLE_EQUAL((actual), (expected), 1e-12)

static double terms_sum(const Timeline *timeline) {
    double sum = 0;
    for (int t = 0; t < NUM_TERMS; t++) sum += timeline->term_s[t];
    return sum;
}

// Every Program of a grid: all schedules, messages blocking and overlapped.
static void for_all_programs(void (*check)(PipelineCase *c)) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++)
        for (int pp = 1; pp <= 16; pp = pp == 8 ? 16 : pp + 1)
            for (int vpp = 1; vpp <= 4; vpp++)
                for (int m = 1; m <= 40; m++)
                    for (int overlap = 0; overlap < 2; overlap++) {
                        if (!schedule_takes((ScheduleKind)kind, pp, vpp, m)) continue;
                        PipelineCase c = pipeline_new((ScheduleKind)kind, pp, vpp, m);
                        c.scenario.execution.stack.communication.p2p_overlap = overlap;
                        check(&c);
                        pipeline_free(&c);
                    }
}

static double bound_s(const PipelineCase *c) {
    return estimate_lower_bound_s(&c->scenario, &c->plan, &c->workload, &c->prices);
}

// Also where messages block and only pairs are exchanged: ranks meet where the schedule has them
// meet anyway. Those of split backwards never block.
static void check_closed_form(PipelineCase *c) {
    pipeline_build(c, 0);
    Timeline t = pipeline_run(c);
    const ScheduleShape shape =
        schedule_shape(c->plan.pp, c->plan.vpp, (int)c->plan.num_microbatches);
    const double busy_s = 3.0 * shape.vpp * (double)plan_chunk_microbatches(&c->plan);
    const double stated = schedule_find(c->plan.schedule)->bubble_frac(&shape);
    ASSERT_TIME(terms_sum(&t), t.step_time_s);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], busy_s);
    if (plan_is_v(&c->plan)) {
        if (shape.num_microbatches > shape.pp) ASSERT_TIME(t.term_s[TERM_BUBBLE] / busy_s, stated);
        return;
    }
    CU_ASSERT(t.term_s[TERM_BUBBLE] / busy_s <= stated + 1e-12);
    const bool exact = c->plan.schedule != SCHEDULE_INTERLEAVED || shape.vpp == 1 ||
                       shape.pp == 1 || shape.num_microbatches < shape.pp ||
                       shape.num_microbatches % shape.pp == 0;
    if (exact) ASSERT_TIME(t.term_s[TERM_BUBBLE] / busy_s, stated);
    // On equal stages the planner's bound is what the step takes.
    if (shape.vpp == 1 && shape.num_microbatches >= shape.pp)
        ASSERT_TIME(bound_s(c), t.step_time_s);
}

static void bubble_is_the_closed_form(void) {
    for_all_programs(check_closed_form);
}

// A small generator of its own, so that every machine tests the same numbers.
static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 33) / (double)(1u << 31);
}

// Unequal chunks and boundaries, gradients reduced and weights gathered in pieces.
static void scramble(PipelineCase *c, uint64_t seed) {
    uint64_t state = seed;
    for (int i = 0; i < c->plan.num_chunks; i++) {
        c->forward[i] = price_of_compute(0.5 + uniform(&state));
        c->backward[i] = price_of_compute(1 + 2 * uniform(&state));
        const double input_s = c->backward[i].time_s * (0.2 + 0.6 * uniform(&state));
        c->backward_input[i] = price_of_compute(input_s);
        c->backward_weight[i] = price_of_compute(c->backward[i].time_s - input_s);
        c->chunks[i].num_layers = 3;
    }
    for (int r = 0; r < c->plan.pp; r++) {
        c->message_alpha_s[r] = 0.1 * uniform(&state);
        c->message_s[r] = c->message_alpha_s[r] + 0.5 * uniform(&state);
        c->optimizer_s[r] = uniform(&state);
        c->copies_alpha_s[r] = c->message_alpha_s[r];
        c->copies_s[r] = c->message_s[r];
    }
    Execution *execution = &c->scenario.execution;
    execution->overlap_grad_reduce = uniform(&state) < 0.5;
    execution->overlap_param_gather = uniform(&state) < 0.5;
    execution->stack.training.bucket_bytes = 1500;
    c->scenario.model.tie_word_embeddings = uniform(&state) < 0.5;
    c->scenario.model.vocab_size = c->scenario.model.hidden_size = 2;
    c->plan.dp = c->plan.zero_group = 2;
    c->prices.step_s = 0.125;
    pipeline_build(c, 0.25);
}

// Waits are over before a start, a stream does one thing at a time, both ends of a message see it
// move at the same time.
static void check_order(const PipelineCase *c, const Timeline *t, int rank) {
    const RankProgram *r = &c->program.ranks[rank];
    double free_s[NUM_STREAMS] = {0};
    for (int k = 0; k < r->num_instructions; k++) {
        const Instruction *i = &r->instructions[k];
        const double start_s = t->start_s[rank][k], end_s = t->end_s[rank][k];
        CU_ASSERT(start_s >= 0 && end_s >= start_s && end_s <= t->step_time_s);
        for (int w = 0; w < 2; w++)
            if (i->waits[w] >= 0) CU_ASSERT(start_s >= t->end_s[rank][i->waits[w]]);
        if (i->match >= 0) CU_ASSERT_EQUAL(start_s, t->start_s[i->peer][i->match]);
        if (i->stream == STREAM_PP) continue;
        CU_ASSERT(start_s >= free_s[i->stream]);
        free_s[i->stream] = end_s;
    }
}

static void check_laws(PipelineCase *c) {
    scramble(c, 1 + (uint64_t)(c->plan.pp + 10 * c->plan.vpp) +
                    100 * (uint64_t)c->plan.num_microbatches);
    Timeline t = pipeline_run(c);
    for (int r = 0; r < c->plan.pp; r++) check_order(c, &t, r);
    CU_ASSERT_DOUBLE_EQUAL(terms_sum(&t), t.step_time_s, 1e-12 * t.step_time_s);
    for (int k = 0; k < NUM_TERMS; k++) CU_ASSERT(t.term_s[k] >= 0);

    double busy_s = 0; // of the busiest rank
    for (int r = 0; r < c->plan.pp; r++) {
        double rank_s = c->optimizer_s[r] + c->prices.step_s;
        for (int k = 0; k < c->plan.vpp; k++) {
            const int chunk = plan_rank_chunk(&c->plan, r, k);
            rank_s += (c->forward[chunk].time_s + c->backward[chunk].time_s) *
                      (double)plan_chunk_microbatches(&c->plan);
        }
        busy_s = fmax(busy_s, rank_s);
    }
    CU_ASSERT(t.step_time_s >= busy_s * (1 - 1e-12));
    CU_ASSERT(t.step_time_s >= bound_s(c) * (1 - 1e-12));

    Timeline again = pipeline_run(c);
    CU_ASSERT_EQUAL(again.step_time_s, t.step_time_s);
    CU_ASSERT_EQUAL(memcmp(again.term_s, t.term_s, sizeof t.term_s), 0);

    for (int r = 0; r < c->plan.pp; r++) c->message_s[r] *= 0.7, c->message_alpha_s[r] *= 0.7;
    CU_ASSERT(pipeline_run(c).step_time_s <= t.step_time_s * (1 + 1e-12));
    for (int k = 0; k < c->program.num_collectives; k++) c->collective_s[k] *= 0.7;
    CU_ASSERT(pipeline_run(c).step_time_s <= t.step_time_s * (1 + 1e-12));
}

static void timelines_obey_their_laws(void) {
    for_all_programs(check_laws);
}

CU_TestInfo timeline_laws_tests[] = {
    {"bubble_is_the_closed_form", bubble_is_the_closed_form},
    {"timelines_obey_their_laws", timelines_obey_their_laws},
    CU_TEST_INFO_NULL,
};
