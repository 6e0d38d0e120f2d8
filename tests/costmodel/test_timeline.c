// Timelines worked out by hand.
#include "costmodel/step/timeline.h"

#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#define ASSERT_TIME(actual, expected) CU_ASSERT_DOUBLE_EQUAL((actual), (expected), 1e-12)

static void assert_span(const PipelineCase *c, const Timeline *timeline, int rank,
                        InstructionKind kind, int chunk, int microbatch, double start_s,
                        double end_s) {
    const int index = instruction_find(&c->program, rank, kind, chunk, microbatch);
    CU_ASSERT_FATAL(index >= 0);
    ASSERT_TIME(timeline->start_s[rank][index], start_s);
    ASSERT_TIME(timeline->end_s[rank][index], end_s);
}

static void messages_take(PipelineCase *c, double message_s) {
    for (int r = 0; r < c->plan.pp; r++) c->message_s[r] = message_s;
}

// A forward takes 1 s, a backward 2 s.

// 2 ranks, 2 micro-batches, a message 0.5 s. A group is launched behind the computation before it.
//   rank 0: F0 0-1, {send F0} launched 1: rank 1 receives since 0, moves 1-1.5
//           F1 1.5-2.5, {send F1, recv B0} launched 2.5
//   rank 1: F0 1.5-2.5, {recv F1} launched 2.5: moves 2.5-3; F1 3-4; B0 4-6;
//           {send B0} launched 6: moves 6-6.5; B1 6.5-8.5; {send B1} launched 8.5
//   rank 0: B0 6.5-8.5, {recv B1} launched 8.5: moves 8.5-9; B1 9-11
// Bubbles: of rank 0 2.5-6, 3.5 s; of rank 1 0-1 and, after its last message, 9-11, 3 s. Rank 1 has
// the least. Messages on their way to or from it: 1-1.5, 2.5-3, 6-6.5, 8.5-9.
static void gpipe_with_blocking_messages(void) {
    PipelineCase c = pipeline_new(SCHEDULE_GPIPE, 2, 1, 2);
    messages_take(&c, 0.5);
    pipeline_build(&c, 0);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 11);
    CU_ASSERT_EQUAL(t.slowest_rank, 1);
    assert_span(&c, &t, 0, INSTRUCTION_FORWARD, 0, 1, 1.5, 2.5);
    assert_span(&c, &t, 1, INSTRUCTION_FORWARD, 1, 1, 3, 4);
    assert_span(&c, &t, 1, INSTRUCTION_BACKWARD, 1, 1, 6.5, 8.5);
    assert_span(&c, &t, 0, INSTRUCTION_BACKWARD, 0, 0, 6.5, 8.5);
    // The send of F1 moves 2.5-3 but its group is done with the gradient, at 6.5.
    assert_span(&c, &t, 0, INSTRUCTION_SEND, 0, 1, 2.5, 6.5);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], 6);
    ASSERT_TIME(t.term_s[TERM_PP], 2);
    ASSERT_TIME(t.term_s[TERM_BUBBLE], 3);
    ASSERT_TIME(t.mean_working_s, 6);
    pipeline_free(&c);
}

// 1F1B on the same: rank 1 exchanges the gradient of micro-batch 0 for the activations of 1.
//   rank 0: F0 0-1, moves 1-1.5, F1 1.5-2.5, {send F1, recv B0} launched 2.5
//   rank 1: F0 1.5-2.5, B0 2.5-4.5, {send B0, recv F1} launched 4.5: both move 4.5-5
//           F1 5-6, B1 6-8, {send B1} launched 8
//   rank 0: B0 5-7, {recv B1} launched 7: moves 8-8.5; B1 8.5-10.5
static void one_f_one_b_with_blocking_messages(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 2, 1, 2);
    messages_take(&c, 0.5);
    pipeline_build(&c, 0);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 10.5);
    assert_span(&c, &t, 1, INSTRUCTION_FORWARD, 1, 1, 5, 6);
    assert_span(&c, &t, 0, INSTRUCTION_BACKWARD, 0, 0, 5, 7);
    assert_span(&c, &t, 0, INSTRUCTION_BACKWARD, 0, 1, 8.5, 10.5);
    // 1-1.5, 4.5-5, 8-8.5 on the way; 2.5-4.5, 7-8 bubble.
    ASSERT_TIME(t.term_s[TERM_PP], 1.5);
    ASSERT_TIME(t.term_s[TERM_BUBBLE], 3);
    pipeline_free(&c);
}

