// Laws over a grid of schedules and shapes: every computation and message is there once, both ends
// of a message agree, and whatever needs a message waits for it.
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

static bool is_message(const Instruction *i) {
    return i->kind == INSTRUCTION_SEND || i->kind == INSTRUCTION_RECV;
}

static bool is_compute(const Instruction *i) {
    return i->kind <= INSTRUCTION_BACKWARD_WEIGHT;
}

static void check_message(const Program *program, int rank, int index) {
    const Instruction *i = &program->ranks[rank].instructions[index];
    CU_ASSERT_FATAL(i->peer >= 0 && i->peer < program->num_ranks && i->peer != rank);
    const RankProgram *peer = &program->ranks[i->peer];
    CU_ASSERT_FATAL(i->match >= 0 && i->match < peer->num_instructions);
    const Instruction *other = &peer->instructions[i->match];
    CU_ASSERT(other->kind == (i->kind == INSTRUCTION_SEND ? INSTRUCTION_RECV : INSTRUCTION_SEND));
    CU_ASSERT(other->match == index && other->peer == rank);
    CU_ASSERT(other->microbatch == i->microbatch && other->phase == i->phase);
    CU_ASSERT((other->p2p_group < 0) == (i->p2p_group < 0));
    CU_ASSERT(other->copies == i->copies && other->embedding == i->embedding);
    const int step = i->phase == PHASE_FORWARD ? 1 : -1;
    if (!i->embedding && !i->copies && i->kind == INSTRUCTION_SEND)
        CU_ASSERT_EQUAL(other->chunk, i->chunk + step);
}

// Whether an instruction waits for a message, or for one of its group.
static bool waits_for(const Instruction *list, const Instruction *i, int message) {
    for (int w = 0; w < 2; w++) {
        const int wait = i->waits[w];
        if (wait == message) return true;
        if (wait >= 0 && list[message].p2p_group >= 0 &&
            list[wait].p2p_group == list[message].p2p_group)
            return true;
    }
    return false;
}

// Whether a chunk is the first (last) of its model; of dual pipelines there are two.
static bool is_first(const PipelineCase *c, int chunk) {
    return chunk % plan_num_stages(&c->plan) == 0;
}

static bool is_last(const PipelineCase *c, int chunk) {
    return (chunk + 1) % plan_num_stages(&c->plan) == 0;
}

// Whether a chunk runs a micro-batch: those of dual pipelines half of them.
static bool runs_microbatch(const PipelineCase *c, int chunk, int microbatch) {
    const bool early = microbatch < c->plan.num_microbatches / 2;
    return !plan_is_dual(&c->plan) || early == (chunk < c->plan.pp);
}

// Whether chunk and the next are on different ranks.
static bool crosses(const PipelineCase *c, int chunk) {
    return plan_chunk_rank(&c->plan, chunk) != plan_chunk_rank(&c->plan, chunk + 1);
}

// A computation in the first chunk (forward) or the last (backward) needs no message; the first
// piece of any other waits for one, and what it makes is sent after its last piece. Weight parts
// have none.
static void check_compute(const PipelineCase *c, int rank, int index) {
    const Instruction *list = c->program.ranks[rank].instructions, *i = &list[index];
    const bool forward = i->kind == INSTRUCTION_FORWARD;
    const int phase = forward ? PHASE_FORWARD : PHASE_BACKWARD_INPUT;
    int recv = -1, send = -1;
    for (int k = 0; k < c->program.ranks[rank].num_instructions; k++) {
        if (!is_message(&list[k]) || list[k].phase != phase) continue;
        if (list[k].embedding || list[k].copies) continue;
        if (list[k].chunk != i->chunk || list[k].microbatch != i->microbatch) continue;
        CU_ASSERT_EQUAL(list[k].kind == INSTRUCTION_SEND ? send : recv, -1);
        *(list[k].kind == INSTRUCTION_SEND ? &send : &recv) = k;
    }
    CU_ASSERT_EQUAL(recv < 0, (forward ? is_first(c, i->chunk) : is_last(c, i->chunk)) ||
                                  !crosses(c, forward ? i->chunk - 1 : i->chunk));
    CU_ASSERT_EQUAL(send < 0, (forward ? is_last(c, i->chunk) : is_first(c, i->chunk)) ||
                                  !crosses(c, forward ? i->chunk : i->chunk - 1));
    if (recv >= 0 && i->part == 0) CU_ASSERT(recv < index && waits_for(list, i, recv));
    if (send >= 0) CU_ASSERT(send > index && list[send].waits[0] >= index);
}

