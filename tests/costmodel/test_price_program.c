// Messages, pieces and collectives of a Program.
#include "costmodel/network/collective.h"
#include "costmodel/pass/price.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"
#define WITH(switch) "{\"seq_len\": 2048, \"global_batch\": 64, " switch "}"

static Prices prices_of(Case *c) {
    return chunks_price(&c->scenario, &c->plan, &c->workload, &c->arena);
}

// Stages of 4 GPUs: ranks 0 and 1 lie in one node, 1 and 2 do not. 2048 x 1024 numbers of 2 bytes,
// split by tp 2: 2.097152e6 bytes at 1e11 or 1e10 B/s.
static void messages_know_their_way(void) {
    Case c;
    if (case_make(&c, "\"llama-3.2-1b\"", 16, TRAINING, "{\"tp\": 4, \"pp\": 4}")) {
        const Prices prices = prices_of(&c);
        const double bytes = 2048.0 * 2048 * 2 / 4;
        ASSERT_CLOSE(prices.message_s[0], 2e-6 + bytes / 1e11);
        ASSERT_CLOSE(prices.message_s[1], 2e-5 + bytes / 1e10);
        ASSERT_CLOSE(prices.message_s[2], 2e-6 + bytes / 1e11);
        ASSERT_CLOSE(prices.message_s[3], 2e-5 + bytes / 1e10); // back to the first
        CU_ASSERT_EQUAL(prices.message_alpha_s[0], 2e-6);
        CU_ASSERT_EQUAL(prices.message_alpha_s[1], 2e-5);
    }
    case_free(&c);
}

// Stages of 6 GPUs: the first of the second stage lies in the node of the first, the last does not.
static void messages_are_as_slow_as_their_slowest(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 12, "{\"seq_len\": 2048, \"global_batch\": 60}", "{\"pp\": 2}"))
        CU_ASSERT_EQUAL(prices_of(&c).message_alpha_s[0], 2e-5);
    case_free(&c);
}

// Stages of tp 4 without sequence parallelism: each rank sends a quarter of 2048 x 1024 numbers of
// 2 bytes, to the other half of its node or (every second stage) to another node. There all of it
// is gathered inside a node: 1e-5 s, 3 hops of 1e-6 s and 3/4 of the bytes at 1e11 B/s.
static void scattered_messages_are_gathered(void) {
    const double bytes = 2048.0 * 1024 * 2, gather_s = 1e-5 + 3e-6 + 0.75 * bytes / 1e11;
    Case c;
    if (case_make(&c, MADE_UP_MOE, 16, TRAINING,
                  "{\"tp\": 4, \"pp\": 4, \"sequence_parallel\": false}")) {
        Prices prices = prices_of(&c); // all of it from every rank
        ASSERT_CLOSE(prices.message_s[0], 2e-6 + bytes / 1e11);
        CU_ASSERT_EQUAL(prices.message_alpha_s[0], 2e-6);
        c.scenario.execution.stack.communication.p2p_scatter_gather = true;
        if (case_resolve(&c)) prices = prices_of(&c);
        for (int r = 0; r < 4; r++) {
            const double alpha_s = r % 2 ? 2e-5 : 2e-6, rate = r % 2 ? 1e10 : 1e11;
            ASSERT_CLOSE(prices.message_alpha_s[r], alpha_s + gather_s);
            ASSERT_CLOSE(prices.message_s[r], alpha_s + bytes / 4 / rate + gather_s);
        }
    }
    case_free(&c);
}

static void pieces_are_equal_shares(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 1, TRAINING, NULL)) {
        const Prices prices = prices_of(&c);
        Instruction piece = {.kind = INSTRUCTION_BACKWARD, .num_parts = 4};
        ASSERT_CLOSE(instruction_compute_s(&prices, &piece, 0), prices.backward[0].time_s / 4);
        piece.kind = INSTRUCTION_OPTIMIZER;
        CU_ASSERT_EQUAL(instruction_compute_s(&prices, &piece, 0), prices.optimizer_s[0]);
        piece.kind = INSTRUCTION_SEND;
        CU_ASSERT_EQUAL(instruction_compute_s(&prices, &piece, 0), 0);
    }
    case_free(&c);
}

