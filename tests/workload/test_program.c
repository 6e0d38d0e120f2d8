// Programs by hand: whole lists, and how gradients and parameters travel.
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

// --- Whole lists by hand

static void assert_text(PipelineCase *c, int rank, const char *expected) {
    const char *text = program_text(&c->program, rank, &c->arena);
    CU_ASSERT_STRING_EQUAL(text, expected);
    if (strcmp(text, expected) != 0)
        fprintf(stderr, "\nrank %d is       %s\nshould have been %s\n", rank, text, expected);
}

// Megatron-LM's forward_backward_pipelining_without_interleaving: rank 0 sends each forward before
// the next, receives the gradient with the send of the last warm-up forward's successor; rank 1
// exchanges a gradient for the next activation.
static void one_f_one_b_blocks_on_every_exchange(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 2, 1, 2);
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 sF0.0g0<0 F0.1<1 sF0.1g1<2 rB0.0g1<2 B0.0<3 rB0.1g2<5 B0.1<6 O");
    assert_text(&c, 1, "rF1.0g0 F1.0<0 B1.0 sB1.0g1<2 rF1.1g1<2 F1.1<3 B1.1 sB1.1g2<6 O");
    pipeline_free(&c);
}

// Rank 1 of pp 2 with 2 chunks: warm-up of 2 forwards, then pairs, each exchanged as a whole.
static void interleaved_exchanges_pairs(void) {
    PipelineCase c = pipeline_new(SCHEDULE_INTERLEAVED, 2, 2, 2);
    pipeline_build(&c, 0);
    assert_text(&c, 1,
                "rF1.0g0 F1.0<0 sF1.0g1<1 rF1.1g1<1 F1.1<2 sF1.1g2<4 rF3.0g2<4 "
                "F3.0<5 B3.0<5 sB3.0g3<8 rF3.1g3<8 F3.1<9 B3.1<9 sB3.1g4<12 rB1.0g4<12 "
                "B1.0<13 sB1.0g5<15 rB1.1g5<15 B1.1<16 sB1.1g6<18 O");
    pipeline_free(&c);
}

// The same on a stack that overlaps messages: receives are issued one computation ahead, and only
// their own computation waits for them.
static void overlapped_messages_are_received_one_ahead(void) {
    PipelineCase c = pipeline_new(SCHEDULE_INTERLEAVED, 2, 2, 2);
    c.scenario.execution.stack.communication.p2p_overlap = true;
    pipeline_build(&c, 0);
    assert_text(&c, 1,
                "rF1.0 rF1.1 F1.0<0 sF1.0<2 rF3.0 F1.1<1 sF1.1<5 F3.0<4 rF3.1 B3.0 sB3.0<9 "
                "F3.1<8 rB1.0 B3.1 sB3.1<13 rB1.1 B1.0<12 sB1.0<16 B1.1<15 sB1.1<18 O");
    pipeline_free(&c);
}

static void other_whole_backwards_block_even_so(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 2, 1, 2);
    c.scenario.execution.stack.communication.p2p_overlap = true;
    pipeline_build(&c, 0);
    CU_ASSERT_EQUAL(c.program.ranks[0].instructions[1].p2p_group, 0);
    pipeline_free(&c);
}

// ZB-H1 on the second of two ranks: a gradient is sent before the weight part that comes next, and
// the weight part of micro-batch 0 waits until there is another.
static void gradients_go_before_the_weight_part(void) {
    PipelineCase c = pipeline_new(SCHEDULE_ZB_H1, 2, 1, 3);
    pipeline_build(&c, 0);
    assert_text(&c, 1,
                "rF1.0 F1.0<0 rF1.1 I1.0 sB1.0<3 F1.1<2 I1.1 sB1.1<6 rF1.2 W1.0 F1.2<8 I1.2 "
                "sB1.2<11 W1.1 W1.2 O");
    pipeline_free(&c);
}

