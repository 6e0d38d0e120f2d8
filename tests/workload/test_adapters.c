// Adapters beside frozen products: weights, products, bytes and what is kept, by hand.
#include "costmodel/memory/memory.h"
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-12 * fabs(expected))

#define LLAMA "\"llama-3-8b\""
#define ALL                                                                                        \
    "[\"q_proj\", \"k_proj\", \"v_proj\", \"o_proj\", \"gate_proj\", \"up_proj\", \"down_proj\"]"
#define JOB(stack, more)                                                                           \
    "{\"seq_len\": 2048, \"global_batch\": 8, \"compile\": true, \"stack\": \"" stack "\"" more "}"
#define ADAPTERS(more) ", \"adapters\": {\"kind\": \"lora\", \"rank\": 16, " more "}"
#define LORA ADAPTERS("\"targets\": " ALL)
#define QLORA ADAPTERS("\"targets\": " ALL ", \"base_dtype\": \"nf4\"")

#define FROZEN(list) ", \"frozen\": [" list "]"

static const double TOKENS = 2048, HIDDEN = 4096, KV = 1024, INNER = 14336, RANK = 16;

// Weights of a layer's seven matrices, and of the adapters beside them.
static const double MATRICES = 2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 3 * 4096.0 * 14336;
static const double ADAPTED = 16.0 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336));

// The layer's block of a job on eight GPUs, each with all of it, in c.
static const Block *layer_of(Case *c, const char *training, const char *parallel) {
    return case_make(c, LLAMA, 8, training, parallel) ? layer_block_of(c, 0) : NULL;
}

// What a block keeps and does not give back.
static double left_bytes(const Block *b) {
    double left = b->saved_bytes;
    for (int k = 0; k < b->num_backward; k++)
        left += b->backward[k].saved_bytes - b->backward[k].released_bytes;
    return left;
}

static int num_named(const Op *ops, int num_ops, const char *name) {
    int count = 0;
    for (int i = 0; i < num_ops; i++) count += strcmp(ops[i].name, name) == 0;
    return count;
}

// 32 layers of 16 x (8192 + 5120 + 5120 + 8192 + 3 x 18432) = 1,310,720.
static void rank_16_of_an_8b_model_trains_42_million(void) {
    Case c;
    if (layer_of(&c, JOB("hf-fsdp2", LORA), "{\"zero_stage\": 0}")) {
        const FineTuning *tuning = &c.scenario.training.tuning;
        CU_ASSERT_EQUAL(fine_tuning_trained_parameters(&c.scenario.model, tuning), 41943040);
        CU_ASSERT_EQUAL(c.workload.chunks[0].dense_parameters, 41943040);
        CU_ASSERT_EQUAL(c.workload.chunks[0].partial_parameters, 0);
    }
    case_free(&c);
}

// A number of 4 bits, a byte for 64 of them, 4 for 64 x 256: 0.5 + 1/64 + 1/4096 = 0.515869140625
// bytes, of 32 x 218,103,808 numbers. The two tables of 128,256 rows and 65 norms stay in 16 bits.
static void a_base_of_4_bits_by_hand(void) {
    Case c;
    if (layer_of(&c, JOB("hf-fsdp2", QLORA), "{\"zero_stage\": 0}")) {
        const double rest = 2 * 128256.0 * HIDDEN + 65 * HIDDEN;
        const double bytes = 32 * MATRICES * 0.515869140625 + 2 * rest;
        ASSERT_CLOSE(c.workload.chunks[0].frozen.dense, bytes);
        const RankMemory m = memory_closed_form(&c.scenario, &c.plan, &c.workload, 0);
        ASSERT_CLOSE(m.frozen_bytes, bytes);
        ASSERT_CLOSE(m.weights_bytes, bytes + 4 * 41943040.0); // adapters in fp32
        CU_ASSERT_EQUAL(m.optimizer_bytes, 8 * 41943040.0);    // two moments
    }
    case_free(&c);
}

static void scales_that_are_not_quantized_take_4_bytes(void) {
    FineTuning tuning = {.adapters = {.kind = ADAPTER_LORA, .base_dtype = BASE_FP4}};
    CU_ASSERT_EQUAL(base_matrix_bytes(&tuning), 0.5 + 4.0 / 64);
    tuning.adapters.base_dtype = BASE_BF16;
    CU_ASSERT_EQUAL(base_matrix_bytes(&tuning), 2);
}