static void check_rank(const PipelineCase *c, int rank) {
    const RankProgram *r = &c->program.ranks[rank];
    const int num_cells = c->plan.num_chunks * (int)c->plan.num_microbatches;
    int num_optimizers = 0, last_group = -1;
    const Schedule *schedule = schedule_find(c->plan.schedule);
    Arena arena = {0};
    double *done[4];
    for (int k = 0; k < 4; k++) done[k] = ARENA_ARRAY(&arena, num_cells, double);
    for (int k = 0; k < r->num_instructions; k++) {
        const Instruction *i = &r->instructions[k];
        for (int w = 0; w < 2; w++) CU_ASSERT(i->waits[w] >= -1 && i->waits[w] < k);
        if (is_message(i)) check_message(&c->program, rank, k);
        // The messages of a group stand together, and groups are numbered in their order.
        if (i->p2p_group >= 0 && i->p2p_group != last_group)
            CU_ASSERT_EQUAL(i->p2p_group, ++last_group);
        if (is_compute(i)) {
            if (i->kind != INSTRUCTION_BACKWARD_WEIGHT) check_compute(c, rank, k);
            CU_ASSERT_EQUAL(plan_chunk_rank(&c->plan, i->chunk), rank);
            done[i->kind][i->chunk * c->plan.num_microbatches + i->microbatch] +=
                1.0 / i->num_parts;
        }
        num_optimizers += i->kind == INSTRUCTION_OPTIMIZER;
    }
    CU_ASSERT_EQUAL(num_optimizers, 1);
    for (int k = 0; k < 4; k++)
        for (int cell = 0; cell < num_cells; cell++) {
            const int chunk = cell / (int)c->plan.num_microbatches;
            const bool own = plan_chunk_rank(&c->plan, chunk) == rank &&
                             runs_microbatch(c, chunk, cell % (int)c->plan.num_microbatches);
            bool runs = k == INSTRUCTION_FORWARD;
            if (schedule->mixes_backwards && !runs) // whole, or in two parts
                runs = (done[INSTRUCTION_BACKWARD][cell] < 0.5) == (k != INSTRUCTION_BACKWARD);
            else if (!runs)
                runs = schedule->splits_backward == (k != INSTRUCTION_BACKWARD);
            CU_ASSERT_DOUBLE_EQUAL(done[k][cell], own && runs ? 1 : 0, 1e-12);
        }
    arena_free(&arena);
}

// Bytes of messages a rank sends (or receives).
static double bytes_of(const Program *program, int rank, InstructionKind kind) {
    double bytes = 0;
    for (int k = 0; k < program->ranks[rank].num_instructions; k++) {
        const Instruction *i = &program->ranks[rank].instructions[k];
        if (i->kind == kind) bytes += program_message_bytes(program, i);
    }
    return bytes;
}

static void check_program(PipelineCase *c) {
    double sent = 0, received = 0;
    for (int r = 0; r < c->plan.pp; r++) {
        check_rank(c, r);
        sent += bytes_of(&c->program, r, INSTRUCTION_SEND);
        received += bytes_of(&c->program, r, INSTRUCTION_RECV);
    }
    CU_ASSERT_EQUAL(sent, received);
    // Forward and backward over each boundary between chunks on different ranks, 8 bytes each; and
    // the embedding's gradients both ways; and of each of two copies 1,000 parameters' gradients, 4
    // bytes each, half of them on each of the two data-parallel ranks.
    const int last = c->plan.num_chunks - 1;
    int boundaries = 0;
    for (int chunk = 0; chunk < last; chunk++) boundaries += crosses(c, chunk);
    const double copies = plan_is_dual(&c->plan) ? 2000.0 * c->plan.num_chunks : 0;
    const bool apart = plan_chunk_rank(&c->plan, 0) != plan_chunk_rank(&c->plan, last);
    const double tied = apart ? 2 * c->program.embedding_message_bytes : 0;
    CU_ASSERT_EQUAL(sent,
                    16 * boundaries * (double)plan_chunk_microbatches(&c->plan) + tied + copies);
}

static void programs_are_complete_and_consistent(void) {
    static const int MICROBATCHES[] = {1, 2, 3, 4, 7, 8, 9, 12};
    for (int shape = 0; shape < NUM_SCHEDULES * 288; shape++) {
        const ScheduleKind kind = (ScheduleKind)(shape / 288);
        const int pp = 1 + shape % 6, vpp = 1 + shape / 6 % 3;
        const bool overlap = shape / 144 % 2;
        const int num_microbatches = MICROBATCHES[shape / 18 % 8];
        if (!schedule_takes(kind, pp, vpp, num_microbatches)) continue;
        PipelineCase c = pipeline_new(kind, pp, vpp, num_microbatches);
        Execution *execution = &c.scenario.execution;
        execution->overlap_grad_reduce = execution->overlap_param_gather = overlap;
        execution->stack.communication.p2p_overlap = overlap;
        execution->stack.training.bucket_bytes = 1500;
        c.scenario.model.tie_word_embeddings = true;
        c.scenario.model.vocab_size = c.scenario.model.hidden_size = 10;
        c.plan.dp = c.plan.zero_group = 2;
        for (int k = 0; k < pp * vpp; k++) c.chunks[k].num_layers = 3;
        pipeline_build(&c, 0);
        check_program(&c);
        pipeline_free(&c);
    }
}

CU_TestInfo program_laws_tests[] = {
    {"programs_are_complete_and_consistent", programs_are_complete_and_consistent},
    CU_TEST_INFO_NULL,
};