// Gradients of a chunk are whole after its last weight part.
static void reductions_follow_the_last_weight_part(void) {
    PipelineCase c = pipeline_new(SCHEDULE_ZB_H1, 1, 1, 2);
    c.plan.dp = c.plan.zero_group = 2;
    c.chunks[0].num_layers = 2;
    c.scenario.execution.overlap_grad_reduce = true;
    c.scenario.execution.stack.training.bucket_bytes = 2000;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "F0.0 I0.0 W0.0 F0.1 I0.1 W0.1/1of2 cgrad_reduce_scatter/1of2<5 W0.1/2of2 "
                "cgrad_reduce_scatter/2of2<7 O<8 cparam_all_gather<9");
    pipeline_free(&c);
}

// Rank 0 of 2 is busy with micro-batch 2 in chunk 0 when the first comes round to chunk 2: whoever
// sent it goes on, whatever the stack.
static void breadth_first_never_blocks(void) {
    PipelineCase c = pipeline_new(SCHEDULE_BREADTH_FIRST, 2, 2, 3);
    pipeline_build(&c, 0);
    assert_text(&c, 1,
                "rF1.0 rF1.1 F1.0<0 sF1.0<2 rF1.2 F1.1<1 sF1.1<5 rF3.0 F1.2<4 sF1.2<8 "
                "rF3.1 F3.0<7 rF3.2 F3.1<10 F3.2<12 B3.0 sB3.0<15 B3.1 sB3.1<17 rB1.0 B3.2 "
                "sB3.2<20 rB1.1 B1.0<19 sB1.0<23 rB1.2 B1.1<22 sB1.1<26 B1.2<25 sB1.2<28 O");
    pipeline_free(&c);
}

// Rank 0 of 2, 4 micro-batches, ZeRO 1 over 2 ranks: chunk 0 runs micro-batches 0 and 1, chunk 3,
// the last of the other pipeline, 2 and 3. Its one pair, F3.3 and B0.0, waits for the inputs of
// both. At the end the shards of 1,000 parameters' gradients, 4 bytes each, are exchanged with rank
// 1, which holds the copies.
static void dual_pipelines_run_pairs_and_add_their_gradients(void) {
    PipelineCase c = pipeline_new(SCHEDULE_DUALPIPE, 2, 2, 4);
    c.plan.dp = c.plan.zero_group = 2;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "rF3.2 F0.0 sF0.0<1 F3.2<0 F0.1 sF0.1<4 rF3.3 rB0.0 B3.2 sB3.2<8 F3.3<6<7 B0.0<7 "
                "rB0.1 B3.3 sB3.3<13 I0.1<12 W0.1 cgrad_reduce_scatter<16 cgrad_reduce_scatter<16 "
                "sG0g0<16<18 rG0g0<16<18 sG3g0<16<18 rG3g0<16<18 O<22<18 cparam_all_gather<23 "
                "cparam_all_gather<23");
    CU_ASSERT_EQUAL(c.program.copies_bytes[3], 2000);
    pipeline_free(&c);
}

static void one_rank_sends_nothing(void) {
    PipelineCase c = pipeline_new(SCHEDULE_INTERLEAVED, 1, 2, 1);
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 F1.0 B1.0 B0.0 O");
    pipeline_free(&c);
}

// --- Gradients and parameters

// dp 4 on 1 rank with 1 chunk of 1000 parameters and 200 expert parameters over 2 expert replicas.
static PipelineCase sync_case(int zero_stage, int zero_group) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 1, 1, 1);
    c.plan.dp = 4;
    c.plan.ep = 2;
    c.plan.expert_dp = 2;
    c.plan.zero_stage = zero_stage;
    c.plan.zero_group = zero_group;
    c.chunks[0].expert_parameters = 200;
    return c;
}

