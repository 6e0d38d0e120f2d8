// A vocabulary spread over the pipeline ranks: collectives among them, and when they run.
#include "tests/workload/pipeline_case.h"
#include "workload/program_vocab.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_TIME(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9)

static const ScheduleKind KINDS[] = {
    SCHEDULE_GPIPE, SCHEDULE_1F1B,   SCHEDULE_ZB_H1, SCHEDULE_ZB_H2,
    SCHEDULE_ZB_V,  SCHEDULE_V_HALF, SCHEDULE_V_MIN, SCHEDULE_BREADTH_FIRST,
};
enum { NUM_KINDS = sizeof KINDS / sizeof *KINDS };

static PipelineCase spread_new(ScheduleKind kind, int pp, int num_microbatches, int barriers) {
    const bool one = schedule_takes(kind, pp, 1, num_microbatches);
    const int vpp = one && kind != SCHEDULE_BREADTH_FIRST ? 1 : 2;
    PipelineCase c = pipeline_new(kind, pp, vpp, num_microbatches);
    c.plan.vocab_barriers = barriers;
    return c;
}

// Index in a rank's list of a collective among the pipeline ranks; -1.
static int find(const Program *program, int rank, VocabCollective which, int microbatch) {
    const RankProgram *r = &program->ranks[rank];
    int found = -1;
    for (int i = 0; i < r->num_instructions; i++) {
        const Instruction *one = &r->instructions[i];
        if (one->kind != INSTRUCTION_COLLECTIVE || one->microbatch != microbatch) continue;
        if (one->collective - (program->num_collectives - NUM_VOCAB_COLLECTIVES) != (int)which)
            continue;
        CU_ASSERT_EQUAL(found, -1);
        found = i;
    }
    return found;
}

static double end_of(const PipelineCase *c, const Timeline *t, int rank, InstructionKind kind,
                     int chunk, int microbatch) {
    return t->end_s[rank][instruction_find(&c->program, rank, kind, chunk, microbatch)];
}

static double start_of(const PipelineCase *c, const Timeline *t, int rank, InstructionKind kind,
                       int chunk, int microbatch) {
    return t->start_s[rank][instruction_find(&c->program, rank, kind, chunk, microbatch)];
}

// What every micro-batch has to wait for, on all ranks.
static void check_microbatch(const PipelineCase *c, const Timeline *t, int m) {
    const int n = c->plan.num_chunks, last = plan_chunk_rank(&c->plan, n - 1);
    const bool one = c->plan.vocab_barriers == 1;
    const bool split = schedule_find(c->plan.schedule)->splits_backward;
    const InstructionKind back = split ? INSTRUCTION_BACKWARD_INPUT : INSTRUCTION_BACKWARD;
    const InstructionKind t_kind = one ? INSTRUCTION_BACKWARD_WEIGHT : INSTRUCTION_BACKWARD;
    const InstructionKind s_end = one ? INSTRUCTION_BACKWARD_INPUT : INSTRUCTION_FORWARD;
    const double forward_s = end_of(c, t, last, INSTRUCTION_FORWARD, n - 1, m);
    const double backward_s = end_of(c, t, 0, back, 0, m);
    const double begin_s = start_of(c, t, 0, INSTRUCTION_FORWARD, 0, m);
    const double turn_s = start_of(c, t, last, back, n - 1, m);
    for (int r = 0; r < c->plan.pp; r++) {
        const int lookup = find(&c->program, r, VOCAB_LOOKUP_SUM, m);
        const int statistics = find(&c->program, r, VOCAB_STATISTICS_SUM, m);
        const int gradient = find(&c->program, r, VOCAB_GRADIENT_SUM, m);
        CU_ASSERT_FATAL(lookup >= 0 && statistics >= 0 && gradient >= 0);
        CU_ASSERT(t->start_s[r][lookup] >=
                  end_of(c, t, r, INSTRUCTION_FORWARD, n + VOCAB_INPUT, m));
        CU_ASSERT(begin_s >= t->end_s[r][lookup]);
        CU_ASSERT(start_of(c, t, r, INSTRUCTION_FORWARD, n + VOCAB_OUTPUT, m) >=
                  forward_s + 0.5); // the broadcast
        CU_ASSERT(t->start_s[r][statistics] >= end_of(c, t, r, s_end, n + VOCAB_OUTPUT, m));
        CU_ASSERT(start_of(c, t, r, t_kind, n + VOCAB_OUTPUT, m) >= t->end_s[r][statistics]);
        CU_ASSERT(t->start_s[r][gradient] >= t->end_s[r][statistics]);
        CU_ASSERT(one || t->start_s[r][gradient] >= end_of(c, t, r, t_kind, n + VOCAB_OUTPUT, m));
        CU_ASSERT(turn_s >= t->end_s[r][gradient]);
        CU_ASSERT(start_of(c, t, r, INSTRUCTION_BACKWARD, n + VOCAB_INPUT, m) >= backward_s + 0.5);
        for (int which = 0; which < NUM_VOCAB_COLLECTIVES; which++) {
            const int own = find(&c->program, r, (VocabCollective)which, m);
            const int of_0 = find(&c->program, 0, (VocabCollective)which, m);
            CU_ASSERT_EQUAL(t->start_s[r][own], t->start_s[0][of_0]);
        }
    }
}