// Forward: the base's products and 2 x tokens x rank x (n + k). Backward: of the base the input's
// gradients alone, of adapters both.
static void products_by_hand(void) {
    Case c, whole;
    const Block *b = layer_of(&c, JOB("hf-fsdp2", LORA), "{\"zero_stage\": 0}");
    const Block *full = layer_of(&whole, JOB("hf-fsdp2", ""), "{\"zero_stage\": 0}");
    if (b && full) {
        const double base = gemm_flops(full->forward, full->num_forward);
        ASSERT_CLOSE(base, 2 * TOKENS * MATRICES);
        ASSERT_CLOSE(gemm_flops(b->forward, b->num_forward), base + 2 * TOKENS * ADAPTED);
        ASSERT_CLOSE(gemm_flops(b->backward, b->num_backward), base + 4 * TOKENS * ADAPTED);
        CU_ASSERT_EQUAL(num_named(b->forward, b->num_forward, "lora_a"), 7);
        CU_ASSERT_EQUAL(num_named(b->backward, b->num_backward, "lora_b"), 14);
        const Op *a = op_named(b->forward, b->num_forward, "lora_a");
        CU_ASSERT_EQUAL(a->gemm.m, TOKENS);
        CU_ASSERT_EQUAL(a->gemm.n, RANK);
        CU_ASSERT_EQUAL(a->gemm.k, HIDDEN);
        CU_ASSERT_EQUAL(a->num_kernels, 1);
        // 4 FLOPs a token and frozen weight that multiplies, 6 an adapter's; attention as ever.
        const double tokens = 8 * TOKENS, weights = 32 * MATRICES + 128256 * HIDDEN;
        ASSERT_CLOSE(whole.workload.model_flops - c.workload.model_flops,
                     tokens * (2 * weights - 6 * 32 * ADAPTED));
    }
    case_free(&c);
    case_free(&whole);
}

// Every product's input is read by its A, whose result is kept for B.
static void adapted_products_keep_their_inputs(void) {
    Case c, whole;
    const Block *b = layer_of(&c, JOB("hf-fsdp2", LORA), "{\"zero_stage\": 0}");
    const Block *full = layer_of(&whole, JOB("hf-fsdp2", ""), "{\"zero_stage\": 0}");
    if (b && full) ASSERT_CLOSE(b->saved_bytes, full->saved_bytes + 7 * TOKENS * RANK * 2);
    case_free(&c);
    case_free(&whole);
}

// With adapters of queries alone nobody reads the second norm's output nor the activation's, of 2
// bytes; the attention keeps its own.
static void frozen_products_do_not_keep_theirs(void) {
    Case c, whole;
    const Block *b =
        layer_of(&c, JOB("hf-fsdp2", ADAPTERS("\"targets\": [\"q_proj\"]")), "{\"zero_stage\": 0}");
    const Block *full = layer_of(&whole, JOB("hf-fsdp2", ""), "{\"zero_stage\": 0}");
    if (b && full)
        ASSERT_CLOSE(b->saved_bytes,
                     full->saved_bytes - TOKENS * 2 * (HIDDEN + INNER) + TOKENS * RANK * 2);
    case_free(&c);
    case_free(&whole);
}

// A dropped-out input is kept in its place, with a mask: of q, k, v, gate and up one each.
static void dropout_keeps_an_input_of_each_adapter(void) {
    Case c, plain;
    const Block *b = layer_of(&c, JOB("hf-fsdp2", ADAPTERS("\"dropout\": 0.1, \"targets\": " ALL)),
                              "{\"zero_stage\": 0}");
    const Block *without = layer_of(&plain, JOB("hf-fsdp2", LORA), "{\"zero_stage\": 0}");
    const double inputs = 6 * HIDDEN + INNER; // q, k, v, o, gate, up; down
    if (b && without)
        ASSERT_CLOSE(b->saved_bytes,
                     without->saved_bytes + TOKENS * (3 * inputs - 2 * (2 * HIDDEN + INNER)));
    case_free(&c);
    case_free(&plain);
}