static void assert_collective(const PipelineCase *c, int index, const char *name, GroupKind group,
                              double message_bytes) {
    CU_ASSERT_FATAL(index < c->program.num_collectives);
    const ProgramCollective *collective = &c->program.collectives[index];
    CU_ASSERT_STRING_EQUAL(collective->name, name);
    CU_ASSERT_EQUAL(collective->group, group);
    CU_ASSERT_DOUBLE_EQUAL(collective->message_bytes, message_bytes, 1e-9);
}

// Gradients in fp32: 4 x 1000 and 4 x 200 bytes.
static void zero_0_all_reduces_gradients(void) {
    PipelineCase c = sync_case(0, 4);
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 B0.0 cgrad_all_reduce<1 cexpert_grad_all_reduce<1 O<3");
    assert_collective(&c, 0, "grad_all_reduce", GROUP_DP, 4000);
    assert_collective(&c, 1, "expert_grad_all_reduce", GROUP_EDP, 800);
    pipeline_free(&c);
}

// Gathered weights have 2 bytes.
static void zero_1_scatters_gradients_and_gathers_weights(void) {
    PipelineCase c = sync_case(1, 4);
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "F0.0 B0.0 cgrad_reduce_scatter<1 cexpert_grad_reduce_scatter<1 O<3 "
                "cparam_all_gather<4 cexpert_param_all_gather<4");
    assert_collective(&c, 0, "grad_reduce_scatter", GROUP_ZERO, 4000);
    assert_collective(&c, 1, "expert_grad_reduce_scatter", GROUP_EZERO, 800);
    assert_collective(&c, 2, "param_all_gather", GROUP_ZERO, 2000);
    assert_collective(&c, 3, "expert_param_all_gather", GROUP_EZERO, 400);
    pipeline_free(&c);
}

// Layer of 2 + 3 products and 2 norms: 7 tensors, which 4 owners share out: gradients are
// all-reduced whole, each owner sends 2000 / 4 bytes. The expert weights have 2 owners.
static void owners_broadcast_their_weights(void) {
    PipelineCase c = sync_case(1, 4);
    c.scenario.execution.stack.training.weights_by_broadcast = true;
    static const uint8_t LAYER_KIND[1] = {0};
    c.scenario.model.layer_kind = LAYER_KIND;
    c.scenario.model.kinds[0].ffn.gated = true;
    c.scenario.model.norms_per_layer = 2;
    c.chunks[0].num_layers = 1;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "F0.0 B0.0 cgrad_all_reduce<1 cexpert_grad_all_reduce<1 O<3 "
                "cparam_broadcast<4 cexpert_param_broadcast<4");
    assert_collective(&c, 0, "grad_all_reduce", GROUP_DP, 4000);
    assert_collective(&c, 2, "param_broadcast", GROUP_ZERO, 500);
    assert_collective(&c, 3, "expert_param_broadcast", GROUP_EZERO, 200);
    CU_ASSERT_EQUAL(c.program.collectives[0].num_calls, 1);
    CU_ASSERT_EQUAL(c.program.collectives[2].num_calls, 4);
    CU_ASSERT_EQUAL(c.program.collectives[3].num_calls, 2);
    pipeline_free(&c);
}

static void bf16_gradients_have_half_the_bytes(void) {
    PipelineCase c = sync_case(1, 4);
    c.scenario.execution.grad_reduce_precision = PRECISION_BF16;
    pipeline_build(&c, 0);
    assert_collective(&c, 0, "grad_reduce_scatter", GROUP_ZERO, 2000);
    assert_collective(&c, 2, "param_all_gather", GROUP_ZERO, 2000);
    pipeline_free(&c);
}

// Shards among 2 of 4 ranks: each half, 2000 bytes, is then all-reduced with the other pair. The
// expert weights have 2 replicas, which share one set of shards.
static void hybrid_shards_are_reduced_among_replicas(void) {
    PipelineCase c = sync_case(1, 2);
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "F0.0 B0.0 cgrad_reduce_scatter<1 cgrad_shard_all_reduce<1 "
                "cexpert_grad_reduce_scatter<1 O<4 cparam_all_gather<5 cexpert_param_all_gather<5");
    assert_collective(&c, 0, "grad_reduce_scatter", GROUP_ZERO, 4000);
    assert_collective(&c, 1, "grad_shard_all_reduce", GROUP_REPLICA, 2000);
    pipeline_free(&c);
}