// A chunk for each of pp stages (1 or 2) of 8 GPUs, in a piece for each of its layers; beside
// collectives, compute takes half as long again. Forward and backward take whole_s.
static bool pieces_make(Case *c, int pp, double whole_s, Prices *prices) {
    const char *training = WITH("\"overlap_grad_reduce\": true, \"overlap_param_gather\": true");
    if (!case_make(c, MADE_UP_MOE, 8, training, pp == 1 ? "{}" : "{\"pp\": 2}")) return false;
    c->scenario.execution.stack.training.bucket_bytes = 1;
    c->scenario.execution.stack.communication.overlap_slowdown_frac = 0.5;
    Price *whole = ARENA_ARRAY(&c->arena, pp, Price);
    for (int i = 0; i < pp; i++) whole[i].time_s = whole_s;
    *prices = prices_of(c);
    prices->forward = prices->backward = whole;
    const Program program = program_build(&c->scenario, &c->plan, &c->workload, &c->arena);
    program_price(&c->scenario, &c->plan, &program, &c->arena, prices);
    return true;
}

// Seconds of all n collectives of a kind that a chunk has, each of an nth of its parameters.
static double sync_s(const Case *c, int chunk, CollectiveKind kind, int n, double bytes) {
    const Chunk *parameters = &c->workload.chunks[chunk];
    const Cluster *cluster = &c->scenario.cluster;
    return n * collective_s(machines_of(cluster), kind, plan_group(&c->plan, GROUP_ZERO),
                            parameters->dense_parameters * bytes / n) +
           n * collective_s(machines_of(cluster), kind, plan_group(&c->plan, GROUP_EZERO),
                            parameters->expert_parameters * bytes / n);
}

static void assert_piece(const Prices *prices, InstructionKind kind, int chunk, int n,
                         double stretch_s) {
    const Instruction piece = {
        .kind = (uint8_t)kind, .chunk = (int16_t)chunk, .num_parts = (uint8_t)n};
    ASSERT_CLOSE(piece_stretch_s(prices, &piece), stretch_s);
    ASSERT_CLOSE(instruction_compute_s(prices, &piece, chunk), 1.0 / n + stretch_s);
}

// A forward and a backward of 1 s in n pieces. All but one of n collectives run beside them, and
// half of those seconds are added, an nth to each piece: of the gathers (2 bytes a weight) to the
// forward, of the reductions (4 bytes a gradient) to the backward.
static void collectives_stretch_the_pieces_beside_them(void) {
    for (int pp = 1; pp <= 2; pp++) {
        Case c;
        Prices prices;
        const int n = 4 / pp; // layers of a chunk
        const double stretch = 0.5 * (n - 1) / n / n;
        if (pieces_make(&c, pp, 1, &prices))
            for (int chunk = 0; chunk < pp; chunk++) {
                const double gathers_s = sync_s(&c, chunk, COLLECTIVE_ALL_GATHER, n, 2);
                const double reduces_s = sync_s(&c, chunk, COLLECTIVE_REDUCE_SCATTER, n, 4);
                CU_ASSERT_TRUE(gathers_s > 0 && gathers_s < reduces_s && reduces_s < 0.1);
                assert_piece(&prices, INSTRUCTION_FORWARD, chunk, n, stretch * gathers_s);
                assert_piece(&prices, INSTRUCTION_BACKWARD, chunk, n, stretch * reduces_s);
            }
        case_free(&c);
    }
}

// Collectives that take longer than a forward and backward of 1 us slow all of it, and no more:
// each of 4 pieces by half.
static void pieces_are_stretched_while_they_run(void) {
    Case c;
    Prices prices;
    if (pieces_make(&c, 1, 1e-6, &prices)) {
        for (int backward = 0; backward < 2; backward++) {
            const Instruction piece = {
                .kind = backward ? INSTRUCTION_BACKWARD : INSTRUCTION_FORWARD, .num_parts = 4};
            ASSERT_CLOSE(piece_stretch_s(&prices, &piece), 0.5 * 0.25e-6);
            ASSERT_CLOSE(instruction_compute_s(&prices, &piece, 0), 1.5 * 0.25e-6);
        }
    }
    case_free(&c);
}

// Forward and backward of most micro-batches are one piece. Where the backward is in two parts,
// reductions run beside that of the weights. Without a Program there are no collectives.
static void nothing_else_is_stretched(void) {
    Case c;
    Prices prices;
    if (pieces_make(&c, 1, 1, &prices)) {
        Instruction one = {.kind = INSTRUCTION_FORWARD, .num_parts = 1};
        CU_ASSERT_EQUAL(piece_stretch_s(&prices, &one), 0);
        one.kind = INSTRUCTION_BACKWARD;
        CU_ASSERT_EQUAL(piece_stretch_s(&prices, &one), 0);
        one.num_parts = 4;
        CU_ASSERT_TRUE(piece_stretch_s(&prices, &one) > 0);
        const double stretch_s = piece_stretch_s(&prices, &one);
        one.kind = INSTRUCTION_BACKWARD_WEIGHT;
        CU_ASSERT_EQUAL(piece_stretch_s(&prices, &one), stretch_s);
        one.kind = INSTRUCTION_BACKWARD_INPUT;
        CU_ASSERT_EQUAL(piece_stretch_s(&prices, &one), 0);
        one.kind = INSTRUCTION_BACKWARD;
        prices = prices_of(&c);
        CU_ASSERT_EQUAL(piece_stretch_s(&prices, &one), 0);
    }
    case_free(&c);
}

