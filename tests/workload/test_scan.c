// Blocks of mixers that keep a state: products, bytes and what is kept by hand, and the time of
// their scan beside published kernels.
#include "costmodel/kernel/compute.h"
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

// 4 layers, the first three of the gated delta rule: 4 heads of keys of 16, 8 of values of 32.
#define DELTA                                                                                      \
    "{\"model_type\": \"qwen3_5_text\", \"hidden_size\": 256, \"num_hidden_layers\": 4, "          \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 32, "                   \
    "\"vocab_size\": 1024, \"intermediate_size\": 512, \"linear_num_key_heads\": 4, "              \
    "\"linear_key_head_dim\": 16, \"linear_num_value_heads\": 8, \"linear_value_head_dim\": 32}"
#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 8}"
static const double TOKENS = 2048;

static const Op *forward_of(const Block *b, const char *name) {
    return op_named(b->forward, b->num_forward, name);
}

static const Op *backward_of(const Block *b, const char *name) {
    return op_named(b->backward, b->num_backward, name);
}

// 64 numbers of keys, 256 of values: in 2 x 64 + 2 x 256 + 2 x 8 = 656. Of a token and head: chunks
// of 64 have products of 64 x 64 x (6 x 16 + 4 x 32) / 64 and so on.
static void products_of_the_rule_by_hand(void) {
    Case c;
    if (case_make(&c, DELTA, 8, TRAINING, NULL)) {
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(forward_of(b, "qkvg_proj")->flops, 2 * TOKENS * 656 * 256);
        ASSERT_CLOSE(forward_of(b, "out_proj")->flops, 2 * TOKENS * 256 * 256);
        const Op *scan = forward_of(b, "gated_delta_rule");
        const double k = 16, v = 32, chunk = 64, state = 4 * k * v;
        CU_ASSERT_EQUAL(scan->kind, OP_SCAN);
        CU_ASSERT_EQUAL(scan->scan.num_chunks, 2048 / chunk);
        ASSERT_CLOSE(scan->scan.state_flops, TOKENS * 8 * state);
        ASSERT_CLOSE(scan->flops,
                     TOKENS * 8 *
                         (chunk * (6 * k + 4 * v) + 2 * k * v + 2 * chunk * chunk / 3 + state));
        // Queries and keys of all heads of values, values, an inverse of 64 numbers, a strength in
        // 2 bytes, a decay in 4.
        ASSERT_CLOSE(scan->saved_bytes, TOKENS * 8 * (2 * (2 * k + v + chunk + 1) + 4));
        const Op *backward = backward_of(b, "gated_delta_rule");
        ASSERT_CLOSE(backward->scan.state_flops, TOKENS * 8 * 10 * k * v);
        ASSERT_CLOSE(backward->released_bytes, scan->saved_bytes);
        CU_ASSERT_TRUE(backward->backward);
        ASSERT_CLOSE(forward_of(b, "short_conv")->saved_bytes, TOKENS * 2 * (2 * 64 + 256));
        // The gate's, the norm's and the product's inputs, and the normed results.
        ASSERT_CLOSE(forward_of(b, "gated_norm")->saved_bytes, TOKENS * 4 * 2 * 256);
        ASSERT_CLOSE(b->dense_parameters,
                     model_layer_parameters(&c.scenario.model, &c.scenario.model.kinds[0]));
    }
    case_free(&c);
}

// Ranks of tp have heads of their own; those of cp send what each token has of the others' heads.
static void heads_are_split_over_tp_and_cp(void) {
    Case c;
    if (case_make(&c, DELTA, 8, TRAINING, "{\"tp\": 2, \"cp\": 2}")) {
        const Block *b = layer_block_of(&c, 0);
        const Op *scan = forward_of(b, "gated_delta_rule");
        CU_ASSERT_EQUAL(scan->scan.num_chunks, 2048 / 64);
        ASSERT_CLOSE(scan->scan.state_flops, TOKENS / 2 * 4 * 4 * 16 * 32);
        ASSERT_CLOSE(collective_bytes(b->forward, b->num_forward, COLLECTIVE_ALL_TO_ALL, GROUP_CP),
                     TOKENS / 2 * (656 / 2 + 256 / 2) * 2);
        c.scenario.parallel.tp = 8; // of 4 heads of keys
        CU_ASSERT_NOT_EQUAL(plan_resolve(&c.scenario, &c.arena, &c.plan).code, STATUS_OK);
    }
    case_free(&c);
}

// 8 x (32 + 32) numbers of queries and their gates, and 2 x 4 x 32 of keys and values.
static void gates_of_the_attention_are_projected_with_the_queries(void) {
    Case c;
    if (case_make(&c, DELTA, 8, TRAINING, NULL)) {
        const Block *b = layer_block_of(&c, 3);
        ASSERT_CLOSE(forward_of(b, "qkv_proj")->flops, 2 * TOKENS * (512 + 256) * 256);
        const Op *gate = forward_of(b, "output_gate");
        ASSERT_CLOSE(gate->saved_bytes, TOKENS * (256 * 2 + 256 * 2));
        CU_ASSERT_EQUAL(forward_of(b, "out_proj")->saved_bytes, 0);
        ASSERT_CLOSE(b->dense_parameters,
                     model_layer_parameters(&c.scenario.model, &c.scenario.model.kinds[1]));
    }
    case_free(&c);
}

