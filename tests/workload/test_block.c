// Operators of a block: their shapes, flops and messages. What they keep is in test_block_memory.c.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

static const double TOKENS = 2048, HIDDEN = 1024; // of one micro-batch

static double forward_bytes(const Block *b, CollectiveKind kind, GroupKind group) {
    return collective_bytes(b->forward, b->num_forward, kind, group);
}

static double backward_bytes(const Block *b, CollectiveKind kind, GroupKind group) {
    return collective_bytes(b->backward, b->num_backward, kind, group);
}

// 12 h^2 weights a layer: 2 flops forward and 4 backward for each and token, shared by tp ranks;
// with full recomputation the backward does the forward's once more.
static void products_follow_the_weights(void) {
    static const char *const PLANS[] = {"{\"tp\": 1}", "{\"tp\": 4}",
                                        "{\"tp\": 4, \"sequence_parallel\": false}",
                                        "{\"tp\": 2, \"recompute\": \"full\"}"};
    const double forward = 2 * TOKENS * 12 * HIDDEN * HIDDEN;
    for (int i = 0; i < 4; i++) {
        Case c;
        if (case_make(&c, MADE_UP_GPT, 8, TRAINING, PLANS[i])) {
            const Block *b = layer_block_of(&c, 0);
            ASSERT_CLOSE(gemm_flops(b->forward, b->num_forward), forward / c.plan.tp);
            ASSERT_CLOSE(gemm_flops(b->backward, b->num_backward),
                         forward / c.plan.tp * (i == 3 ? 3 : 2));
        }
        case_free(&c);
    }
}

// Attention 2 h^2 + 2 h 4 64 weights, router 8 h, experts 3 h 512 each: 2 routed ones and the
// shared.
static void experts_work_on_routed_tokens(void) {
    const double weights =
        2 * HIDDEN * HIDDEN + 2 * HIDDEN * 256 + 8 * HIDDEN + 3 * 3 * HIDDEN * 512;
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, TRAINING, "{\"ep\": 4}")) {
        const Block *b = layer_block_of(&c, 1);
        ASSERT_CLOSE(gemm_flops(b->forward, b->num_forward), 2 * TOKENS * weights);
        ASSERT_CLOSE(gemm_flops(b->backward, b->num_backward), 4 * TOKENS * weights);
        // 2 of 8 experts on a rank; 4096 tokens arrive, 2048 for each.
        const Op *fc1 = op_named(b->forward, b->num_forward, "experts_fc1");
        CU_ASSERT_EQUAL(fc1->gemm.groups, 2);
        CU_ASSERT_EQUAL(fc1->gemm.m, 2048);
        CU_ASSERT_EQUAL(fc1->gemm.n, 1024);
        CU_ASSERT_EQUAL(fc1->gemm.k, 1024);
    }
    case_free(&c);
}

static void no_collectives_without_groups(void) {
    Case c;
    if (case_make(&c, MADE_UP_MLA, 8, TRAINING, NULL))
        for (int i = 0; i < MAX_BLOCKS; i++) {
            const Block *b = &c.workload.blocks[i];
            for (int k = 0; k < b->num_forward; k++)
                CU_ASSERT_NOT_EQUAL(b->forward[k].kind, OP_COLLECTIVE);
            for (int k = 0; k < b->num_backward; k++)
                CU_ASSERT_NOT_EQUAL(b->backward[k].kind, OP_COLLECTIVE);
        }
    case_free(&c);
}

// Korthikanti et al. 2022, section 4.2.1: without sequence parallelism 2 all-reduces of 2sbh
// forward and 2 backward; with it 2 all-gathers and 2 reduce-scatters forward, as many backward and
// 2 more all-gathers of the inputs for the weight gradients.
static void assert_tensor_parallel(int tp) {
    const double sbh = 2 * TOKENS * HIDDEN;
    Case c;
    Arena arena = {0};
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, arena_printf(&arena, "{\"tp\": %d}", tp))) {
        const Block *b = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_ALL_REDUCE, GROUP_TP), 0);
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_TP), 2 * sbh);
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_REDUCE_SCATTER, GROUP_TP), 2 * sbh);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_TP), 4 * sbh);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_REDUCE_SCATTER, GROUP_TP), 2 * sbh);
        c.scenario.parallel.sequence_parallel = 0;
        if (case_resolve(&c)) b = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_ALL_REDUCE, GROUP_TP), 2 * sbh);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_ALL_REDUCE, GROUP_TP), 2 * sbh);
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_TP), 0);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_TP), 0);
        // The loss: 3 fp32 numbers a token.
        const Block *head = &c.workload.blocks[BLOCK_HEAD];
        CU_ASSERT_EQUAL(forward_bytes(head, COLLECTIVE_ALL_REDUCE, GROUP_TP), TOKENS * 12);
    }
    case_free(&c);
    arena_free(&arena);
}

