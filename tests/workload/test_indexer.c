// Latent attention to keys that an indexer chooses: sizes, products and what is kept by hand.
#include "config/model/mixer.h"
#include "tests/support.h"
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

// 4 layers without experts; 8 heads of 16 + 8 and of 16, ranks of 64 and 32; an indexer of 4 heads
// of 16 that chooses 128 keys.
#define SIZES                                                                                      \
    "\"hidden_size\": 256, \"num_hidden_layers\": 4, \"num_attention_heads\": 8, "                 \
    "\"num_key_value_heads\": 8, \"vocab_size\": 1024, \"intermediate_size\": 512, "               \
    "\"first_k_dense_replace\": 4, \"kv_lora_rank\": 32, \"qk_nope_head_dim\": 16, "               \
    "\"qk_rope_head_dim\": 8, \"v_head_dim\": 16, \"index_n_heads\": 4, "                          \
    "\"index_head_dim\": 16, \"index_topk\": 128"
#define RANK ", \"q_lora_rank\": 64"
#define SPARSE "{\"model_type\": \"deepseek_v32\", " SIZES RANK "}"
#define SHARED(types)                                                                              \
    "{\"model_type\": \"glm_moe_dsa\", " SIZES RANK ", \"indexer_types\": [" types "]}"
#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 8}"

static const double TOKENS = 2048;
// Of 2048 queries the last sees all keys, the first one; and most of them 128, the first ones less.
static const double ALL = 1024.5, CHOSEN = 128 - 128.0 * 128 / (2 * 2048);

static const double LATENT =
    256 * 64 + 64 * 8 * 24 + 256 * (32 + 8) + 32 * 8 * (16 + 16) + 8 * 16 * 256;
static const double INDEXER = 64 * 4 * 16 + 256 * 16 + 256 * 4;

static const Op *forward_of(const Block *b, const char *name) {
    return op_named(b->forward, b->num_forward, name);
}

static const Op *backward_of(const Block *b, const char *name) {
    return op_named(b->backward, b->num_backward, name);
}

static bool has_op(const Op *ops, int num_ops, const char *name) {
    for (int i = 0; i < num_ops; i++)
        if (strcmp(ops[i].name, name) == 0) return true;
    return false;
}

static void sizes_by_hand(void) {
    Case c;
    if (case_make(&c, SPARSE, 8, TRAINING, NULL)) {
        const Model *model = &c.scenario.model;
        const Mixer *own = model_mixer(model);
        const MixerRow *row = mixer_row(own->kind);
        CU_ASSERT_EQUAL(own->kind, MIXER_SPARSE_LATENT_ATTENTION);
        CU_ASSERT_EQUAL(model_mixer_parameters(model, own), LATENT + INDEXER);
        CU_ASSERT_EQUAL(row->norm_parameters(model, own), 64 + 32 + 2 * 16);
        CU_ASSERT_EQUAL(row->cache_values(own), 32 + 8 + 16);
        // Of 200 keys at most, 128 at most are seen: 128 - 128 x 128 / (2 x 200) on average.
        ASSERT_CLOSE(row->token_flops(own, 100),
                     2 * 8 * 40 * (128 - 128.0 * 128 / 400) + 2 * 100 * 4 * 16);
        ASSERT_CLOSE(row->token_flops(own, 50), 2 * 8 * 40 * 50.0 + 2 * 50 * 4 * 16);
        ASSERT_CLOSE(layer_block_of(&c, 0)->dense_parameters,
                     model_layer_parameters(model, &model->kinds[0]));
    }
    case_free(&c);
}

static void products_by_hand(void) {
    Case c;
    if (case_make(&c, SPARSE, 8, TRAINING, NULL)) {
        const Block *b = layer_block_of(&c, 0);
        // A product for each head on both sides of the attention, with weights of their own.
        const Op *absorb = forward_of(b, "q_absorb_proj"), *values = forward_of(b, "v_up_proj");
        CU_ASSERT_EQUAL(absorb->gemm.groups, 8);
        ASSERT_CLOSE(absorb->flops, 2 * TOKENS * 8 * 16 * 32);
        ASSERT_CLOSE(absorb->saved_bytes, TOKENS * 8 * 16 * 2);
        ASSERT_CLOSE(values->flops, 2 * TOKENS * 8 * 32 * 16);
        CU_ASSERT_EQUAL(values->saved_bytes, 0); // the attention keeps its results
        ASSERT_CLOSE(forward_of(b, "out_proj")->flops, 2 * TOKENS * 256 * 8 * 16);
        ASSERT_CLOSE(forward_of(b, "out_proj")->saved_bytes, TOKENS * 8 * 16 * 2);
        // Scores of 32 + 8 numbers, sums of 32, with one row of keys for all heads.
        const Op *core = forward_of(b, "core_attn"), *back = backward_of(b, "core_attn");
        CU_ASSERT_EQUAL(core->attention.kv_heads, 1);
        ASSERT_CLOSE(core->flops, 2 * TOKENS * CHOSEN * 8 * (40 + 32));
        ASSERT_CLOSE(back->flops, 2 * TOKENS * CHOSEN * 8 * (3 * 40 + 2 * 32));
        ASSERT_CLOSE(core->saved_bytes, TOKENS * 8 * (32 * 2 + 4));
        const double io = TOKENS * (8 * (40 + 32) + 40) * 2, rows = TOKENS * CHOSEN * 40;
        ASSERT_CLOSE(core->bytes, io + rows * 2);
        ASSERT_CLOSE(back->bytes, 3 * io + rows * (2 + 8));
    }
    case_free(&c);
}

