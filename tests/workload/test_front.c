// Blocks of encoders and towers: work, weights, and how plans split them.
#include "config/model/model_front.h"
#include "tests/workload/block_case.h"
#include "workload/pass/front.h"

#include <CUnit/CUnit.h>
#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs((double)(expected)))

// A text of 4 layers behind a tower of 3, the second of which sees windows of 4 x 4 patches.
#define TEXT                                                                                       \
    "\"hidden_size\": 1024, \"intermediate_size\": 4096, \"num_hidden_layers\": 4, "               \
    "\"num_attention_heads\": 16, \"num_key_value_heads\": 4, \"vocab_size\": 1024, "              \
    "\"tie_word_embeddings\": false"
#define QWEN                                                                                       \
    "{\"model_type\": \"qwen2_5_vl\", " TEXT ", \"vision_config\": {\"depth\": 3, "                \
    "\"hidden_size\": 256, \"intermediate_size\": 600, \"num_heads\": 4, \"patch_size\": 14, "     \
    "\"window_size\": 56, \"fullatt_block_indexes\": [0, 2]}}"
#define GEMMA                                                                                      \
    "{\"model_type\": \"gemma3\", " TEXT ", \"head_dim\": 64, \"vision_config\": "                 \
    "{\"hidden_size\": 256, \"intermediate_size\": 1024, \"num_attention_heads\": 8, "             \
    "\"num_hidden_layers\": 3, \"image_size\": 448, \"patch_size\": 14}}"
#define T5                                                                                         \
    "{\"model_type\": \"t5\", \"d_model\": 1024, \"d_kv\": 64, \"d_ff\": 4096, "                   \
    "\"num_layers\": 3, \"num_decoder_layers\": 2, \"num_heads\": 16, \"vocab_size\": 1024}"
#define QWEN_TRAINING                                                                              \
    "{\"seq_len\": 2048, \"global_batch\": 16, \"images_per_sequence\": 3, \"image_size\": 448}"
#define GEMMA_TRAINING "{\"seq_len\": 2048, \"global_batch\": 16, \"images_per_sequence\": 3}"
#define T5_TRAINING "{\"seq_len\": 2048, \"global_batch\": 16, \"encoder_seq_len\": 512}"

static double forward_flops(const Case *c) {
    double sum = 0;
    for (int i = 0; i < c->workload.num_chunks; i++)
        for (int b = 0; b < c->workload.num_blocks; b++) {
            const Block *block = &c->workload.blocks[b];
            for (int op = 0; op < block->num_forward; op++)
                sum += c->workload.chunks[i].num_blocks[b] * block->forward[op].flops;
        }
    return sum;
}

// What is counted as the model's work is what the operators of a forward do, three times; a causal
// query sees (seq + 1) / 2 keys, which the count takes for half of them.
static void model_flops_are_those_of_the_operators(void) {
    static const struct {
        const char *model, *training;
    } ROWS[] = {{QWEN, QWEN_TRAINING}, {GEMMA, GEMMA_TRAINING}, {T5, T5_TRAINING}};
    for (int i = 0; i < 3; i++) {
        Case c;
        if (case_make(&c, ROWS[i].model, 1, ROWS[i].training, NULL)) {
            const double flops = 3 * 16 * forward_flops(&c);
            CU_ASSERT_DOUBLE_EQUAL(flops / c.workload.model_flops, 1, 2e-4);
        }
        case_free(&c);
    }
}

// 448 / 14 = 32 patches a side: 1024 tokens of the tower an image, 256 of the text.
static void a_tower_works_on_patches(void) {
    Case c;
    if (case_make(&c, QWEN, 1, QWEN_TRAINING, "{\"micro_batch\": 2}")) {
        const double patches = 2 * 3 * 1024, text = 2 * 3 * 256;
        const Block *all = layer_block_of(&c, 0), *windowed = layer_block_of(&c, 1);
        const Op *fc1 = op_named(all->forward, all->num_forward, "fc1");
        CU_ASSERT(fc1->gemm.m == patches && fc1->gemm.n == 2 * 600 && fc1->gemm.k == 256);
        const Op *core = op_named(all->forward, all->num_forward, "core_attn");
        ASSERT_CLOSE(core->flops, 4 * patches * 1024 * 256);
        core = op_named(windowed->forward, windowed->num_forward, "core_attn");
        ASSERT_CLOSE(core->flops, 4 * patches * 16 * 256);
        const Block *ends = &c.workload.blocks[BLOCK_EMBEDDING];
        const Op *patch = op_named(ends->forward, ends->num_forward, "patch_embedding");
        CU_ASSERT(patch->gemm.m == patches && patch->gemm.n == 256 &&
                  patch->gemm.k == 14 * 14 * 3 * 2);
        const Op *merge = op_named(ends->forward, ends->num_forward, "image_fc1");
        CU_ASSERT(merge->gemm.m == text && merge->gemm.n == 1024 && merge->gemm.k == 1024);
        const Op *words = op_named(ends->forward, ends->num_forward, "embedding");
        CU_ASSERT(words->bytes > 0);
    }
    case_free(&c);
}