static void zero_3_leaves_only_the_replicas(void) {
    PipelineCase c = sync_case(3, 4);
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 B0.0 O");
    pipeline_free(&c);
    c = sync_case(3, 2);
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 B0.0 cgrad_shard_all_reduce<1 O<2");
    assert_collective(&c, 0, "grad_shard_all_reduce", GROUP_REPLICA, 2000);
    pipeline_free(&c);
}

// What backwards leave whole is scattered after the last of them, as with ZeRO-1. FSDP does so
// block by block, a pipeline's stage at once.
static void whole_gradients_are_scattered_once(void) {
    PipelineCase c = sync_case(3, 4);
    c.plan.num_microbatches = 2;
    c.plan.reduces_once = true;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "F0.0 B0.0 F0.1 B0.1 cgrad_reduce_scatter<3 cexpert_grad_reduce_scatter<3 O<5");
    assert_collective(&c, 0, "grad_reduce_scatter", GROUP_ZERO, 4000);
    pipeline_free(&c);
    for (int pp = 1; pp <= 2; pp++) {
        c = pipeline_new(SCHEDULE_1F1B, pp, 1, 2);
        c.plan.dp = c.plan.zero_group = 2;
        c.plan.zero_stage = 3;
        c.plan.reduces_once = true;
        c.chunks[0].num_layers = 4;
        c.scenario.execution.overlap_grad_reduce = true;
        c.scenario.execution.stack.training.sharding = SHARDING_PER_PARAMETER;
        pipeline_build(&c, 0);
        assert_collective(&c, 0, "grad_reduce_scatter", GROUP_ZERO, pp == 1 ? 1000 : 4000);
        pipeline_free(&c);
    }
}

// 4 layers of 1000 parameters are 16000 bytes of gradients: 3 buckets of 6000, 1 of 20000, and no
// more than the 4 layers.
static void overlapped_gradients_go_in_buckets(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 1, 1, 2);
    c.plan.dp = c.plan.zero_group = 2;
    c.chunks[0].num_layers = 4;
    c.chunks[0].dense_parameters = 4000;
    c.scenario.execution.overlap_grad_reduce = true;
    c.scenario.execution.stack.training.bucket_bytes = 6000;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "F0.0 B0.0 F0.1 B0.1/1of3 cgrad_reduce_scatter/1of3<3 B0.1/2of3 "
                "cgrad_reduce_scatter/2of3<5 B0.1/3of3 cgrad_reduce_scatter/3of3<7 O<8 "
                "cparam_all_gather<9");
    assert_collective(&c, 0, "grad_reduce_scatter", GROUP_ZERO, 16000 / 3.0);
    const double buckets[] = {20000, 1};
    const int num_parts[] = {1, 4};
    for (int i = 0; i < 2; i++) {
        c.scenario.execution.stack.training.bucket_bytes = buckets[i];
        pipeline_build(&c, 0);
        const int first = instruction_find(&c.program, 0, INSTRUCTION_BACKWARD, 0, 1);
        CU_ASSERT_EQUAL(c.program.ranks[0].instructions[first].num_parts, num_parts[i]);
    }
    pipeline_free(&c);
}

static void overlapped_gathers_precede_the_first_forward(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 1, 1, 2);
    c.plan.dp = c.plan.zero_group = 2;
    c.chunks[0].num_layers = 2;
    c.scenario.execution.overlap_param_gather = true;
    c.scenario.execution.stack.training.bucket_bytes = 2000;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "cparam_all_gather/1of2 cparam_all_gather/2of2 F0.0/1of2<0 F0.0/2of2<1 B0.0 "
                "F0.1 B0.1 cgrad_reduce_scatter<6 O<7");
    assert_collective(&c, 1, "param_all_gather", GROUP_ZERO, 1000);
    pipeline_free(&c);
}

