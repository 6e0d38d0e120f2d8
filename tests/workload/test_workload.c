// Parameters, flops and chunks of whole models under a plan.
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

// --- Parameters

// Held by all GPUs of one data-parallel replica together.
static double parameters_held(const Case *c) {
    const Plan *plan = &c->plan;
    double sum = 0;
    for (int i = 0; i < c->workload.num_chunks; i++)
        sum += plan->tp * c->workload.chunks[i].dense_parameters +
               plan->ep * plan->etp * c->workload.chunks[i].expert_parameters;
    return sum;
}

// Of one layer, what every tensor-parallel rank holds whole: norms, biases of outputs that are
// summed, router, and the down-projections of latent attention.
static double layer_replicated(const Model *m, const LayerKind *kind) {
    const double hidden = m->hidden_size;
    const bool mlp = !kind_is_moe(kind) || model_ffn(m)->shared_intermediate_size > 0;
    double sum = model_layer_norm_parameters(m, model_mixer(m));
    if (model_mixer(m)->out_bias) sum += hidden;
    if (mlp && model_ffn(m)->bias) sum += hidden;
    if (kind_is_moe(kind)) sum += model_router_parameters(m, model_ffn(m));
    if (model_mixer(m)->kind == MIXER_LATENT_ATTENTION)
        sum += hidden * (model_mixer(m)->q_lora_rank + model_mixer(m)->kv_lora_rank +
                         model_mixer(m)->qk_rope_head_dim);
    return sum;
}

// The same of the whole model: also position table, norms of embedding and head, bias of the head.
static double model_replicated(const Model *m) {
    const double table = (double)m->vocab_size * m->hidden_size;
    double sum = model_embedding_parameters(m) - table;
    sum += model_head_parameters(m) - (m->tie_word_embeddings ? 0 : table);
    for (int i = 0; i < m->num_layers; i++) sum += layer_replicated(m, &m->kinds[m->layer_kind[i]]);
    const LayerKind *last = &m->kinds[m->layer_kind[m->num_layers - 1]];
    const double norms = 3.0 * m->hidden_size * (m->norm_bias ? 2 : 1);
    return sum + m->num_mtp_layers * (norms + layer_replicated(m, last));
}

// Word tables: one for the embedding, one for the head unless it is tied and on the same stage, and
// one for MTP layers on a stage without either. tp splits rows, padded to a multiple of 128 tp.
static double tables_beyond(const Model *m, const Plan *plan) {
    const double multiple = 128.0 * plan->tp;
    const double rows = plan->tp == 1 ? m->vocab_size : ceil(m->vocab_size / multiple) * multiple;
    const bool apart = plan->pp > 1, tied = m->tie_word_embeddings;
    const int num_tables = 1 + (!tied || apart) + (m->num_mtp_layers > 0 && apart && !tied);
    return (num_tables * rows - (tied ? 1 : 2) * m->vocab_size) * m->hidden_size;
}

static void assert_parameters(const char *model, int tp, int pp, int ep) {
    Case c;
    Arena arena = {0};
    const char *parallel = arena_printf(&arena, "{\"tp\": %d, \"pp\": %d, \"ep\": %d}", tp, pp, ep);
    if (case_make(&c, model, 64, TRAINING, parallel)) {
        const Model *m = &c.scenario.model;
        const double all = model_num_parameters(m) + model_mtp_parameters(m);
        ASSERT_CLOSE(parameters_held(&c),
                     all + tables_beyond(m, &c.plan) + (tp - 1) * model_replicated(m));
    }
    case_free(&c);
    arena_free(&arena);
}

static void ranks_hold_the_whole_model(void) {
    static const struct {
        const char *model;
        int ep;
    } MODELS[] = {{"\"gpt3-175b\"", 1},     {"\"llama-3-8b\"", 1},      {"\"llama-3.2-1b\"", 1},
                  {"\"qwen3-30b-a3b\"", 8}, {"\"mixtral-8x7b\"", 4},    {"\"deepseek-v3\"", 16},
                  {"\"gpt-oss-20b\"", 2},   {"\"gemma-2-9b\"", 1},      {"\"bloom-7b1\"", 1},
                  {"\"gpt-neox-20b\"", 1},  {"\"deepseek-v2-lite\"", 4}};
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++)
        for (int bits = 0; bits < 4; bits++)
            assert_parameters(MODELS[i].model, bits & 1 ? 4 : 1, bits & 2 ? 4 : 1, MODELS[i].ep);
}

