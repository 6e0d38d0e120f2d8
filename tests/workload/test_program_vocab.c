// A vocabulary spread over the pipeline ranks: collectives among them, and when they run.
#include "tests/workload/pipeline_case.h"
#include "workload/step/program_vocab.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_TIME(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9)

static PipelineCase spread_new(ScheduleKind kind, int pp, int vpp, int num_microbatches,
                               int barriers) {
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

// How a backward stands in the Program: whole, or its input part.
static InstructionKind back_kind(const PipelineCase *c, int rank, int chunk, int microbatch) {
    const InstructionKind kind = INSTRUCTION_BACKWARD;
    const bool whole = instruction_find(&c->program, rank, kind, chunk, microbatch) >= 0;
    return whole ? kind : INSTRUCTION_BACKWARD_INPUT;
}

// What every micro-batch has to wait for, on all ranks.
static void check_microbatch(const PipelineCase *c, const Timeline *t, int m) {
    const int n = c->plan.num_chunks, num_stages = plan_num_stages(&c->plan);
    const int first_chunk = m / (int)plan_chunk_microbatches(&c->plan) * num_stages;
    const int last_chunk = first_chunk + num_stages - 1;
    const int first = plan_chunk_rank(&c->plan, first_chunk);
    const int last = plan_chunk_rank(&c->plan, last_chunk);
    const bool one = c->plan.vocab_barriers == 1;
    const InstructionKind t_kind = one ? INSTRUCTION_BACKWARD_WEIGHT : INSTRUCTION_BACKWARD;
    const InstructionKind s_end = one ? INSTRUCTION_BACKWARD_INPUT : INSTRUCTION_FORWARD;
    const double forward_s = end_of(c, t, last, INSTRUCTION_FORWARD, last_chunk, m);
    const double backward_s =
        end_of(c, t, first, back_kind(c, first, first_chunk, m), first_chunk, m);
    const double begin_s = start_of(c, t, first, INSTRUCTION_FORWARD, first_chunk, m);
    const double turn_s = start_of(c, t, last, back_kind(c, last, last_chunk, m), last_chunk, m);
    // A forward that runs beside the backward waits for the same gradient.
    const Instruction *list = c->program.ranks[last].instructions;
    const int turn =
        instruction_find(&c->program, last, back_kind(c, last, last_chunk, m), last_chunk, m);
    if (list[turn - 1].kind == INSTRUCTION_FORWARD)
        CU_ASSERT_EQUAL(list[turn - 1].waits[1], list[turn].waits[0]);
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

static void check_passes(PipelineCase *c) {
    for (int r = 0; r < c->plan.pp; r++) c->message_s[r] = 0.125;
    pipeline_build(c, 0.5);
    const Timeline t = pipeline_run(c);
    for (int m = 0; m < c->plan.num_microbatches; m++) check_microbatch(c, &t, m);
    double sum = 0;
    for (int k = 0; k < NUM_TERMS; k++) sum += t.term_s[k];
    ASSERT_TIME(sum, t.step_time_s);
}

// Every schedule, with up to 3 chunks a rank where it takes them.
static void for_all_cases(void (*check)(PipelineCase *c)) {
    int num_cases[NUM_SCHEDULES] = {0};
    for (int i = 0; i < NUM_SCHEDULES * 3 * 5 * 12 * 2; i++) {
        const ScheduleKind kind = (ScheduleKind)(i % NUM_SCHEDULES);
        const int k = i / NUM_SCHEDULES, vpp = 1 + k % 3, pp = 2 + k / 3 % 5, m = 1 + k / 15 % 12;
        if (!schedule_takes(kind, pp, vpp, m)) continue;
        PipelineCase c = spread_new(kind, pp, vpp, m, 1 + k / 180);
        check(&c);
        pipeline_free(&c);
        num_cases[kind]++;
    }
    for (int kind = 0; kind < NUM_SCHEDULES; kind++)
        CU_ASSERT(!schedule_find((ScheduleKind)kind) || num_cases[kind] >= 18);
}

static void passes_wait_for_what_they_need(void) {
    for_all_cases(check_passes);
}

// Whether bubble_frac is stated to hold with passes that take no time, and not only as a bound.
static bool states_bubble(const Schedule *schedule, const ScheduleShape *shape) {
    const int pp = shape->pp, m = shape->num_microbatches;
    const ScheduleKind kind = schedule->kind;
    if (plan_is_v(&(Plan){.schedule = kind, .pp = pp})) return false;
    if (kind == SCHEDULE_ZB_H1 || kind == SCHEDULE_ZB_H2) return m >= 2 * pp;
    return kind == SCHEDULE_DUALPIPE || m % pp == 0 || m < pp;
}

static void check_bubble(PipelineCase *c) {
    const Schedule *schedule = schedule_find(c->plan.schedule);
    ScheduleShape shape = schedule_shape(c->plan.pp, c->plan.vpp, (int)c->plan.num_microbatches);
    shape.vocab.barriers = c->plan.vocab_barriers;
    if (!states_bubble(schedule, &shape)) return;
    for (int v = 0; v < NUM_VOCAB_CHUNKS; v++) {
        const int chunk = c->plan.num_chunks + v;
        c->forward[chunk] = c->backward[chunk] = price_of_compute(0);
        c->backward_input[chunk] = c->backward_weight[chunk] = price_of_compute(0);
    }
    pipeline_build(c, 0);
    const double busy_s = 3.0 * c->plan.vpp * (double)plan_chunk_microbatches(&c->plan);
    ASSERT_TIME(pipeline_run(c).step_time_s, busy_s * (1 + schedule->bubble_frac(&shape)));
}

static void bubble_is_the_closed_form_where_passes_take_no_time(void) {
    for_all_cases(check_bubble);
    for (int i = 0; i < 5 * 4 * 2; i++) { // more ranks of DualPipe
        const int pp = 8 + 2 * (i % 5), m = 2 * pp + 2 * (i / 5 % 4);
        PipelineCase c = spread_new(SCHEDULE_DUALPIPE, pp, 2, m, 1 + i / 20);
        check_bubble(&c);
        pipeline_free(&c);
    }
}

// The rows of the vocabulary serve both of two pipelines: their gradients are whole after all
// micro-batches, those of a chunk after half of them.
static void gradients_of_the_rows_are_reduced_once(void) {
    PipelineCase c = spread_new(SCHEDULE_DUALPIPE, 4, 2, 8, 1);
    c.plan.dp = c.plan.zero_group = 2;
    c.scenario.execution.overlap_grad_reduce = true;
    for (int v = 0; v < NUM_VOCAB_CHUNKS; v++)
        c.chunks[c.plan.num_chunks + v] = (Chunk){.dense_parameters = 500};
    pipeline_build(&c, 0);
    for (int r = 0; r < 4; r++) {
        const RankProgram *rank = &c.program.ranks[r];
        int num[2 * 4 + NUM_VOCAB_CHUNKS] = {0};
        for (int i = 0; i < rank->num_instructions; i++) {
            const Instruction *one = &rank->instructions[i];
            if (one->kind != INSTRUCTION_COLLECTIVE || one->phase == PHASE_FORWARD) continue;
            if (one->chunk < 0) continue;
            num[one->chunk]++;
            const int m = rank->instructions[one->waits[0]].microbatch;
            CU_ASSERT_EQUAL(m % 4, 3);
            if (one->chunk >= 8) CU_ASSERT_EQUAL(m, 7);
        }
        for (int chunk = 0; chunk < 8 + NUM_VOCAB_CHUNKS; chunk++)
            CU_ASSERT_EQUAL(num[chunk], chunk >= 8 || plan_chunk_rank(&c.plan, chunk) == r);
    }
    pipeline_free(&c);
}

// Two ranks, one micro-batch, one barrier; collectives 0.5 s. Lookups until 0.25, their sum until
// 0.75; forwards until 1.75 and 2.75, the broadcast until 3.25; S, two parts of 0.25, until 3.75;
// the statistics until 4.25, the gradient until 4.75, while T runs; backwards until 6.75 and 8.75,
// the broadcast until 9.25, the rows' gradient until 9.75.
static void one_micro_batch_by_hand(void) {
    PipelineCase c = spread_new(SCHEDULE_1F1B, 2, 1, 1, 1);
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
    PipelineCase c = spread_new(SCHEDULE_1F1B, 2, 1, 1, 2);
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
        PipelineCase c = spread_new(SCHEDULE_1F1B, 4, 1, 64, barriers);
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
    {"bubble_is_the_closed_form_where_passes_take_no_time",
     bubble_is_the_closed_form_where_passes_take_no_time},
    {"gradients_of_the_rows_are_reduced_once", gradients_of_the_rows_are_reduced_once},
    {"one_micro_batch_by_hand", one_micro_batch_by_hand},
    {"two_barriers_by_hand", two_barriers_by_hand},
    {"passes_fit_into_one_f_one_b", passes_fit_into_one_f_one_b},
    CU_TEST_INFO_NULL,
};