// A piece waits for the gathers of its dense and expert weights: for the later of the two.
static void pieces_wait_for_both_kinds_of_weights(void) {
    PipelineCase c = sync_case(1, 4);
    c.chunks[0].num_layers = 2;
    c.scenario.execution.overlap_param_gather = c.scenario.execution.overlap_grad_reduce = true;
    c.scenario.execution.stack.training.bucket_bytes = 2400;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "cparam_all_gather/1of2 cexpert_param_all_gather/1of2 cparam_all_gather/2of2 "
                "cexpert_param_all_gather/2of2 F0.0/1of2<1 F0.0/2of2<3 "
                "B0.0/1of2 cgrad_reduce_scatter/1of2<6 cexpert_grad_reduce_scatter/1of2<6 "
                "B0.0/2of2 cgrad_reduce_scatter/2of2<9 cexpert_grad_reduce_scatter/2of2<9 O<11");
    pipeline_free(&c);
}

// Chunks of one size share their collectives; others have their own.
static void equal_collectives_are_listed_once(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 4, 1, 1);
    c.plan.dp = c.plan.zero_group = 2;
    c.chunks[2].dense_parameters = 300;
    pipeline_build(&c, 0);
    CU_ASSERT_EQUAL(c.program.num_collectives, 4);
    assert_collective(&c, 0, "grad_reduce_scatter", GROUP_ZERO, 4000);
    assert_collective(&c, 1, "param_all_gather", GROUP_ZERO, 2000);
    assert_collective(&c, 2, "grad_reduce_scatter", GROUP_ZERO, 1200);
    assert_collective(&c, 3, "param_all_gather", GROUP_ZERO, 600);
    pipeline_free(&c);
}

// tp 2 without other replicas: 2 chunks of 30 and 20 parameters whose gradients are partial, 4
// bytes each, in one piece behind all that is computed.
static void partial_gradients_are_added_up_once(void) {
    PipelineCase c = pipeline_new(SCHEDULE_INTERLEAVED, 1, 2, 1);
    c.plan.tp = 2;
    c.chunks[0].partial_parameters = 30;
    c.chunks[1].partial_parameters = 20;
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 F1.0 B1.0 B0.0 ctp_grad_all_reduce<3 O<4");
    assert_collective(&c, 0, "tp_grad_all_reduce", GROUP_TP, 200);
    CU_ASSERT_EQUAL(c.program.collectives[0].kind, COLLECTIVE_ALL_REDUCE);
    c.plan.tp = 1;
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 F1.0 B1.0 B0.0 O");
    pipeline_free(&c);
}

// They follow the reductions, whether these hide or not. From ZeRO 2 on it is a shard of them, a
// half; or the blocks have added them up before, unless one rank has all shards.
static void partial_gradients_follow_the_reductions(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 1, 1, 1);
    c.plan.tp = c.plan.dp = c.plan.zero_group = 2;
    c.chunks[0].partial_parameters = 30;
    for (int overlap = 0; overlap < 2; overlap++) {
        c.scenario.execution.overlap_grad_reduce = overlap;
        pipeline_build(&c, 0);
        assert_text(&c, 0,
                    "F0.0 B0.0 cgrad_reduce_scatter<1 ctp_grad_all_reduce<1 O<3 "
                    "cparam_all_gather<4");
    }
    assert_collective(&c, 2, "tp_grad_all_reduce", GROUP_TP, 120);
    c.plan.zero_stage = 2;
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 B0.0 ctp_grad_all_reduce<1 O<2 cparam_all_gather<3");
    assert_collective(&c, 1, "tp_grad_all_reduce", GROUP_TP, 60);
    c.scenario.execution.stack.training.sums_in_backward = true;
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 B0.0 O cparam_all_gather<2");
    c.plan.dp = c.plan.zero_group = 1;
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 B0.0 ctp_grad_all_reduce<1 O<2");
    pipeline_free(&c);
}