// Four products, each of which reads 0.5159 bytes a number and writes 2, in both passes, and once
// more where the forward runs again. A checkpoint that ends with the last tensor that is kept, A's
// result beside the last product, has run that.
static void a_base_of_4_bits_is_dequantized_at_each_use(void) {
    Case c;
    const Block *b = layer_of(&c, JOB("hf-fsdp2", QLORA), "{\"zero_stage\": 0}");
    if (b) {
        double bytes = 0;
        for (int i = 0; i < b->num_forward; i++)
            if (strcmp(b->forward[i].name, "dequantize") == 0) bytes += b->forward[i].bytes;
        ASSERT_CLOSE(bytes, MATRICES * 2.515869140625);
        CU_ASSERT_EQUAL(num_named(b->forward, b->num_forward, "dequantize"), 4);
        CU_ASSERT_EQUAL(num_named(b->backward, b->num_backward, "dequantize"), 4);
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "dequantize")->num_kernels, 9);
    }
    case_free(&c);
    b = layer_of(&c, JOB("hf-fsdp2", QLORA), "{\"zero_stage\": 0, \"recompute\": \"full\"}");
    if (b) CU_ASSERT_EQUAL(num_named(b->backward, b->num_backward, "dequantize"), 8);
    case_free(&c);
}

// No gradient goes below the first layer's adapters.
static void an_embedding_has_no_backward(void) {
    Case c;
    if (layer_of(&c, JOB("hf-fsdp2", LORA), "{\"zero_stage\": 0}")) {
        const Block *b = &c.workload.blocks[BLOCK_EMBEDDING];
        CU_ASSERT_EQUAL(b->num_backward, 0);
        CU_ASSERT_EQUAL(b->dense_parameters, 0);
        CU_ASSERT_EQUAL(b->frozen.dense, 2 * 128256 * HIDDEN);
        CU_ASSERT_EQUAL(b->saved_bytes, 0);
    }
    case_free(&c);
}

// ZeRO 3 over eight ranks gathers the layer as it is stored, adapters in 16 bits beside it, and
// scatters the gradients of adapters alone.
static void shards_are_gathered_as_they_are_stored(void) {
    Case c;
    const Block *b = layer_of(&c, JOB("hf-fsdp2", QLORA), "{\"zero_stage\": 3}");
    if (b) {
        const double gathered = MATRICES * 0.515869140625 + 2 * 2 * HIDDEN + 2 * ADAPTED;
        ASSERT_CLOSE(
            collective_bytes(b->forward, b->num_forward, COLLECTIVE_ALL_GATHER, GROUP_ZERO),
            gathered);
        ASSERT_CLOSE(
            collective_bytes(b->backward, b->num_backward, COLLECTIVE_REDUCE_SCATTER, GROUP_ZERO),
            2 * ADAPTED);
        const RankMemory m = memory_closed_form(&c.scenario, &c.plan, &c.workload, 0);
        ASSERT_CLOSE(m.frozen_bytes, c.workload.chunks[0].frozen.dense / 8);
    }
    case_free(&c);
}

// Megatron Bridge: what A makes is gathered or added up over tp, what B makes beside a row
// gathered; weights are a half of each.
static void tensor_parallel_ranks_share_adapters(void) {
    Case c;
    const Block *b =
        layer_of(&c, JOB("megatron-core", LORA), "{\"tp\": 2, \"sequence_parallel\": false}");
    if (b) {
        ASSERT_CLOSE(b->dense_parameters, ADAPTED / 2);
        CU_ASSERT_EQUAL(b->partial_parameters, 0);
        ASSERT_CLOSE(b->frozen.dense, MATRICES / 2 * 2 + 2 * 2 * HIDDEN);
        // Five columns' A; two rows' B.
        ASSERT_CLOSE(collective_bytes(b->forward, b->num_forward, COLLECTIVE_ALL_GATHER, GROUP_TP),
                     TOKENS * 2 * (5 * RANK + 2 * HIDDEN));
        // Two rows' A, and their base's results.
        ASSERT_CLOSE(collective_bytes(b->forward, b->num_forward, COLLECTIVE_ALL_REDUCE, GROUP_TP),
                     TOKENS * 2 * (2 * RANK + 2 * HIDDEN));
        // The inputs of all seven B's, and of the two columns.
        ASSERT_CLOSE(
            collective_bytes(b->backward, b->num_backward, COLLECTIVE_ALL_REDUCE, GROUP_TP),
            TOKENS * 2 * (7 * RANK + 2 * HIDDEN));
        const Op *a = op_named(b->forward, b->num_forward, "lora_a");
        CU_ASSERT_EQUAL(a->gemm.n, RANK / 2);
        CU_ASSERT_EQUAL(a->gemm.k, HIDDEN);
    }
    case_free(&c);
}