static double parameters_partial(const Case *c) {
    double sum = 0;
    for (int i = 0; i < c->workload.num_chunks; i++)
        sum += c->workload.chunks[i].partial_parameters;
    return sum;
}

// Of the positions Megatron-LM has the whole gradient, the bundled runtime a part.
static void assert_partial(const char *model, int ep, const char *stack, bool positions) {
    Case c;
    Arena arena = {0};
    const char *training =
        arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": 64, \"stack\": \"%s\"}", stack);
    const char *parallel = arena_printf(&arena, "{\"tp\": 4, \"pp\": 2, \"ep\": %d}", ep);
    if (case_make(&c, model, 64, training, parallel)) {
        const Model *m = &c.scenario.model;
        double whole = model_replicated(m) - (m->lm_head_bias ? m->vocab_size : 0);
        if (!positions) whole -= (double)m->max_position_embeddings * m->hidden_size;
        ASSERT_CLOSE(parameters_partial(&c), whole);
        c.scenario.parallel.sequence_parallel = 0;
        // Every rank then has all tokens, but of the heads it has some.
        if (case_resolve(&c))
            CU_ASSERT_EQUAL(parameters_partial(&c),
                            m->num_layers * model_heads_norm_parameters(m, model_mixer(m)));
        c.scenario.parallel.sequence_parallel = ABSENT;
        c.scenario.parallel.tp = 1;
        if (case_resolve(&c)) CU_ASSERT_EQUAL(parameters_partial(&c), 0);
    }
    case_free(&c);
    arena_free(&arena);
}

// With sequence parallelism what tp ranks hold whole is read by their own tokens.
static void gradients_of_what_is_replicated_are_partial(void) {
    static const struct {
        const char *model;
        int ep;
    } MODELS[] = {{"\"gpt3-175b\"", 1},    {"\"llama-3.2-1b\"", 1}, {"\"qwen3-30b-a3b\"", 8},
                  {"\"mixtral-8x7b\"", 4}, {"\"deepseek-v3\"", 8},  {"\"gpt-oss-20b\"", 2},
                  {"\"gemma-2-9b\"", 1},   {"\"bloom-7b1\"", 1}};
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        assert_partial(MODELS[i].model, MODELS[i].ep, "megatron-core", false);
        assert_partial(MODELS[i].model, MODELS[i].ep, "runtime", true);
    }
}

// 4 key-value heads over tp 8: each stands on two ranks, so all ranks hold them twice.
static void replicated_heads_are_held_twice(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, TRAINING, "{\"tp\": 8}")) {
        const Model *m = &c.scenario.model;
        const double heads = 4.0 * 2 * 4 * 64 * 1024; // layers, keys and values, heads, hidden size
        ASSERT_CLOSE(parameters_held(&c),
                     model_num_parameters(m) + heads + 7 * model_replicated(m));
    }
    case_free(&c);
}

// Every bundled preset, on one GPU.
static void every_preset_is_held_whole(void) {
    Arena arena = {0};
    ModelSummary *models = NULL;
    int num_models = 0;
    CU_ASSERT_EQUAL_FATAL(model_list(&arena, &models, &num_models).code, STATUS_OK);
    for (int i = 0; i < num_models; i++)
        assert_parameters(arena_printf(&arena, "\"%s\"", models[i].name), 1, 1, 1);
    arena_free(&arena);
}

// --- Flops