// Chunks of 256 tokens are sequences of their own: 128.5 keys on average.
static void chunks_are_sequences_of_their_own(void) {
    Case c;
    if (case_make(
            &c,
            "{\"model_type\": \"llama4_text\", \"hidden_size\": 256, \"num_hidden_layers\": 4, "
            "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 32, "
            "\"vocab_size\": 1024, \"intermediate_size\": 512, \"num_local_experts\": 4, "
            "\"num_experts_per_tok\": 1, \"attention_chunk_size\": 256}",
            8, TRAINING, NULL)) {
        const Op *chunked = forward_of(layer_block_of(&c, 0), "core_attn");
        ASSERT_CLOSE(chunked->flops, TOKENS * 4 * 128.5 * 8 * 32);
        CU_ASSERT_EQUAL(chunked->attention.sequences, 8);
        CU_ASSERT_EQUAL(chunked->attention.keys, 256);
        const Op *whole = forward_of(layer_block_of(&c, 3), "core_attn");
        ASSERT_CLOSE(whole->flops, TOKENS * 4 * 1024.5 * 8 * 32);
    }
    case_free(&c);
}

// A layer that is its feed-forward alone has no attention and one norm.
static void layers_of_one_half_have_one_branch(void) {
    Case c;
    if (case_make(
            &c,
            "{\"model_type\": \"nemotron_h\", \"hidden_size\": 256, \"num_hidden_layers\": 3, "
            "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 32, "
            "\"vocab_size\": 1024, \"intermediate_size\": 512, \"mamba_num_heads\": 8, "
            "\"mamba_head_dim\": 32, \"n_groups\": 4, \"ssm_state_size\": 16, "
            "\"hybrid_override_pattern\": \"M*-\"}",
            8, TRAINING, NULL)) {
        const Model *m = &c.scenario.model;
        for (int i = 0; i < 3; i++) {
            const Block *b = layer_block_of(&c, i);
            int num_norms = 0, num_residuals = 0;
            for (int o = 0; o < b->num_forward; o++) {
                num_norms += strcmp(b->forward[o].name, "input_norm") == 0 ||
                             strcmp(b->forward[o].name, "pre_mlp_norm") == 0;
                num_residuals += strcmp(b->forward[o].name, "residual_add") == 0;
            }
            CU_ASSERT_EQUAL(num_norms, 1);
            CU_ASSERT_EQUAL(num_residuals, 1);
            ASSERT_CLOSE(b->dense_parameters,
                         model_layer_parameters(m, &m->kinds[m->layer_kind[i]]));
        }
        // In: 2 x 256 + 2 x 64 + 8. A scan of chunks of 128: keys with queries once a group, states
        // twice, results inside a chunk.
        const Block *mamba = layer_block_of(&c, 0);
        ASSERT_CLOSE(forward_of(mamba, "in_proj")->flops, 2 * TOKENS * 648 * 256);
        ASSERT_CLOSE(forward_of(mamba, "state_space")->flops,
                     TOKENS * (2 * 128 * 16 * 4 + 2 * 2 * 16 * 32 * 8 + 128 * 32 * 8));
    }
    case_free(&c);
}

// Milliseconds of flash-linear-attention 0.5.1 on H200 (QwenLM/FlashQLA, benchmark/
// benchmark_results_H200.txt): one sequence, 64 heads of values over tp.
static const struct {
    int seq_len, tp;
    double forward_ms, backward_ms; // 0: not measured
} MEASURED[] = {
    {32768, 1, 3.331, 0},     {32768, 2, 1.885, 5.697}, {32768, 4, 1.241, 3.701},
    {32768, 8, 0.902, 2.743}, {8192, 1, 0.814, 0},      {8192, 2, 0.466, 1.444},
    {8192, 4, 0.316, 0.957},  {8192, 8, 0.234, 0.722},  {4096, 1, 0.417, 0},
    {4096, 2, 0.244, 0},      {4096, 4, 0.166, 0},      {4096, 8, 0.132, 0},
};

static void scans_take_what_published_kernels_take(void) {
    Gpu gpu = made_up_gpu();
    gpu.num_sms = 132;
    gpu.peak_flops_per_s[PRECISION_BF16] = 989e12;
    gpu.memory_bandwidth_bytes_per_s = 4.8e12;
    gpu.efficiency.memory_frac = 0.866;
    gpu.efficiency.launch_s = 2.47e-6;
    const Pool pool = {.gpu = gpu, .power_watts_per_gpu = 1e4};
    for (size_t i = 0; i < sizeof MEASURED / sizeof *MEASURED; i++) {
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena, "{\"seq_len\": %d, \"global_batch\": 8}", MEASURED[i].seq_len);
        const char *parallel = arena_printf(&arena, "{\"tp\": %d}", MEASURED[i].tp);
        if (case_make(&c, "\"qwen3.5-122b-a10b\"", 8, training, parallel)) {
            const Block *b = layer_block_of(&c, 0);
            const double forward_ms = 1e3 * op_compute_s(&pool, forward_of(b, "gated_delta_rule")),
                         backward_ms =
                             1e3 * op_compute_s(&pool, backward_of(b, "gated_delta_rule"));
            CU_ASSERT_DOUBLE_EQUAL(forward_ms / MEASURED[i].forward_ms, 1, 0.1);
            if (MEASURED[i].backward_ms > 0)
                CU_ASSERT_DOUBLE_EQUAL(backward_ms / MEASURED[i].backward_ms, 1, 0.1);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

CU_TestInfo scan_tests[] = {
    {"products_of_the_rule_by_hand", products_of_the_rule_by_hand},
    {"heads_are_split_over_tp_and_cp", heads_are_split_over_tp_and_cp},
    {"gates_of_the_attention_are_projected_with_the_queries",
     gates_of_the_attention_are_projected_with_the_queries},
    {"chunks_are_sequences_of_their_own", chunks_are_sequences_of_their_own},
    {"layers_of_one_half_have_one_branch", layers_of_one_half_have_one_branch},
    {"scans_take_what_published_kernels_take", scans_take_what_published_kernels_take},
    CU_TEST_INFO_NULL,
};