// 2 ranks with 2 chunks, 2 micro-batches, messages of 0.5 s beside the computation.
//   rank 0: F0.0 0-1, F0.1 1-2                          (sent 1-1.5, 2-2.5)
//   rank 1: F1.0 1.5-2.5, F1.1 2.5-3.5                  (2.5-3, 3.5-4)
//   rank 0: F2.0 3-4, F2.1 4-5                          (4-4.5, 5-5.5)
//   rank 1: F3.0 4.5-5.5, B3.0 5.5-7.5, F3.1 7.5-8.5, B3.1 8.5-10.5 (7.5-8, 10.5-11)
//   rank 0: B2.0 8-10, B2.1 11-13                       (10-10.5, 13-13.5)
//   rank 1: B1.0 10.5-12.5, B1.1 13.5-15.5              (12.5-13, 15.5-16)
//   rank 0: B0.0 13-15, B0.1 16-18
// Rank 0 waits 2-3, 5-8, 10-11, 15-16; the last 0.5 s of each for a message on its way.
static void interleaved_with_overlapped_messages(void) {
    PipelineCase c = pipeline_new(SCHEDULE_INTERLEAVED, 2, 2, 2);
    c.scenario.execution.stack.communication.p2p_overlap = true;
    messages_take(&c, 0.5);
    pipeline_build(&c, 0);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 18);
    assert_span(&c, &t, 0, INSTRUCTION_FORWARD, 0, 1, 1, 2);
    assert_span(&c, &t, 0, INSTRUCTION_FORWARD, 2, 0, 3, 4);
    assert_span(&c, &t, 1, INSTRUCTION_BACKWARD, 3, 1, 8.5, 10.5);
    assert_span(&c, &t, 1, INSTRUCTION_BACKWARD, 1, 1, 13.5, 15.5);
    assert_span(&c, &t, 1, INSTRUCTION_RECV, 3, 0, 4, 4.5);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], 12);
    ASSERT_TIME(t.term_s[TERM_PP], 2);
    ASSERT_TIME(t.term_s[TERM_BUBBLE], 4);
    pipeline_free(&c);
}

// The first message leaves 1-2.5; the second is ready at 2 and leaves 2.5-4.
static void a_direction_carries_one_message_at_a_time(void) {
    PipelineCase c = pipeline_new(SCHEDULE_INTERLEAVED, 2, 2, 2);
    c.scenario.execution.stack.communication.p2p_overlap = true;
    messages_take(&c, 1.5);
    pipeline_build(&c, 0);
    Timeline t = pipeline_run(&c);
    assert_span(&c, &t, 0, INSTRUCTION_SEND, 0, 0, 1, 2.5);
    assert_span(&c, &t, 0, INSTRUCTION_SEND, 0, 1, 2.5, 4);
    pipeline_free(&c);
}

// pp 3, one micro-batch, boundaries of 0.5 and 0.25 s: F0 0-1, F1 1.5-2.5, F2 2.75-3.75,
// B2 3.75-5.75, B1 6-8, B0 8.5-10.5. Rank 1 has the least bubble: 0-1, 2.5-5.75 and, once its
// gradient is sent, 8.5-10.5; messages 1-1.5, 5.75-6, 8-8.5.
static void each_boundary_has_its_own_time(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 3, 1, 1);
    c.message_s[0] = 0.5;
    c.message_s[1] = 0.25;
    pipeline_build(&c, 0);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 10.5);
    CU_ASSERT_EQUAL(t.slowest_rank, 1);
    ASSERT_TIME(t.term_s[TERM_PP], 1.25);
    ASSERT_TIME(t.term_s[TERM_BUBBLE], 6.25);
    pipeline_free(&c);
}