// Narayanan et al. 2021, arXiv:2104.04473, equation 3, without its recomputation:
// 72 B s L h^2 (1 + s/6h + V/12Lh); half of the attention where it is causal. Biases, which we
// count among the weights, add less than 1/h.
static void gpt3_flops(void) {
    const double b = 64, s = 2048, l = 96, h = 12288, v = 50257;
    Case c;
    if (case_make(&c, "\"gpt3-175b\"", 64, TRAINING, NULL)) {
        const double dense = 72 * b * s * l * h * h;
        const double causal = dense * (1 + s / (12 * h) + v / (12 * l * h));
        CU_ASSERT_DOUBLE_EQUAL(c.workload.model_flops, causal, 1e-4 * causal);
        c.scenario.training.causal = false;
        if (case_resolve(&c)) {
            const double full = dense * (1 + s / (6 * h) + v / (12 * l * h));
            CU_ASSERT_DOUBLE_EQUAL(c.workload.model_flops, full, 1e-4 * full);
        }
    }
    case_free(&c);
}

// One token: attention 2 h^2 + 2 h 256 in 4 layers, the first with an MLP 3 h 4096, the others with
// router 8 h, 2 experts and the shared one 3 h 512 each; head 1024 h; 6 flops each. Attention: 16
// heads of 64, 1024 keys on average, 2 x 2 flops, three times.
static void experts_count_as_often_as_they_are_used(void) {
    const double h = 1024, tokens = 64.0 * 2048;
    const double weights =
        4 * (2 * h * h + 2 * h * 256) + 3 * h * 4096 + 3 * (8 * h + 3 * 3 * h * 512) + 1024 * h;
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, TRAINING, NULL))
        ASSERT_CLOSE(c.workload.model_flops, tokens * (6 * weights + 3 * 4 * 4.0 * 16 * 64 * 1024));
    case_free(&c);
}

// Latent attention: 256 h + 256 (16 96) + (128 + 32) h + 128 (16 (64 + 64)) + 16 64 h weights in 4
// layers and one MTP layer, which is like the last, with 2 h^2 and the head again. Keys 96 and
// values 64 wide.
static void mtp_layers_count(void) {
    const double h = 1024, tokens = 64.0 * 2048, experts = 8 * h + 3 * 3 * h * 512;
    const double attention = 256 * h + 256 * 16 * 96.0 + 160 * h + 128 * 16 * 128.0 + 16 * 64 * h;
    const double weights = 5 * attention + 3 * h * 4096 + 4 * experts + 2 * h * h + 2 * 1024 * h;
    Case c;
    if (case_make(&c, MADE_UP_MLA, 8, TRAINING, NULL))
        ASSERT_CLOSE(c.workload.model_flops,
                     tokens * (6 * weights + 3 * 5 * 2.0 * 16 * (96 + 64) * 1024));
    case_free(&c);
}

// A window of 512 of 2048 tokens, causal: 512 - 512 / 8 keys on average instead of 1024, in each of
// 2 layers: 16 heads of 64, 2 x 2 flops, three times.
static void windows_save_flops(void) {
    const double tokens = 64.0 * 2048;
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, NULL)) {
        const double whole = c.workload.model_flops;
        c.scenario.model.kinds[0].mixer.window = 512;
        if (case_resolve(&c))
            ASSERT_CLOSE(whole - c.workload.model_flops,
                         tokens * 2 * 3 * 4.0 * 16 * 64 * (1024 - 448));
    }
    case_free(&c);
}

static void flops_do_not_depend_on_the_plan(void) {
    static const char *const PLANS[] = {"{}", "{\"tp\": 4, \"pp\": 2}",
                                        "{\"cp\": 2, \"recompute\": \"full\", \"ep\": 4}"};
    double expected = 0;
    for (int i = 0; i < 3; i++) {
        Case c;
        if (case_make(&c, MADE_UP_MOE, 8, TRAINING, PLANS[i])) {
            if (i == 0) expected = c.workload.model_flops;
            CU_ASSERT_EQUAL(c.workload.model_flops, expected);
        }
        case_free(&c);
    }
}

// --- Chunks