// DoRA learns a number for each output.
static void magnitudes_are_trained_too(void) {
    Case c;
    const Block *b = layer_of(
        &c,
        JOB("hf-fsdp2", ", \"adapters\": {\"kind\": \"dora\", \"rank\": 16, \"targets\": " ALL "}"),
        "{\"zero_stage\": 0}");
    if (b) {
        const double outputs = 3 * HIDDEN + 2 * KV + 2 * INNER; // q, o, down; k, v; gate, up
        CU_ASSERT_EQUAL(b->dense_parameters, ADAPTED + outputs);
        CU_ASSERT_EQUAL(num_named(b->forward, b->num_forward, "dora_norm"), 7);
        CU_ASSERT_EQUAL(num_named(b->backward, b->num_backward, "dora_norm"), 0);
    }
    case_free(&c);
}

// Beside a base in 8 bits adapters run in 16 and read their inputs in 16: as much is kept as beside
// one in 16. Without adapters it keeps them in 8.
static void beside_8_bits_inputs_are_kept_in_16(void) {
    Case c, wide;
    const Block *b =
        layer_of(&c, JOB("megatron-core", ", \"precision\": \"fp8\"" LORA), "{\"zero_stage\": 0}");
    const Block *other = layer_of(&wide, JOB("megatron-core", LORA), "{\"zero_stage\": 0}");
    if (b && other) {
        ASSERT_CLOSE(b->saved_bytes, other->saved_bytes);
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "lora_a")->precision, PRECISION_BF16);
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "fc1")->precision, PRECISION_FP8);
        CU_ASSERT_EQUAL(num_named(b->backward, b->num_backward, "quantize"), 4);
    }
    case_free(&c);
    case_free(&wide);
}

// What blocks train, summed, is what the model's adapters are; ranks of experts hold their part.
static void blocks_train_what_the_model_has(void) {
    static const char *const MODELS[] = {LLAMA,
                                         "\"gemma-2-2b\"",
                                         "\"mixtral-8x7b\"",
                                         "\"qwen2-57b-a14b\"",
                                         "\"deepseek-v2-lite\"",
                                         "\"falcon-7b\"",
                                         "\"nemotron-h-56b\""};
    static const char *const JOB_ALL =
        JOB("hf-fsdp2", ADAPTERS("\"targets\": \"all-linear\", \"base_dtype\": \"nf4\""));
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        Case c;
        if (case_make(&c, MODELS[i], 8, JOB_ALL, "{\"zero_stage\": 0}")) {
            const Model *m = &c.scenario.model;
            const Chunk *chunk = &c.workload.chunks[0];
            const double trained = fine_tuning_trained_parameters(m, &c.scenario.training.tuning);
            CU_ASSERT(trained > 0);
            ASSERT_CLOSE(chunk->dense_parameters + chunk->expert_parameters, trained);
            for (int k = 0; k < m->num_kinds; k++)
                CU_ASSERT_DOUBLE_EQUAL(left_bytes(workload_layer_block(&c.workload, k, PLAN_OWN)),
                                       0, 1);
            const double frozen = chunk->frozen.dense + chunk->frozen.expert;
            CU_ASSERT(frozen > 0.5158 * model_num_parameters(m) &&
                      frozen < 2 * model_num_parameters(m));
        }
        case_free(&c);
    }
}