static void tensor_parallel_messages(void) {
    assert_tensor_parallel(2);
    assert_tensor_parallel(4);
    assert_tensor_parallel(8);
}

// In 8 bits what is gathered has half the bytes; what is summed stays in 16.
static void quantized_values_are_gathered_quantized(void) {
    const double sbh = 2 * TOKENS * HIDDEN;
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 64, \"precision\": \"fp8\"}",
                  "{\"tp\": 4}")) {
        const Block *b = layer_block_of(&c, 0), *head = &c.workload.blocks[BLOCK_HEAD];
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_TP), sbh);
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_REDUCE_SCATTER, GROUP_TP), 2 * sbh);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_TP), 2 * sbh);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_REDUCE_SCATTER, GROUP_TP), 2 * sbh);
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "fc1")->precision, PRECISION_FP8);
        const Op *logits = op_named(head->forward, head->num_forward, "lm_head");
        CU_ASSERT_EQUAL(logits->precision, PRECISION_BF16);
        CU_ASSERT_EQUAL(forward_bytes(head, COLLECTIVE_ALL_GATHER, GROUP_TP), sbh);
    }
    case_free(&c);
}

// 4 key-value heads of 64 over tp 8: each rank holds 2 query heads and a whole key-value head.
static void key_value_heads_are_replicated(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, TRAINING, "{\"tp\": 8}")) {
        const Block *b = layer_block_of(&c, 0);
        const Op *qkv = op_named(b->forward, b->num_forward, "qkv_proj");
        CU_ASSERT_EQUAL(qkv->gemm.n, 2 * 64 + 64 + 64);
    }
    case_free(&c);
}

// Heads of 64, 16 of them: a query sees (s + 1) / 2 keys where causal, else s. Two products of 2 x
// 64 flops forward, five backward. Latent attention: query and key 96 wide, value 64; the backward
// has three products of the first and two of the second.
static void attention_flops(void) {
    const double causal = TOKENS * (TOKENS + 1) / 2 * 16;
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, NULL)) {
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(op_named(b->forward, b->num_forward, "core_attn")->flops, causal * 2 * 128);
        ASSERT_CLOSE(op_named(b->backward, b->num_backward, "core_attn")->flops, causal * 5 * 128);
        c.scenario.training.causal = false;
        if (case_resolve(&c)) b = layer_block_of(&c, 0);
        ASSERT_CLOSE(op_named(b->forward, b->num_forward, "core_attn")->flops,
                     TOKENS * TOKENS * 16 * 2 * 128);
    }
    case_free(&c);
    if (case_make(&c, MADE_UP_MLA, 8, TRAINING, NULL)) {
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(op_named(b->forward, b->num_forward, "core_attn")->flops,
                     causal * 2 * (96 + 64));
        ASSERT_CLOSE(op_named(b->backward, b->num_backward, "core_attn")->flops,
                     causal * 2 * (3 * 96 + 2 * 64));
    }
    case_free(&c);
}

// A window of 512 of 2048 tokens, causal: 512 keys but for the first 512 queries, which see half of
// them on average: 512 - 512 / 8.
static void windows_bound_the_keys(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, NULL)) {
        c.scenario.model.kinds[0].mixer.window = 512;
        if (case_resolve(&c)) {
            const Block *b = layer_block_of(&c, 0);
            const Op *attention = op_named(b->forward, b->num_forward, "core_attn");
            ASSERT_CLOSE(attention->flops, TOKENS * 448 * 16 * 2 * 128);
            CU_ASSERT_EQUAL(attention_op_tokens(&attention->attention), 512);
        }
    }
    case_free(&c);
}

// Without fusion all s x s scores of 16 heads are computed, masked ones too: 2 x 64 flops each,
// twice; backward twice that. The gradients have their own shapes.
static void unfused_attention_is_four_products(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 64, \"attention\": \"unfused\"}", NULL)) {
        const Block *b = layer_block_of(&c, 0);
        const double scores = TOKENS * TOKENS * 16, weights = 2 * TOKENS * 12 * HIDDEN * HIDDEN;
        ASSERT_CLOSE(gemm_flops(b->forward, b->num_forward), weights + scores * 2 * 128);
        ASSERT_CLOSE(gemm_flops(b->backward, b->num_backward), 2 * weights + scores * 4 * 128);
        const Op *dq = op_named(b->backward, b->num_backward, "scores");
        CU_ASSERT_EQUAL(dq->gemm.m, 2048);
        CU_ASSERT_EQUAL(dq->gemm.n, 64);
        CU_ASSERT_EQUAL(dq->gemm.k, 2048);
    }
    case_free(&c);
}

