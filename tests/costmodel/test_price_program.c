// Messages, pieces and collectives of a Program.
#include "costmodel/collective.h"
#include "costmodel/price.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-15)

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

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
                         collective_s(&c.scenario.cluster, p->kind, plan_group(&c.plan, p->group),
                                      p->message_bytes));
        }
    }
    case_free(&c);
}

CU_TestInfo price_program_tests[] = {
    {"messages_know_their_way", messages_know_their_way},
    {"messages_are_as_slow_as_their_slowest", messages_are_as_slow_as_their_slowest},
    {"pieces_are_equal_shares", pieces_are_equal_shares},
    {"collectives_of_the_program_are_priced", collectives_of_the_program_are_priced},
    CU_TEST_INFO_NULL,
};