// One rank of dp 2, 2 micro-batches: 6 s of work, then the reduction 6-9, the optimizer 9-9.25,
// the gather 9.25-12.25, and 0.5 s on the host.
static void serial_collectives_are_exposed(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 1, 1, 2);
    c.plan.dp = c.plan.zero_group = 2;
    c.optimizer_s[0] = 0.25;
    c.prices.step_s = 0.5;
    pipeline_build(&c, 3);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 12.75);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], 6);
    ASSERT_TIME(t.term_s[TERM_DP], 6);
    ASSERT_TIME(t.term_s[TERM_OPTIMIZER], 0.25);
    ASSERT_TIME(t.term_s[TERM_OTHER], 0.5);
    pipeline_free(&c);
}

// The same job with tp 2: the reduction 6-9, the sum over tp 9-12, the optimizer 12-12.25, the
// gather 12.25-15.25.
static void sums_over_tp_are_told_apart(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 1, 1, 2);
    c.plan.tp = c.plan.dp = c.plan.zero_group = 2;
    c.chunks[0].partial_parameters = 10;
    c.optimizer_s[0] = 0.25;
    pipeline_build(&c, 3);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 15.25);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], 6);
    ASSERT_TIME(t.term_s[TERM_DP], 6);
    ASSERT_TIME(t.term_s[TERM_TP], 3);
    ASSERT_TIME(t.term_s[TERM_OPTIMIZER], 0.25);
    pipeline_free(&c);
}

static PipelineCase two_pieces(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 1, 1, 1);
    c.plan.dp = c.plan.zero_group = 2;
    c.chunks[0].num_layers = 2;
    c.scenario.execution.stack.training.bucket_bytes = 2000;
    return c;
}

// F 0-1, B in halves 1-2 and 2-3. Reductions of 1.5 s: 2-3.5 and 3.5-5. Optimizer at 5, then the
// gather 5-6.5: 2 s of the reductions are exposed, and the gather.
static void overlapped_reductions_hide_behind_the_backward(void) {
    PipelineCase c = two_pieces();
    c.scenario.execution.overlap_grad_reduce = true;
    pipeline_build(&c, 1.5);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 6.5);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], 3);
    ASSERT_TIME(t.term_s[TERM_DP], 3.5);
    pipeline_free(&c);
}

// Gathers of 0.75 s: 0-0.75 and 0.75-1.5. Halves of F: 0.75-1.25 and 1.5-2. B 2-4, reduction
// 4-4.75. Exposed: 0.75, 0.25 and 0.75.
static void overlapped_gathers_hide_behind_the_forward(void) {
    PipelineCase c = two_pieces();
    c.scenario.execution.overlap_param_gather = true;
    pipeline_build(&c, 0.75);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 4.75);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], 3);
    ASSERT_TIME(t.term_s[TERM_DP], 1.75);
    pipeline_free(&c);
}

// Ends of ranks 0, 1, 2 of pp 3: B0 ends 9, B1 7, B2 5. Gradients are reduced for 2 s, then
// ranks 0 and 2 exchange 120 bytes: latency 0.1, and 8 bytes take another 0.4 on that boundary, so
// 0.1 + 15 x 0.4 = 6.1 s from 11 on. The gather takes 2 s more: 19.1.
static void tied_embeddings_are_exchanged_before_the_optimizer(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 3, 1, 1);
    c.plan.dp = c.plan.zero_group = 2;
    c.scenario.model.tie_word_embeddings = true;
    c.scenario.model.vocab_size = 10;
    c.scenario.model.hidden_size = 3;
    c.message_s[2] = 0.5;
    c.message_alpha_s[2] = 0.1;
    pipeline_build(&c, 2);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 19.1);
    CU_ASSERT_EQUAL(t.slowest_rank, 0);
    ASSERT_TIME(t.term_s[TERM_DP], 4);
    ASSERT_TIME(t.term_s[TERM_PP], 6.1);
    ASSERT_TIME(t.term_s[TERM_BUBBLE], 6); // F1, F2, B2, B1
    pipeline_free(&c);
}