// The account in closed form and along the Program, with stages, shards and checkpoints.
static void both_accounts_agree(void) {
    static const char *const PARALLEL[] = {
        "{\"pp\": 2}", "{\"pp\": 2, \"vpp\": 2, \"recompute\": \"full\"}",
        "{\"tp\": 2, \"pp\": 2, \"schedule\": \"zb-h1\"}", "{\"tp\": 4, \"zero_stage\": 3}"};
    for (size_t i = 0; i < sizeof PARALLEL / sizeof *PARALLEL; i++) {
        Case c;
        if (case_make(&c, LLAMA, 8, JOB("megatron-core", LORA), PARALLEL[i])) {
            EstimateParts parts;
            case_estimate(&c, &parts);
            for (int r = 0; r < c.plan.pp; r++) {
                const RankMemory a = memory_closed_form(&c.scenario, &c.plan, &c.workload, r);
                const RankMemory b =
                    memory_running_sum(&c.scenario, &c.plan, &c.workload, &parts.program, r);
                ASSERT_CLOSE(a.peak_bytes, b.peak_bytes);
                CU_ASSERT(a.activations_bytes > 0);
            }
        }
        case_free(&c);
    }
}

// What a list keeps it gives back.
static void nothing_stays(void) {
    static const char *const JOBS[] = {
        JOB("hf-fsdp2", LORA),
        JOB("hf-fsdp2", QLORA),
        JOB("hf-fsdp2", ADAPTERS("\"dropout\": 0.1, \"targets\": " ALL)),
        JOB("hf-fsdp2", ADAPTERS("\"targets\": [\"k_proj\", \"up_proj\"]")),
        JOB("torchtitan", LORA),
        JOB("megatron-core", ", \"precision\": \"fp8\"" LORA),
        JOB("megatron-core", FROZEN("\"mixer\", \"norms\"")),
        JOB("torchtitan", FROZEN("\"mlp\""))};
    static const char *const PARALLEL[] = {"{}", "{\"recompute\": \"full\"}"};
    for (size_t i = 0; i < 2 * sizeof JOBS / sizeof *JOBS; i++) {
        Case c;
        const Block *b = layer_of(&c, JOBS[i / 2], PARALLEL[i % 2]);
        const double left = b ? left_bytes(b) : 0;
        CU_ASSERT_DOUBLE_EQUAL(left, 0, 1);
        case_free(&c);
    }
}

// --- Parts without adapters

// Frozen MLPs: no gradients of 3 x 4,096 x 14,336 weights a token, and neither the norm's output
// nor the activation's is kept for them.
static void a_frozen_mlp_by_hand(void) {
    Case c, whole;
    const Block *b = layer_of(&c, JOB("megatron-core", FROZEN("\"mlp\"")), "{\"zero_stage\": 0}");
    const Block *full = layer_of(&whole, JOB("megatron-core", ""), "{\"zero_stage\": 0}");
    if (b && full) {
        const double weights = 3 * HIDDEN * INNER;
        ASSERT_CLOSE(gemm_flops(full->backward, full->num_backward) -
                         gemm_flops(b->backward, b->num_backward),
                     2 * TOKENS * weights);
        ASSERT_CLOSE(full->saved_bytes - b->saved_bytes, TOKENS * 2 * (HIDDEN + INNER));
        CU_ASSERT_EQUAL(full->dense_parameters - b->dense_parameters, weights);
        CU_ASSERT_EQUAL(b->frozen.dense, 2 * weights);
        CU_ASSERT_EQUAL(b->frozen.expert, 0);
        ASSERT_CLOSE(whole.workload.model_flops - c.workload.model_flops,
                     8 * TOKENS * 2 * 32 * weights);
    }
    case_free(&c);
    case_free(&whole);
}

static void a_frozen_embedding_has_no_backward(void) {
    Case c;
    if (layer_of(&c, JOB("torchtitan", FROZEN("\"embedding\"")), "{\"zero_stage\": 3}")) {
        const Block *b = &c.workload.blocks[BLOCK_EMBEDDING];
        CU_ASSERT_EQUAL(b->num_backward, 0);
        CU_ASSERT_EQUAL(b->dense_parameters, 0);
        CU_ASSERT_EQUAL(b->frozen.dense, 4 * 128256 * HIDDEN); // fp32, and cast to be gathered
        ASSERT_CLOSE(
            collective_bytes(b->forward, b->num_forward, COLLECTIVE_ALL_GATHER, GROUP_ZERO),
            2 * 128256 * HIDDEN);
    }
    case_free(&c);
}