// What divides the numbers of a row: 8 heads of 108 and their 864 values; backward as forward. The
// vocabulary counts as filled up.
static void rows_that_are_no_multiple_of_8_are_seen(void) {
    static const char MODEL[] = "{\"model_type\": \"generic\", \"hidden_size\": 864, "
                                "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, "
                                "\"intermediate_size\": 3457, \"vocab_size\": 1003}";
    Case c;
    if (case_make(&c, MODEL, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 64, \"attention\": \"unfused\"}", NULL)) {
        static const char *const NAMES[] = {"qkv_proj", "scores", "context", "fc1", "fc2"};
        static const int ALIGNED[] = {8, 4, 4, 1, 1};
        const Block *b = layer_block_of(&c, 0), *head = &c.workload.blocks[BLOCK_HEAD];
        for (int i = 0; i < 5; i++) {
            CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, NAMES[i])->gemm.aligned,
                            ALIGNED[i]);
            CU_ASSERT_EQUAL(op_named(b->backward, b->num_backward, NAMES[i])->gemm.aligned,
                            ALIGNED[i]);
        }
        CU_ASSERT_EQUAL(op_named(head->forward, head->num_forward, "lm_head")->gemm.aligned, 8);
    }
    case_free(&c);
}

static void assert_context(const char *method, CollectiveKind kind, double forward, double backward,
                           double scattered) {
    Case c;
    Arena arena = {0};
    const char *parallel = arena_printf(&arena, "{\"cp\": 4, \"cp_method\": \"%s\"}", method);
    if (case_make(&c, MADE_UP_MOE, 8, TRAINING, parallel)) {
        const Block *b = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(forward_bytes(b, kind, GROUP_CP), forward);
        CU_ASSERT_EQUAL(backward_bytes(b, kind, GROUP_CP), backward);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_REDUCE_SCATTER, GROUP_CP), scattered);
    }
    case_free(&c);
    arena_free(&arena);
}

// cp 4: 512 tokens a rank; keys and values 2 x 4 x 64 numbers of 2 bytes a token, queries and
// results 1024. Ring: keys and values in each step, backward with their gradients. All-gather:
// those of all ranks, again in the backward, whose gradients are scattered. Ulysses: everything
// there and back.
static void context_parallel_messages(void) {
    const double kv = 512 * 512 * 2, q = 512 * 1024 * 2;
    assert_context("ring", COLLECTIVE_RING_EXCHANGE, kv, 2 * kv, 0);
    assert_context("all-gather", COLLECTIVE_ALL_GATHER, 4 * kv, 4 * kv, 4 * kv);
    assert_context("ulysses", COLLECTIVE_ALL_TO_ALL, 2 * q + kv, 2 * q + kv, 0);
}

static void assert_dispatch(const char *dispatcher, const char *routing, CollectiveKind kind,
                            double tokens) {
    Case c;
    Arena arena = {0};
    const char *training =
        arena_printf(&arena,
                     "{\"seq_len\": 2048, \"global_batch\": 64, \"moe_dispatcher\": \"%s\", "
                     "\"moe_routing\": %s}",
                     dispatcher, routing);
    if (case_make(&c, MADE_UP_MOE, 8, training, "{\"ep\": 4}")) {
        const Block *b = layer_block_of(&c, 1);
        ASSERT_CLOSE(forward_bytes(b, kind, GROUP_EP), tokens * 2 * HIDDEN);
        ASSERT_CLOSE(backward_bytes(b, kind, GROUP_EP), tokens * 2 * HIDDEN);
    }
    case_free(&c);
    arena_free(&arena);
}

// Each token goes to 2 of 8 experts, 2 on each of 4 ranks, and back: 4 messages of 2048 tokens. Of
// two different experts the second is on the rank of the first in 1 case of 7: 2 - 1/7 ranks a
// token. All-gather: the tokens of all 4 ranks, gathered in one direction and scattered in the
// other.
static void dispatchers_move_tokens(void) {
    assert_dispatch("alltoall", "\"balanced\"", COLLECTIVE_ALL_TO_ALL, 2 * 2 * 2048);
    assert_dispatch("alltoall", "{\"imbalance\": 1.5}", COLLECTIVE_ALL_TO_ALL, 1.5 * 2 * 2 * 2048);
    assert_dispatch("deepep", "\"balanced\"", COLLECTIVE_DISPATCH, (2 - 1.0 / 7) * 2048);
    assert_dispatch("deepep", "\"balanced\"", COLLECTIVE_COMBINE, (2 - 1.0 / 7) * 2048);
    assert_dispatch("allgather", "\"balanced\"", COLLECTIVE_ALL_GATHER, 4 * 2048);
    assert_dispatch("allgather", "\"balanced\"", COLLECTIVE_REDUCE_SCATTER, 4 * 2048);
}