static void passes_wait_for_what_they_need(void) {
    for (int i = 0; i < NUM_KINDS * 4 * 9 * 2; i++) {
        PipelineCase c = spread_new(KINDS[i % NUM_KINDS], 2 + i / NUM_KINDS % 4,
                                    1 + i / NUM_KINDS / 4 % 9, 1 + i / NUM_KINDS / 36);
        for (int r = 0; r < c.plan.pp; r++) c.message_s[r] = 0.125;
        pipeline_build(&c, 0.5);
        const Timeline t = pipeline_run(&c);
        for (int m = 0; m < c.plan.num_microbatches; m++) check_microbatch(&c, &t, m);
        double sum = 0;
        for (int k = 0; k < NUM_TERMS; k++) sum += t.term_s[k];
        ASSERT_TIME(sum, t.step_time_s);
        pipeline_free(&c);
    }
}

// Two ranks, one micro-batch, one barrier; collectives 0.5 s. Lookups until 0.25, their sum until
// 0.75; forwards until 1.75 and 2.75, the broadcast until 3.25; S, two parts of 0.25, until 3.75;
// the statistics until 4.25, the gradient until 4.75, while T runs; backwards until 6.75 and 8.75,
// the broadcast until 9.25, the rows' gradient until 9.75.
static void one_micro_batch_by_hand(void) {
    PipelineCase c = spread_new(SCHEDULE_1F1B, 2, 1, 1);
    pipeline_build(&c, 0.5);
    const Timeline t = pipeline_run(&c);
    for (int r = 0; r < 2; r++) {
        ASSERT_TIME(end_of(&c, &t, r, INSTRUCTION_BACKWARD_INPUT, 3, 0), 3.75);
        ASSERT_TIME(end_of(&c, &t, r, INSTRUCTION_BACKWARD_WEIGHT, 3, 0), 4.5);
        ASSERT_TIME(t.start_s[r][find(&c.program, r, VOCAB_GRADIENT_SUM, 0)], 4.25);
    }
    ASSERT_TIME(start_of(&c, &t, 1, INSTRUCTION_BACKWARD, 1, 0), 4.75);
    ASSERT_TIME(t.step_time_s, 9.75);
    // A rank computes 0.25 + 1 + 3 x 0.25 + 2 + 0.5 s. Rank 0, which waits less for the other,
    // waits while the sum of the lookups, both broadcasts and the statistics move.
    CU_ASSERT_EQUAL(t.slowest_rank, 0);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], 4.5);
    ASSERT_TIME(t.term_s[TERM_PP], 4 * 0.5);
    ASSERT_TIME(t.term_s[TERM_DP], 0);
    pipeline_free(&c);
}

// With two barriers S is one part, until 3.5, and T, 0.5 s after the statistics' 0.5 s, is before
// the sum of the gradient, which ends at 5: 0.25 s later than above, and so is all else.
static void two_barriers_by_hand(void) {
    PipelineCase c = spread_new(SCHEDULE_1F1B, 2, 1, 2);
    pipeline_build(&c, 0.5);
    const Timeline t = pipeline_run(&c);
    ASSERT_TIME(end_of(&c, &t, 0, INSTRUCTION_FORWARD, 3, 0), 3.5);
    ASSERT_TIME(end_of(&c, &t, 0, INSTRUCTION_BACKWARD, 3, 0), 4.5);
    ASSERT_TIME(start_of(&c, &t, 1, INSTRUCTION_BACKWARD, 1, 0), 5);
    ASSERT_TIME(t.step_time_s, 10);
    pipeline_free(&c);
}

// As much work on every rank, and barriers that cost nothing but latency: with many micro-batches a
// step takes the work of one rank, 1 + 2 + 5 x 0.25 s a micro-batch, and what fills and drains.
static void passes_fit_into_one_f_one_b(void) {
    for (int barriers = 1; barriers <= 2; barriers++) {
        PipelineCase c = spread_new(SCHEDULE_1F1B, 4, 64, barriers);
        pipeline_build(&c, 0.01);
        const Timeline t = pipeline_run(&c);
        const double work_s = 64 * (3 + (barriers == 1 ? 0.25 + 0.5 + 0.75 : 0.75 + 0.75));
        CU_ASSERT(t.step_time_s > work_s);
        CU_ASSERT(t.step_time_s < 1.08 * work_s);
        pipeline_free(&c);
    }
}

CU_TestInfo program_vocab_tests[] = {
    {"passes_wait_for_what_they_need", passes_wait_for_what_they_need},
    {"one_micro_batch_by_hand", one_micro_batch_by_hand},
    {"two_barriers_by_hand", two_barriers_by_hand},
    {"passes_fit_into_one_f_one_b", passes_fit_into_one_f_one_b},
    CU_TEST_INFO_NULL,
};