// Each part of models of many kinds: what blocks train is what is left of the model, and the rest
// is held in 16 bits.
static void blocks_train_what_is_left(void) {
    static const char *const MODELS[] = {LLAMA,
                                         "\"gemma-2-2b\"",
                                         "\"mixtral-8x7b\"",
                                         "\"qwen2-57b-a14b\"",
                                         "\"deepseek-v2-lite\"",
                                         "\"nemotron-h-56b\""};
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++)
        for (int part = 0; FROZEN_NAMES[part + 2]; part++) { // no fronts
            Case c;
            Arena arena = {0};
            const char *job =
                arena_printf(&arena, JOB("megatron-core", FROZEN("\"%s\"")), FROZEN_NAMES[part]);
            if (case_make(&c, MODELS[i], 8, job, "{\"zero_stage\": 0}")) {
                const Model *m = &c.scenario.model;
                const Chunk *chunk = &c.workload.chunks[0];
                const double trained = chunk->dense_parameters + chunk->expert_parameters;
                const double frozen = (chunk->frozen.dense + chunk->frozen.expert) / 2;
                const bool tied = m->tie_word_embeddings && 1 << part == FROZEN_HEAD;
                if (!tied)
                    ASSERT_CLOSE(trained,
                                 fine_tuning_trained_parameters(m, &c.scenario.training.tuning));
                ASSERT_CLOSE(trained + frozen, model_num_parameters(m));
                for (int k = 0; k < m->num_kinds; k++)
                    CU_ASSERT_DOUBLE_EQUAL(
                        left_bytes(workload_layer_block(&c.workload, k, PLAN_OWN)), 0, 1);
            }
            case_free(&c);
            arena_free(&arena);
        }
}

// A frozen tower keeps nothing and has no backward; the words' rows have theirs.
static void a_frozen_tower_is_read_only(void) {
    static const char *const JOB_IMAGES =
        JOB("megatron-core", FROZEN("\"vision\"") ", \"images_per_sequence\": 4");
    Case c;
    if (case_make(&c, "\"gemma-3-4b\"", 8, JOB_IMAGES, "{\"zero_stage\": 0}") &&
        c.scenario.model.num_front_layers > 0) {
        const Block *tower = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(tower->num_backward, 0);
        CU_ASSERT_EQUAL(tower->saved_bytes, 0);
        CU_ASSERT_EQUAL(tower->dense_parameters, 0);
        CU_ASSERT(tower->frozen.dense > 0);
        const Block *embedding = &c.workload.blocks[BLOCK_EMBEDDING];
        CU_ASSERT_EQUAL(gemm_flops(embedding->backward, embedding->num_backward), 0);
        CU_ASSERT(embedding->num_backward > 0);
    }
    case_free(&c);
}

CU_TestInfo adapters_tests[] = {
    {"a_frozen_mlp_by_hand", a_frozen_mlp_by_hand},
    {"a_frozen_embedding_has_no_backward", a_frozen_embedding_has_no_backward},
    {"blocks_train_what_is_left", blocks_train_what_is_left},
    {"a_frozen_tower_is_read_only", a_frozen_tower_is_read_only},
    {"rank_16_of_an_8b_model_trains_42_million", rank_16_of_an_8b_model_trains_42_million},
    {"a_base_of_4_bits_by_hand", a_base_of_4_bits_by_hand},
    {"scales_that_are_not_quantized_take_4_bytes", scales_that_are_not_quantized_take_4_bytes},
    {"products_by_hand", products_by_hand},
    {"adapted_products_keep_their_inputs", adapted_products_keep_their_inputs},
    {"frozen_products_do_not_keep_theirs", frozen_products_do_not_keep_theirs},
    {"dropout_keeps_an_input_of_each_adapter", dropout_keeps_an_input_of_each_adapter},
    {"a_base_of_4_bits_is_dequantized_at_each_use", a_base_of_4_bits_is_dequantized_at_each_use},
    {"an_embedding_has_no_backward", an_embedding_has_no_backward},
    {"shards_are_gathered_as_they_are_stored", shards_are_gathered_as_they_are_stored},
    {"tensor_parallel_ranks_share_adapters", tensor_parallel_ranks_share_adapters},
    {"magnitudes_are_trained_too", magnitudes_are_trained_too},
    {"beside_8_bits_inputs_are_kept_in_16", beside_8_bits_inputs_are_kept_in_16},
    {"blocks_train_what_the_model_has", blocks_train_what_the_model_has},
    {"both_accounts_agree", both_accounts_agree},
    {"nothing_stays", nothing_stays},
    CU_TEST_INFO_NULL,
};