// No cp, no sequence parallelism; whole on each tensor-parallel rank where tp does not divide it.
static void a_tower_is_split_as_far_as_it_goes(void) {
    Case c;
    const double attention = 4 * 256 * 256, mlp = 3 * 256 * 600, replicated = 256 + 256 + 512;
    const double split = 3 * 256 + 2 * 600; // biases
    if (case_make(&c, QWEN, 8, QWEN_TRAINING, "{\"tp\": 4, \"cp\": 2}")) {
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(b->dense_parameters, (attention + mlp + split) / 4 + replicated);
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "fc1")->gemm.m, 3 * 1024);
        ASSERT_CLOSE(collective_bytes(b->forward, b->num_forward, COLLECTIVE_ALL_REDUCE, GROUP_TP),
                     2 * 3 * 1024 * 256 * 2);
    }
    case_free(&c);
    if (case_make(&c, QWEN, 16, QWEN_TRAINING, "{\"tp\": 16}")) { // 4 heads
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(b->dense_parameters, attention + mlp + split + replicated);
        for (int i = 0; i < b->num_forward; i++)
            CU_ASSERT_NOT_EQUAL(b->forward[i].kind, OP_COLLECTIVE);
    }
    case_free(&c);
}

// 4 does not divide the MLP of 602, nor 16 the 4 heads: whole on every rank.
static void a_tower_whose_mlp_cannot_be_split_is_whole(void) {
    Case c;
    const char *model =
        "{\"model_type\": \"qwen2_5_vl\", " TEXT ", \"vision_config\": {\"depth\": 1, "
        "\"hidden_size\": 256, \"intermediate_size\": 602, \"num_heads\": 4, "
        "\"patch_size\": 14}}";
    if (case_make(&c, model, 4, QWEN_TRAINING, "{\"tp\": 4}")) {
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(b->dense_parameters, 4 * 256 * 256 + 3 * 256 * 602 + 5 * 256 + 2 * 602 + 512);
    }
    case_free(&c);
}

// Over two ranks: the layers by halves but for their norms, and whole what stands beside them. Of a
// decoder's layer those are three norms, of an encoder's two, of 1024 numbers; 16 heads have 32
// distances each in either; the word table of 1,024 x 1,024 is tied.
static void ranks_hold_what_is_not_split_each(void) {
    Case c;
    if (case_make(&c, T5, 1, T5_TRAINING, NULL))
        ASSERT_CLOSE(c.workload.chunks[0].dense_parameters,
                     model_num_parameters(&c.scenario.model));
    case_free(&c);
    if (case_make(&c, T5, 2, T5_TRAINING, "{\"tp\": 2}")) {
        const double norms = (3 * 2 + 2 * 3 + 2) * 1024, whole = norms + 2 * 16 * 32;
        const double split = model_num_parameters(&c.scenario.model) - whole;
        ASSERT_CLOSE(c.workload.chunks[0].dense_parameters, split / 2 + whole);
    }
    case_free(&c);
}

// Activations of the tower, 3 x 1024 x 256, over those of the text, 2048 x 1024; of the encoder
// 512 tokens over 2048 of the same width.
static void the_front_is_as_wide_as_its_tokens(void) {
    Case c;
    if (case_make(&c, QWEN, 1, QWEN_TRAINING, NULL))
        CU_ASSERT_EQUAL(front_values_frac(&c.scenario), 0.375);
    case_free(&c);
    if (case_make(&c, T5, 1, T5_TRAINING, NULL))
        CU_ASSERT_EQUAL(front_values_frac(&c.scenario), 0.25);
    case_free(&c);
}