static void indexer_by_hand(void) {
    Case c;
    if (case_make(&c, SPARSE, 8, TRAINING, NULL)) {
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(forward_of(b, "index_q_proj")->flops, 2 * TOKENS * 64 * 64);
        ASSERT_CLOSE(forward_of(b, "index_k_proj")->flops, 2 * TOKENS * 16 * 256);
        ASSERT_CLOSE(forward_of(b, "index_weights_proj")->flops, 2 * TOKENS * 4 * 256);
        // All pairs in the forward; in the backward the chosen ones, and three products of them.
        const Op *scores = forward_of(b, "index_scores"), *back = backward_of(b, "index_scores");
        ASSERT_CLOSE(scores->flops, 2 * TOKENS * ALL * 4 * 16);
        ASSERT_CLOSE(scores->bytes, TOKENS * ALL * 4);
        ASSERT_CLOSE(back->flops, 3 * 2 * TOKENS * CHOSEN * 4 * 16);
        ASSERT_CLOSE(forward_of(b, "index_topk")->saved_bytes, TOKENS * CHOSEN * 4);
        ASSERT_CLOSE(forward_of(b, "index_target")->flops, 2 * TOKENS * CHOSEN * 8 * 40);
        CU_ASSERT_FALSE(has_op(b->backward, b->num_backward, "index_target"));
    }
    case_free(&c);
}

// The indexer is whole on every rank, and what it learns from is summed over the ranks' heads.
static void heads_are_split_over_tp(void) {
    Case c;
    if (case_make(&c, SPARSE, 8, TRAINING, "{\"tp\": 2}")) {
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(forward_of(b, "core_attn")->flops, 2 * TOKENS * CHOSEN * 4 * (40 + 32));
        ASSERT_CLOSE(forward_of(b, "q_absorb_proj")->flops, 2 * TOKENS * 4 * 16 * 32);
        ASSERT_CLOSE(forward_of(b, "index_scores")->flops, 2 * TOKENS * ALL * 4 * 16);
        ASSERT_CLOSE(forward_of(b, "index_q_proj")->flops, 2 * TOKENS * 64 * 64);
        ASSERT_CLOSE(forward_of(b, "index_target_all_reduce")->collective.message_bytes,
                     TOKENS * CHOSEN * 4);
        ASSERT_REFUSED((c.scenario.parallel.tp = 1, c.scenario.parallel.cp = 2,
                        plan_resolve(&c.scenario, &c.arena, &c.plan)),
                       "job.json: parallel.cp: 2: an indexer whose keys lie on several ranks is "
                       "legal, but not supported yet");
    }
    case_free(&c);
}

// Of GLM-5.2: no indexer, the keys of the layer before.
static void shared_layers_have_no_indexer(void) {
    Case c;
    const char *types = SHARED("\"full\", \"shared\", \"shared\", \"full\"");
    if (case_make(&c, types, 8, TRAINING, NULL)) {
        const Model *model = &c.scenario.model;
        const Block *full = layer_block_of(&c, 0), *shared = layer_block_of(&c, 1);
        CU_ASSERT_EQUAL(model->num_kinds, 2);
        CU_ASSERT_EQUAL(model->layer_kind[3], model->layer_kind[0]);
        CU_ASSERT_FALSE(has_op(shared->forward, shared->num_forward, "index_scores"));
        ASSERT_CLOSE(forward_of(shared, "core_attn")->flops, forward_of(full, "core_attn")->flops);
        ASSERT_CLOSE(full->dense_parameters - shared->dense_parameters, INDEXER + 2 * 16);
        const Mixer *without = &model->kinds[model->layer_kind[1]].mixer;
        CU_ASSERT_EQUAL(mixer_row(without->kind)->cache_values(without), 32 + 8);
    }
    case_free(&c);
}

static void expect_refused(const char *model, const char *sentence) {
    Arena arena = {0};
    Scenario scenario;
    ASSERT_REFUSED(scenario_of(scenario_text(&arena, model, "\"dgx-h100:1\"", TRAINING, NULL),
                               &arena, &scenario),
                   sentence);
    arena_free(&arena);
}

static void files_that_contradict_themselves_are_refused(void) {
    expect_refused("{\"model_type\": \"deepseek_v32\", " SIZES ", \"q_lora_rank\": null}",
                   "job.json: model.q_lora_rank: an indexer makes its queries of the query's "
                   "latent, which is missing");
    expect_refused(SHARED("\"full\", \"shared\""),
                   "job.json: model.indexer_types: 2 entries for num_hidden_layers 4");
    expect_refused(SHARED("\"shared\", \"full\", \"full\", \"full\""),
                   "job.json: model.indexer_types[0]: no layer before the first has chosen keys");
    expect_refused(SHARED("\"full\", \"half\", \"full\", \"full\""),
                   "job.json: model.indexer_types[1]: \"half\" is unknown; expected \"full\" or "
                   "\"shared\"");
}

CU_TestInfo indexer_tests[] = {
    {"sizes_by_hand", sizes_by_hand},
    {"products_by_hand", products_by_hand},
    {"indexer_by_hand", indexer_by_hand},
    {"heads_are_split_over_tp", heads_are_split_over_tp},
    {"shared_layers_have_no_indexer", shared_layers_have_no_indexer},
    {"files_that_contradict_themselves_are_refused", files_that_contradict_themselves_are_refused},
    CU_TEST_INFO_NULL,
};