// 2 sequences of 2048 over cp 2 are 2048 tokens; 2 bytes of 1024 numbers each, split by tp 4.
static void boundaries_carry_activations(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 16, TRAINING,
                  "{\"tp\": 4, \"cp\": 2, \"pp\": 2, \"micro_batch\": 2}")) {
        CU_ASSERT_EQUAL(c.workload.tokens_per_microbatch, 2048);
        CU_ASSERT_EQUAL(c.workload.boundary_bytes, 2048 * 1024 * 2 / 4);
        c.scenario.parallel.sequence_parallel = 0;
        if (case_resolve(&c)) CU_ASSERT_EQUAL(c.workload.boundary_bytes, 2048 * 1024 * 2);
        CU_ASSERT_EQUAL(c.workload.message_bytes, c.workload.boundary_bytes);
        c.scenario.execution.stack.communication.p2p_scatter_gather =
            true; // each of 4 ranks sends a quarter
        if (case_resolve(&c)) CU_ASSERT_EQUAL(c.workload.message_bytes, 2048 * 1024 * 2 / 4);
        CU_ASSERT_EQUAL(c.workload.boundary_bytes, 2048 * 1024 * 2);
    }
    case_free(&c);
}

static int layers_of(const Case *c, int chunk, int strategy) {
    int sum = 0;
    for (int k = 0; k < c->scenario.model.num_kinds; k++) {
        const Block *b = workload_layer_block(&c->workload, k, strategy);
        sum += c->workload.chunks[chunk].num_blocks[b - c->workload.blocks];
    }
    return sum;
}

// 16 layers in 8 chunks of 2, 4 on each of 2 ranks: of the first 3 layers of a rank 2 are in its
// first chunk and 1 is in its second.
static void recompute_layers_are_the_first_of_a_rank(void) {
    static const int RECOMPUTED[] = {2, 2, 1, 1};
    Case c;
    if (case_make(&c, "\"llama-3.2-1b\"", 8, TRAINING,
                  "{\"pp\": 2, \"vpp\": 4, \"recompute\": \"full\", \"recompute_layers\": 3}"))
        for (int i = 0; i < 8; i++) {
            CU_ASSERT_EQUAL(layers_of(&c, i, PLAN_OWN), i < 4 ? RECOMPUTED[i] : 0);
            CU_ASSERT_EQUAL(layers_of(&c, i, PLAN_OWN) + layers_of(&c, i, PLAN_KEPT), 2);
        }
    case_free(&c);
}

// A stage without layers holds the embedding alone, one with MTP layers a copy of its table.
static void stages_may_be_empty(void) {
    Case c;
    if (case_make(&c, MADE_UP_MLA, 8, TRAINING,
                  "{\"pp\": 2, \"stages\": [{\"layers\": 0, \"embedding\": true}, "
                  "{\"layers\": 4, \"mtp\": 1, \"loss\": true}]}")) {
        const Chunk *chunks = c.workload.chunks;
        const Block *blocks = c.workload.blocks;
        CU_ASSERT_EQUAL(chunks[0].num_layers, 0);
        CU_ASSERT_EQUAL(chunks[0].dense_parameters, 1024 * 1024);
        CU_ASSERT_EQUAL(chunks[0].expert_parameters, 0);
        CU_ASSERT_EQUAL(chunks[0].saved_bytes, blocks[BLOCK_EMBEDDING].saved_bytes);
        CU_ASSERT_EQUAL(chunks[1].num_blocks[BLOCK_MTP], 1);
        const Model *m = &c.scenario.model;
        ASSERT_CLOSE(parameters_held(&c),
                     model_num_parameters(m) + model_mtp_parameters(m) + 1024 * 1024);
    }
    case_free(&c);
}

CU_TestInfo workload_tests[] = {
    {"ranks_hold_the_whole_model", ranks_hold_the_whole_model},
    {"gradients_of_what_is_replicated_are_partial", gradients_of_what_is_replicated_are_partial},
    {"replicated_heads_are_held_twice", replicated_heads_are_held_twice},
    {"every_preset_is_held_whole", every_preset_is_held_whole},
    {"gpt3_flops", gpt3_flops},
    {"experts_count_as_often_as_they_are_used", experts_count_as_often_as_they_are_used},
    {"mtp_layers_count", mtp_layers_count},
    {"windows_save_flops", windows_save_flops},
    {"flops_do_not_depend_on_the_plan", flops_do_not_depend_on_the_plan},
    {"boundaries_carry_activations", boundaries_carry_activations},
    {"recompute_layers_are_the_first_of_a_rank", recompute_layers_are_the_first_of_a_rank},
    {"stages_may_be_empty", stages_may_be_empty},
    CU_TEST_INFO_NULL,
};