static void a_tower_lies_on_the_first_stage(void) {
    Case c;
    if (case_make(&c, QWEN, 4, QWEN_TRAINING, "{\"pp\": 2, \"vpp\": 2}")) {
        CU_ASSERT_EQUAL(c.plan.chunks[0].num_layers, 3 + 1);
        for (int i = 1; i < 4; i++) {
            CU_ASSERT_EQUAL(c.plan.chunks[i].num_layers, 1);
            CU_ASSERT_EQUAL(c.plan.chunks[i].first_layer, 3 + i);
        }
        double held = 0;
        for (int i = 0; i < 4; i++) held += c.workload.chunks[i].dense_parameters;
        ASSERT_CLOSE(held, model_num_parameters(&c.scenario.model));
    }
    case_free(&c);
}

static void a_decoder_attends_to_what_the_encoder_made(void) {
    Case c;
    if (case_make(&c, T5, 2, T5_TRAINING, "{\"tp\": 2, \"micro_batch\": 4}")) {
        const Block *encoder = layer_block_of(&c, 0), *decoder = layer_block_of(&c, 3);
        const double read = 4 * 512, written = 4 * 2048, width = 16 * 64 / 2;
        CU_ASSERT_EQUAL(op_named(encoder->forward, encoder->num_forward, "fc1")->gemm.m, read);
        const Op *q = op_named(decoder->forward, decoder->num_forward, "cross_q_proj");
        const Op *kv = op_named(decoder->forward, decoder->num_forward, "cross_kv_proj");
        CU_ASSERT(q->gemm.m == written && q->gemm.n == width && q->gemm.k == 1024);
        CU_ASSERT(kv->gemm.m == read && kv->gemm.n == 2 * width && kv->gemm.k == 1024);
        const Op *core = NULL; // the second
        for (int i = 0; i < decoder->num_forward; i++)
            if (decoder->forward[i].kind == OP_ATTENTION) core = &decoder->forward[i];
        CU_ASSERT_PTR_NOT_NULL_FATAL(core);
        ASSERT_CLOSE(core->flops, 4 * written * 512 * width);
        ASSERT_CLOSE(core->bytes, 2 * (written * 2 * width + read * 2 * width));
        CU_ASSERT_EQUAL(core->attention.keys, 512);
        CU_ASSERT_NOT_EQUAL(core, op_named(decoder->forward, decoder->num_forward, "core_attn"));
    }
    case_free(&c);
    // The last norm of the encoder keeps its input and, for all layers behind, its output.
    if (case_make(&c, T5, 2, T5_TRAINING, "{\"tp\": 2, \"micro_batch\": 4}")) {
        const Block *ends = &c.workload.blocks[BLOCK_EMBEDDING];
        const Op *norm = op_named(ends->forward, ends->num_forward, "encoder_final_norm");
        CU_ASSERT_EQUAL(norm->saved_bytes, 2 * 2.0 * 4 * 512 / 2 * 1024);
    }
    case_free(&c);
}

// Of every kind all layers stand together: the encoder's, then the decoder's.
static void memory_is_added_up_in_the_order_of_the_layers(void) {
    static const char *const PLANS[] = {"{\"recompute\": \"full\"}", NULL};
    for (int i = 0; i < 2; i++) {
        Case c;
        const BlockRun *runs;
        const char *training =
            "{\"seq_len\": 512, \"global_batch\": 16, \"encoder_seq_len\": 8192}";
        if (case_make(&c, T5, 1, training, PLANS[i])) {
            const Chunk *chunk = &c.workload.chunks[0];
            double held = 0, forward = 0, backward = 0;
            const int num = workload_runs(&c.scenario, &c.plan, 0, &c.arena, &runs);
            for (int r = 0; r < num; r++) {
                const Block *b = &c.workload.blocks[runs[r].block];
                forward = fmax(forward, held + b->forward_peak_bytes);
                held += b->saved_bytes;
                backward = fmax(backward, held - chunk->saved_bytes + b->backward_peak_bytes);
            }
            CU_ASSERT(num == 3 + 2 + 2);
            ASSERT_CLOSE(chunk->saved_bytes, held);
            ASSERT_CLOSE(chunk->forward_peak_bytes, forward);
            ASSERT_CLOSE(chunk->backward_peak_bytes, backward);
        }
        case_free(&c);
    }
}

