// Hand-made messages that wait for each other in a circle, and that do not.
#include "costmodel/step/timeline.h"

#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

#define ASSERT_TIME(actual, expected) CU_ASSERT_DOUBLE_EQUAL((actual), (expected), 1e-12)

static Instruction message(InstructionKind kind, int peer, int match, int group, int wait) {
    return (Instruction){.kind = (uint8_t)kind,
                         .stream = STREAM_PP,
                         .num_parts = 1,
                         .peer = (int16_t)peer,
                         .match = match,
                         .p2p_group = group,
                         .collective = -1,
                         .waits = {wait, -1}};
}

static void assert_circle(const Instruction *first, const Instruction *second, int num,
                          const char *sentence) {
    Arena arena = {0};
    const RankProgram ranks[] = {{first, num}, {second, num}};
    const Program program = {.num_ranks = 2, .ranks = ranks, .message_bytes = 8};
    const double message_s[] = {1, 1}, alpha_s[] = {0, 0};
    const Prices prices = {.message_s = message_s, .message_alpha_s = alpha_s};
    Timeline t;
    Status status = timeline_run(&program, &prices, false, &arena, &t);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text, sentence);
    if (strcmp(status.text, sentence) != 0) fprintf(stderr, "\n%s\n", status.text);
    arena_free(&arena);
}

// Both ranks send and only then receive, each for itself: neither send finds its receiver.
static void blocking_sends_on_both_sides_are_a_circle(void) {
    const Instruction list[2][2] = {
        {message(INSTRUCTION_SEND, 1, 1, 0, -1), message(INSTRUCTION_RECV, 1, 0, 1, -1)},
        {message(INSTRUCTION_SEND, 0, 1, 0, -1), message(INSTRUCTION_RECV, 0, 0, 1, -1)},
    };
    assert_circle(list[0], list[1], 2,
                  "messages wait for each other in a circle: pipeline rank 0 waits at its "
                  "instruction 0 (send of chunk 0, micro-batch 0) for rank 1");
}

// Both ranks send what they are yet to receive.
static void sends_that_wait_for_receives_are_a_circle(void) {
    const Instruction list[2][2] = {
        {message(INSTRUCTION_RECV, 1, 1, -1, -1), message(INSTRUCTION_SEND, 1, 0, -1, 0)},
        {message(INSTRUCTION_RECV, 0, 1, -1, -1), message(INSTRUCTION_SEND, 0, 0, -1, 0)},
    };
    assert_circle(list[0], list[1], 2,
                  "messages wait for each other in a circle: pipeline rank 0 waits at its "
                  "instruction 0 (recv of chunk 0, micro-batch 0) for rank 1");
}

// Runs two ranks of hand-made messages of 1 second each.
static Timeline run_by_hand(const Instruction *first, const Instruction *second, int num) {
    Arena arena = {0};
    const RankProgram ranks[] = {{first, num}, {second, num}};
    const Program program = {.num_ranks = 2, .ranks = ranks, .message_bytes = 8};
    const double message_s[] = {1, 1}, alpha_s[] = {0, 0};
    const Prices prices = {.message_s = message_s, .message_alpha_s = alpha_s};
    Timeline t = {0};
    CU_ASSERT_EQUAL(timeline_run(&program, &prices, false, &arena, &t).code, STATUS_OK);
    arena_free(&arena);
    return t;
}

// The two sends and receives above in one group on each side are no circle.
static void one_group_on_both_sides_is_none(void) {
    const Instruction list[2][2] = {
        {message(INSTRUCTION_SEND, 1, 1, 0, -1), message(INSTRUCTION_RECV, 1, 0, 0, -1)},
        {message(INSTRUCTION_SEND, 0, 1, 0, -1), message(INSTRUCTION_RECV, 0, 0, 0, -1)},
    };
    Timeline t = run_by_hand(list[0], list[1], 2);
    ASSERT_TIME(t.step_time_s, 1);
    ASSERT_TIME(t.term_s[TERM_PP], 1);
}

// A rank sends two activations one after the other, but an activation and a gradient at once.
static void directions_do_not_wait_for_each_other(void) {
    Instruction list[2][2] = {
        {message(INSTRUCTION_SEND, 1, 0, -1, -1), message(INSTRUCTION_SEND, 1, 1, -1, -1)},
        {message(INSTRUCTION_RECV, 0, 0, -1, -1), message(INSTRUCTION_RECV, 0, 1, -1, -1)},
    };
    ASSERT_TIME(run_by_hand(list[0], list[1], 2).step_time_s, 2);
    list[0][1].phase = list[1][1].phase = PHASE_BACKWARD_INPUT;
    ASSERT_TIME(run_by_hand(list[0], list[1], 2).step_time_s, 1);
}

CU_TestInfo timeline_circles_tests[] = {
    {"blocking_sends_on_both_sides_are_a_circle", blocking_sends_on_both_sides_are_a_circle},
    {"sends_that_wait_for_receives_are_a_circle", sends_that_wait_for_receives_are_a_circle},
    {"one_group_on_both_sides_is_none", one_group_on_both_sides_is_none},
    {"directions_do_not_wait_for_each_other", directions_do_not_wait_for_each_other},
    CU_TEST_INFO_NULL,
};