// Each rank has its own, and before tied embeddings are exchanged.
static void every_rank_adds_up_its_own(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 2, 1, 1);
    c.plan.tp = 2;
    c.scenario.model.tie_word_embeddings = true;
    c.scenario.model.vocab_size = 10;
    c.scenario.model.hidden_size = 3;
    c.chunks[0].partial_parameters = 30;
    c.chunks[1].partial_parameters = 20;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "F0.0 sF0.0g0<0 rB0.0g0<0 B0.0<1 ctp_grad_all_reduce<3 sEg1<3<4 rEg1<3<4 O<6<4");
    assert_collective(&c, 0, "tp_grad_all_reduce", GROUP_TP, 120);
    assert_collective(&c, 1, "tp_grad_all_reduce", GROUP_TP, 80);
    pipeline_free(&c);
}

// Each chunk's gradients go as soon as its own last backward ends, the later chunk's first.
static void every_chunk_of_a_rank_is_reduced(void) {
    PipelineCase c = pipeline_new(SCHEDULE_INTERLEAVED, 1, 2, 1);
    c.plan.dp = c.plan.zero_group = 2;
    c.chunks[1].dense_parameters = 500;
    c.scenario.execution.overlap_grad_reduce = true;
    c.scenario.execution.overlap_param_gather = true;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "cparam_all_gather cparam_all_gather F0.0<0 F1.0<1 B1.0 cgrad_reduce_scatter<4 "
                "B0.0 cgrad_reduce_scatter<6 O<7");
    const Instruction *list = c.program.ranks[0].instructions;
    CU_ASSERT_EQUAL(c.program.collectives[list[5].collective].message_bytes, 2000);
    CU_ASSERT_EQUAL(c.program.collectives[list[7].collective].message_bytes, 4000);
    pipeline_free(&c);
}

// Vocabulary 10 x hidden 6 over tp 2, fp32: rows are padded to 128 each, 128 x 6 x 4 = 3072 bytes
// each way, after the gradients' reduction.
static void tied_embeddings_are_exchanged(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 3, 1, 1);
    c.plan.tp = 2;
    c.plan.dp = c.plan.zero_group = 2;
    c.scenario.model.tie_word_embeddings = true;
    c.scenario.model.vocab_size = 10;
    c.scenario.model.hidden_size = 6;
    pipeline_build(&c, 0);
    assert_text(&c, 0,
                "F0.0 sF0.0g0<0 rB0.0g0<0 B0.0<1 cgrad_reduce_scatter<3 sEg1<3<4 rEg1<3<4 O<6<4 "
                "cparam_all_gather<7");
    CU_ASSERT_PTR_NULL(strchr(program_text(&c.program, 1, &c.arena), 'E'));
    assert_text(&c, 2,
                "rF2.0g0 F2.0<0 B2.0 sB2.0g1<2 cgrad_reduce_scatter<2 sEg2<2<4 rEg2<2<4 O<6<4 "
                "cparam_all_gather<7");
    CU_ASSERT_EQUAL(c.program.embedding_message_bytes, 3072);
    const Instruction *first = c.program.ranks[0].instructions;
    CU_ASSERT(first[5].peer == 2 && first[5].match == 6 && first[6].match == 5);
    c.plan.zero_stage = 2; // each has the gradients of its shard
    pipeline_build(&c, 0);
    CU_ASSERT_EQUAL(c.program.embedding_message_bytes, 1536);
    pipeline_free(&c);
}