// A window is a sequence: 64 of 4 x 4 patches in an image of 1024, and 4 heads.
static void unfused_scores_are_those_of_a_window(void) {
    Case c;
    const char *training = "{\"seq_len\": 2048, \"global_batch\": 16, \"images_per_sequence\": 3, "
                           "\"image_size\": 448, \"attention\": \"unfused\"}";
    if (case_make(&c, QWEN, 1, training, NULL)) {
        const Block *all = layer_block_of(&c, 0), *windowed = layer_block_of(&c, 1);
        const Op *scores = op_named(all->forward, all->num_forward, "scores");
        CU_ASSERT(scores->gemm.groups * scores->gemm.m == 3 * 1024 * 4 && scores->gemm.n == 1024);
        scores = op_named(windowed->forward, windowed->num_forward, "scores");
        CU_ASSERT(scores->gemm.groups * scores->gemm.m == 3 * 1024 * 4 && scores->gemm.n == 16);
        CU_ASSERT_EQUAL(scores->gemm.m, 16);
    }
    case_free(&c);
}

// Pixels and what follows the tower are not quantized; its layers are.
static void a_tower_is_quantized_where_it_is_layers(void) {
    Case c;
    const char *training = "{\"seq_len\": 2048, \"global_batch\": 16, \"images_per_sequence\": 3, "
                           "\"image_size\": 448, \"precision\": \"fp8\"}";
    if (case_make(&c, QWEN, 1, training, NULL)) {
        const Block *ends = &c.workload.blocks[BLOCK_EMBEDDING], *layer = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(op_named(ends->forward, ends->num_forward, "patch_embedding")->precision,
                        PRECISION_BF16);
        CU_ASSERT_EQUAL(op_named(ends->forward, ends->num_forward, "image_fc1")->precision,
                        PRECISION_BF16);
        CU_ASSERT_EQUAL(op_named(layer->forward, layer->num_forward, "fc1")->precision,
                        PRECISION_FP8);
    }
    case_free(&c);
}

// The encoder's output is 512 tokens of 1024 numbers, half of them on a rank. A decoder's layer
// keeps none of it in 16 bits, its part in 8 bits, or in 16 bits all that torchtitan gathered.
static void layers_keep_copies_of_what_the_encoder_made(void) {
#define READ_TRAINING(more)                                                                        \
    "{\"seq_len\": 2048, \"global_batch\": 16, \"encoder_seq_len\": 512, " more "}"
    static const struct {
        const char *training;
        double bytes;
    } ROWS[] = {
        {READ_TRAINING("\"precision\": \"bf16\""), 0},
        {READ_TRAINING("\"precision\": \"fp8\""), 512 / 2 * 1024},
        {READ_TRAINING("\"stack\": \"torchtitan\""), 512 * 1024 * 2},
    };
    for (int i = 0; i < 3; i++) {
        Case c;
        if (case_make(&c, T5, 2, ROWS[i].training, "{\"tp\": 2}")) {
            const Block *decoder = layer_block_of(&c, 3);
            const Op *kv = op_named(decoder->forward, decoder->num_forward, "cross_kv_proj");
            CU_ASSERT_EQUAL(kv->saved_bytes, ROWS[i].bytes);
        }
        case_free(&c);
    }
}

#define TEST(name)                                                                                 \
    { #name, name }
CU_TestInfo front_tests[] = {
    TEST(model_flops_are_those_of_the_operators),
    TEST(a_tower_works_on_patches),
    TEST(a_tower_is_split_as_far_as_it_goes),
    TEST(a_tower_whose_mlp_cannot_be_split_is_whole),
    TEST(ranks_hold_what_is_not_split_each),
    TEST(the_front_is_as_wide_as_its_tokens),
    TEST(a_tower_lies_on_the_first_stage),
    TEST(a_decoder_attends_to_what_the_encoder_made),
    TEST(memory_is_added_up_in_the_order_of_the_layers),
    TEST(unfused_scores_are_those_of_a_window),
    TEST(a_tower_is_quantized_where_it_is_layers),
    TEST(layers_keep_copies_of_what_the_encoder_made),
    CU_TEST_INFO_NULL,
};