// With tp 2, and no other replicas: the sums over tp take 2 s from 9 and 5 on, so the messages
// begin at 11. A rank has 128 rows, padded, of 3 columns: 1536 bytes take 0.1 + 192 x 0.4 s.
static void sums_over_tp_precede_tied_embeddings(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 3, 1, 1);
    c.plan.tp = 2;
    for (int i = 0; i < 3; i++) c.chunks[i].partial_parameters = 10;
    c.scenario.model.tie_word_embeddings = true;
    c.scenario.model.vocab_size = 200;
    c.scenario.model.hidden_size = 3;
    c.message_s[2] = 0.5;
    c.message_alpha_s[2] = 0.1;
    pipeline_build(&c, 2);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.step_time_s, 87.9);
    ASSERT_TIME(t.term_s[TERM_TP], 2);
    ASSERT_TIME(t.term_s[TERM_DP], 0);
    ASSERT_TIME(t.term_s[TERM_PP], 76.9);
    pipeline_free(&c);
}

// What a chunk's price consists of is kept, and adds up over pieces and micro-batches.
static void terms_of_prices_are_kept(void) {
    PipelineCase c = two_pieces();
    c.plan.num_microbatches = 2;
    c.scenario.execution.overlap_grad_reduce = true;
    c.backward[0] = (Price){.time_s = 2};
    c.backward[0].term_s[TERM_COMPUTE] = 1.25;
    c.backward[0].term_s[TERM_TP] = 0.5;
    c.backward[0].term_s[TERM_EP] = 0.25;
    pipeline_build(&c, 0);
    Timeline t = pipeline_run(&c);
    ASSERT_TIME(t.term_s[TERM_COMPUTE], 4.5);
    ASSERT_TIME(t.term_s[TERM_TP], 1);
    ASSERT_TIME(t.term_s[TERM_EP], 0.5);
    pipeline_free(&c);
}

// Rank 1 gathers 10 s of weights after the step of rank 0 ended.
static void the_slowest_rank_is_broken_down(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 2, 1, 1);
    c.plan.dp = c.plan.zero_group = 2;
    c.chunks[1].dense_parameters = 5000;
    pipeline_build(&c, 0);
    const Instruction *list = c.program.ranks[1].instructions;
    c.collective_s[list[c.program.ranks[1].num_instructions - 1].collective] = 10;
    Timeline t = pipeline_run(&c);
    CU_ASSERT_EQUAL(t.slowest_rank, 1);
    ASSERT_TIME(t.step_time_s, 14); // F0 1, F1 1, B1 2, gather 10
    ASSERT_TIME(t.term_s[TERM_DP], 10);
    ASSERT_TIME(t.term_s[TERM_BUBBLE], 1);
    pipeline_free(&c);
}

static void times_are_kept_only_where_asked_for(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 2, 1, 3);
    pipeline_build(&c, 0);
    Timeline t;
    CU_ASSERT_EQUAL(timeline_run(&c.program, &c.prices, false, &c.arena, &t).code, STATUS_OK);
    CU_ASSERT_PTR_NULL(t.start_s);
    CU_ASSERT_PTR_NULL(t.end_s);
    ASSERT_TIME(t.step_time_s, 12);
    pipeline_free(&c);
}

CU_TestInfo timeline_tests[] = {
    {"gpipe_with_blocking_messages", gpipe_with_blocking_messages},
    {"one_f_one_b_with_blocking_messages", one_f_one_b_with_blocking_messages},
    {"interleaved_with_overlapped_messages", interleaved_with_overlapped_messages},
    {"a_direction_carries_one_message_at_a_time", a_direction_carries_one_message_at_a_time},
    {"each_boundary_has_its_own_time", each_boundary_has_its_own_time},
    {"serial_collectives_are_exposed", serial_collectives_are_exposed},
    {"sums_over_tp_are_told_apart", sums_over_tp_are_told_apart},
    {"sums_over_tp_precede_tied_embeddings", sums_over_tp_precede_tied_embeddings},
    {"overlapped_reductions_hide_behind_the_backward",
     overlapped_reductions_hide_behind_the_backward},
    {"overlapped_gathers_hide_behind_the_forward", overlapped_gathers_hide_behind_the_forward},
    {"tied_embeddings_are_exchanged_before_the_optimizer",
     tied_embeddings_are_exchanged_before_the_optimizer},
    {"terms_of_prices_are_kept", terms_of_prices_are_kept},
    {"the_slowest_rank_is_broken_down", the_slowest_rank_is_broken_down},
    {"times_are_kept_only_where_asked_for", times_are_kept_only_where_asked_for},
    CU_TEST_INFO_NULL,
};