// Where the backward is in two parts, each of the 2 pieces of a weight part of 1 us is slowed by
// half, whatever the whole backward takes.
static void reductions_stretch_the_weight_part(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, WITH("\"overlap_grad_reduce\": true"),
                  "{\"pp\": 2, \"schedule\": \"zb-h1\"}")) {
        c.scenario.execution.stack.training.bucket_bytes = 1;
        c.scenario.execution.stack.communication.overlap_slowdown_frac = 0.5;
        Price weight[2] = {{.time_s = 1e-6}, {.time_s = 1e-6}};
        Prices prices = prices_of(&c);
        prices.backward_weight = weight;
        const Program program = program_build(&c.scenario, &c.plan, &c.workload, &c.arena);
        program_price(&c.scenario, &c.plan, &program, &c.arena, &prices);
        Instruction piece = {.kind = INSTRUCTION_BACKWARD_WEIGHT, .num_parts = 2};
        ASSERT_CLOSE(piece_stretch_s(&prices, &piece), 0.5 * 0.5e-6);
        ASSERT_CLOSE(instruction_compute_s(&prices, &piece, 0), 1.5 * 0.5e-6);
        piece = (Instruction){.kind = INSTRUCTION_BACKWARD_INPUT, .num_parts = 1};
        ASSERT_CLOSE(instruction_compute_s(&prices, &piece, 0), prices.backward_input[0].time_s);
    }
    case_free(&c);
}

// Collectives that nothing runs beside, one for each chunk, stretch nothing.
static void late_collectives_stretch_nothing(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8,
                  WITH("\"overlap_grad_reduce\": false, \"overlap_param_gather\": false"), NULL)) {
        Prices prices = prices_of(&c);
        c.scenario.execution.stack.training.bucket_bytes = 1;
        const Program program = program_build(&c.scenario, &c.plan, &c.workload, &c.arena);
        program_price(&c.scenario, &c.plan, &program, &c.arena, &prices);
        CU_ASSERT_TRUE(program.num_collectives > 0);
        for (int b = 0; b < 2; b++) CU_ASSERT_EQUAL(prices.stretch_s[b][0], 0);
    }
    case_free(&c);
}

static void collectives_of_the_program_are_priced(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 16, TRAINING, "{\"pp\": 2, \"ep\": 4}")) {
        Prices prices = prices_of(&c);
        const Program program = program_build(&c.scenario, &c.plan, &c.workload, &c.arena);
        program_price(&c.scenario, &c.plan, &program, &c.arena, &prices);
        CU_ASSERT_TRUE(program.num_collectives > 0);
        for (int i = 0; i < program.num_collectives; i++) {
            const ProgramCollective *p = &program.collectives[i];
            ASSERT_CLOSE(prices.collective_s[i],
                         collective_s(machines_of(&c.scenario.cluster), p->kind,
                                      plan_group(&c.plan, p->group), p->message_bytes));
        }
    }
    case_free(&c);
}

CU_TestInfo price_program_tests[] = {
    {"messages_know_their_way", messages_know_their_way},
    {"messages_are_as_slow_as_their_slowest", messages_are_as_slow_as_their_slowest},
    {"scattered_messages_are_gathered", scattered_messages_are_gathered},
    {"pieces_are_equal_shares", pieces_are_equal_shares},
    {"collectives_stretch_the_pieces_beside_them", collectives_stretch_the_pieces_beside_them},
    {"pieces_are_stretched_while_they_run", pieces_are_stretched_while_they_run},
    {"nothing_else_is_stretched", nothing_else_is_stretched},
    {"reductions_stretch_the_weight_part", reductions_stretch_the_weight_part},
    {"late_collectives_stretch_nothing", late_collectives_stretch_nothing},
    {"collectives_of_the_program_are_priced", collectives_of_the_program_are_priced},
    CU_TEST_INFO_NULL,
};