static void nothing_is_exchanged_where_one_rank_holds_both(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 1, 1, 1);
    c.scenario.model.tie_word_embeddings = true;
    c.scenario.model.vocab_size = 10;
    c.scenario.model.hidden_size = 6;
    pipeline_build(&c, 0);
    assert_text(&c, 0, "F0.0 B0.0 O");
    CU_ASSERT_EQUAL(c.program.embedding_message_bytes, 0);
    pipeline_free(&c);
    c = pipeline_new(SCHEDULE_ZB_V, 2, 2, 2);
    c.scenario.model.tie_word_embeddings = true;
    c.scenario.model.vocab_size = 10;
    c.scenario.model.hidden_size = 6;
    pipeline_build(&c, 0);
    CU_ASSERT_PTR_NULL(strchr(program_text(&c.program, 0, &c.arena), 'E'));
    CU_ASSERT_EQUAL(c.program.embedding_message_bytes, 0);
    pipeline_free(&c);
}

// tp 2, cp 3, dp 4 on each of 2 stages: GPU 24 is the first of stage 1.
static void gpus_are_numbered_stage_by_stage(void) {
    PipelineCase c = pipeline_new(SCHEDULE_1F1B, 2, 1, 1);
    c.plan.tp = 2, c.plan.cp = 3, c.plan.dp = 4;
    c.plan.zero_group = 12;
    pipeline_build(&c, 0);
    CU_ASSERT_EQUAL(c.program.multiplicity, 24);
    CU_ASSERT_EQUAL(program_gpu(&c.program, 0, 0), 0);
    CU_ASSERT_EQUAL(program_gpu(&c.program, 1, 5), 29);
    pipeline_free(&c);
}

CU_TestInfo program_tests[] = {
    {"one_f_one_b_blocks_on_every_exchange", one_f_one_b_blocks_on_every_exchange},
    {"interleaved_exchanges_pairs", interleaved_exchanges_pairs},
    {"overlapped_messages_are_received_one_ahead", overlapped_messages_are_received_one_ahead},
    {"other_whole_backwards_block_even_so", other_whole_backwards_block_even_so},
    {"gradients_go_before_the_weight_part", gradients_go_before_the_weight_part},
    {"reductions_follow_the_last_weight_part", reductions_follow_the_last_weight_part},
    {"breadth_first_never_blocks", breadth_first_never_blocks},
    {"dual_pipelines_run_pairs_and_add_their_gradients",
     dual_pipelines_run_pairs_and_add_their_gradients},
    {"one_rank_sends_nothing", one_rank_sends_nothing},
    {"zero_0_all_reduces_gradients", zero_0_all_reduces_gradients},
    {"zero_1_scatters_gradients_and_gathers_weights",
     zero_1_scatters_gradients_and_gathers_weights},
    {"owners_broadcast_their_weights", owners_broadcast_their_weights},
    {"bf16_gradients_have_half_the_bytes", bf16_gradients_have_half_the_bytes},
    {"hybrid_shards_are_reduced_among_replicas", hybrid_shards_are_reduced_among_replicas},
    {"zero_3_leaves_only_the_replicas", zero_3_leaves_only_the_replicas},
    {"whole_gradients_are_scattered_once", whole_gradients_are_scattered_once},
    {"overlapped_gradients_go_in_buckets", overlapped_gradients_go_in_buckets},
    {"overlapped_gathers_precede_the_first_forward", overlapped_gathers_precede_the_first_forward},
    {"pieces_wait_for_both_kinds_of_weights", pieces_wait_for_both_kinds_of_weights},
    {"equal_collectives_are_listed_once", equal_collectives_are_listed_once},
    {"partial_gradients_are_added_up_once", partial_gradients_are_added_up_once},
    {"partial_gradients_follow_the_reductions", partial_gradients_follow_the_reductions},
    {"every_rank_adds_up_its_own", every_rank_adds_up_its_own},
    {"every_chunk_of_a_rank_is_reduced", every_chunk_of_a_rank_is_reduced},
    {"tied_embeddings_are_exchanged", tied_embeddings_are_exchanged},
    {"nothing_is_exchanged_where_one_rank_holds_both",
     nothing_is_exchanged_where_one_rank_holds_both},
    {"gpus_are_numbered_stage_by_stage", gpus_are_numbered_stage_by_stage},
    CU_TEST_INFO_NULL,
};