// What runs beside another micro-batch are the messages of the experts alone.
static void only_expert_messages_are_hidden(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 64, \"ep_overlap\": true}",
                  "{\"ep\": 2, \"tp\": 2}")) {
        const Block *b = layer_block_of(&c, 1);
        for (int i = 0; i < b->num_forward; i++)
            CU_ASSERT_EQUAL(op_beside(&b->forward[i]) == BESIDE_MICROBATCH,
                            b->forward[i].stream == STREAM_EP);
        for (int i = 0; i < b->num_backward; i++)
            CU_ASSERT_EQUAL(op_beside(&b->backward[i]) == BESIDE_MICROBATCH,
                            b->backward[i].stream == STREAM_EP);
    }
    case_free(&c);
}

// Expert tensor parallelism gathers the 2 x 4096 routed tokens of its ranks, and scatters the
// results.
static void split_experts_gather_their_tokens(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, TRAINING, "{\"ep\": 2, \"etp\": 2}")) {
        const Block *b = layer_block_of(&c, 1);
        const double bytes = 2 * 4096 * 2 * HIDDEN;
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_ETP), bytes);
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_REDUCE_SCATTER, GROUP_ETP), bytes);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_ETP), bytes);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_REDUCE_SCATTER, GROUP_ETP), bytes);
        const Op *fc1 = op_named(b->forward, b->num_forward, "experts_fc1");
        CU_ASSERT_EQUAL(fc1->gemm.groups * fc1->gemm.m, 8192); // of 4 experts, each half as wide
        CU_ASSERT_EQUAL(fc1->gemm.n, 512);
    }
    case_free(&c);
}

// torchtitan gathers fp32 weights in bf16 and scatters gradients in fp32, for each layer: forward,
// and again in the backward unless the weights stay.
static void sharded_weights_are_gathered(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 64, \"stack\": \"torchtitan\"}", NULL)) {
        const Block *b = layer_block_of(&c, 0);
        const double parameters = b->dense_parameters;
        CU_ASSERT_EQUAL(forward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_ZERO), 2 * parameters);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_ZERO), 2 * parameters);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_REDUCE_SCATTER, GROUP_ZERO), 4 * parameters);
        c.scenario.parallel.reshard_after_forward = 0;
        if (case_resolve(&c)) b = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(backward_bytes(b, COLLECTIVE_ALL_GATHER, GROUP_ZERO), 0);
    }
    case_free(&c);
}

// fp16 on a GPU without bf16: nothing may be priced in a format that it does not have.
static void all_products_run_in_supported_formats(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 64, \"precision\": \"fp16\"}", NULL))
        for (int i = 0; i < MAX_BLOCKS; i++)
            for (int k = 0; k < c.workload.blocks[i].num_forward; k++) {
                const Op *op = &c.workload.blocks[i].forward[k];
                if (op->kind == OP_GEMM) CU_ASSERT_EQUAL(op->precision, PRECISION_FP16);
            }
    case_free(&c);
}

CU_TestInfo block_tests[] = {
    {"products_follow_the_weights", products_follow_the_weights},
    {"experts_work_on_routed_tokens", experts_work_on_routed_tokens},
    {"no_collectives_without_groups", no_collectives_without_groups},
    {"tensor_parallel_messages", tensor_parallel_messages},
    {"quantized_values_are_gathered_quantized", quantized_values_are_gathered_quantized},
    {"key_value_heads_are_replicated", key_value_heads_are_replicated},
    {"attention_flops", attention_flops},
    {"windows_bound_the_keys", windows_bound_the_keys},
    {"unfused_attention_is_four_products", unfused_attention_is_four_products},
    {"rows_that_are_no_multiple_of_8_are_seen", rows_that_are_no_multiple_of_8_are_seen},
    {"context_parallel_messages", context_parallel_messages},
    {"dispatchers_move_tokens", dispatchers_move_tokens},
    {"only_expert_messages_are_hidden", only_expert_messages_are_hidden},
    {"split_experts_gather_their_tokens", split_experts_gather_their_tokens},
    {"sharded_weights_are_gathered", sharded_weights_are_gathered},
    {"all_products_run_in_supported_formats", all_products_run_in_supported_formats},
    CU_TEST_INFO_NULL,
};
