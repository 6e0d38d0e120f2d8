// Mixers that keep a state, attention with gates and in chunks, layers of one half: sizes by hand.
#include "config/model/mixer.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

static Arena arena;

static Status load(const char *text, Model *model) {
    JsonNode root;
    *model = (Model){0};
    CU_ASSERT_EQUAL(json_parse(text, strlen(text), "config.json", &arena, &root).code, STATUS_OK);
    return model_load(&root, &arena, model);
}

static Model import(const char *text) {
    Model model;
    const Status status = load(text, &model);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code != STATUS_OK) fprintf(stderr, "%s\n", status.text);
    return model;
}

static void expect_refused(const char *text, const char *message) {
    Model model;
    const Status status = load(text, &model);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text, message);
    if (strcmp(status.text, message) != 0) fprintf(stderr, "%s\n", status.text);
    arena_reset(&arena);
}

#define SIZES                                                                                      \
    "\"hidden_size\": 64, \"num_hidden_layers\": 4, \"num_attention_heads\": 4, "                  \
    "\"num_key_value_heads\": 2, \"head_dim\": 16, \"vocab_size\": 100, "                          \
    "\"intermediate_size\": 128"
#define DELTA                                                                                      \
    "\"linear_num_key_heads\": 2, \"linear_key_head_dim\": 8, \"linear_num_value_heads\": 4, "     \
    "\"linear_value_head_dim\": 16"

// Three layers of four are of the gated delta rule: 16 numbers of keys, 64 of values. In:
// 64 x (2 x 16 + 2 x 64 + 2 x 4) = 10752, out 64 x 64, convolution 4 x (2 x 16 + 64), decay 2 x 4;
// a norm of 16. The state: 4 heads of 8 x 16 in fp32, and 3 inputs of 96 numbers.
static void gated_delta_rule_by_hand(void) {
    const Model model = import("{\"model_type\": \"qwen3_5_text\", " SIZES ", " DELTA "}");
    const Mixer *own = &model.kinds[model.layer_kind[0]].mixer;
    const MixerRow *row = mixer_row(own->kind);
    CU_ASSERT_EQUAL(own->kind, MIXER_GATED_DELTA);
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, own), 10752 + 4096 + 4 * 96 + 8);
    CU_ASSERT_EQUAL(row->norm_parameters(&model, own), 16);
    CU_ASSERT_EQUAL(row->token_flops(own, 1000), 8 * 4 * 8 * 16);
    CU_ASSERT_EQUAL(row->cache_values(own), 0);
    CU_ASSERT_EQUAL(row->state_bytes(own, 2), 4 * 4 * 8 * 16 + 2 * 3 * 96);
    CU_ASSERT_EQUAL(model_layer_parameters(&model, &model.kinds[model.layer_kind[0]]),
                    15240 + 16 + 2 * 64 + 3 * 64 * 128);
    CU_ASSERT_EQUAL(model.num_kinds, 2);
    CU_ASSERT_EQUAL(model.layer_kind[2], model.layer_kind[0]);
    // The fourth is attention, for which the model speaks where it is asked for one mixer.
    const Mixer *attention = &model.kinds[model.layer_kind[3]].mixer;
    CU_ASSERT_PTR_EQUAL(model_mixer(&model), attention);
    CU_ASSERT_EQUAL(attention->output_gate, GATE_RESULTS);
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, attention),
                    64 * 2 * 64 + 64 * 2 * 2 * 16 + 64 * 64);
    CU_ASSERT_EQUAL(mixer_row(attention->kind)->cache_values(attention), 2 * 2 * 16);
    arena_free(&arena);
}

static void heads_that_keep_a_state_are_split_whole(void) {
    const Model model = import("{\"model_type\": \"qwen3_5_text\", " SIZES ", " DELTA "}");
    const Mixer *own = &model.kinds[model.layer_kind[0]].mixer;
    const MixerRow *row = mixer_row(own->kind);
    char text[MIXER_CONFLICT];
    CU_ASSERT_FALSE(row->tp_conflict(own, 2, text));
    CU_ASSERT_TRUE(row->tp_conflict(own, 4, text));
    CU_ASSERT_STRING_EQUAL(text, "4 does not divide the 2 groups of keys of gated_delta");
    CU_ASSERT_FALSE(row->heads_conflict(own, 1, 2, text));
    CU_ASSERT_TRUE(row->heads_conflict(own, 2, 2, text));
    CU_ASSERT_STRING_EQUAL(text, "2 does not divide the 2 groups of keys of gated_delta / tp 2: "
                                 "its ranks trade tokens for heads");
    CU_ASSERT_TRUE(row->always_trades_heads);
    arena_free(&arena);
}

#define NEMOTRON                                                                                   \
    "{\"model_type\": \"nemotron_h\", " SIZES ", \"mamba_num_heads\": 4, \"mamba_head_dim\": 16, " \
    "\"n_groups\": 2, \"ssm_state_size\": 8, \"time_step_limit\": [0.0, Infinity], "
#define NEMOTRON_EXPERTS                                                                           \
    "\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, "         \
    "\"moe_shared_expert_intermediate_size\": 48, \"n_shared_experts\": 1, "

// One of M, *, - and E a layer, with one norm. Mamba-2: 64 numbers of values, 16 of keys. In:
// 64 x (2 x 64 + 2 x 16 + 4), out 64 x 64, convolution and its bias 5 x (64 + 2 x 16), 3 numbers a
// head; a norm of 64. Experts have two matrices.
static void layers_of_one_half_by_hand(void) {
    const Model model = import(NEMOTRON NEMOTRON_EXPERTS "\"hybrid_override_pattern\": \"M*-E\"}");
    const LayerKind *kinds[4];
    for (int i = 0; i < 4; i++) kinds[i] = &model.kinds[model.layer_kind[i]];
    const Mixer *own = &kinds[0]->mixer;
    CU_ASSERT_EQUAL(own->kind, MIXER_MAMBA2);
    CU_ASSERT_EQUAL(own->scan_chunk, 128);
    const double mamba = 64 * 164 + 4096 + 5 * 96 + 12;
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, own), mamba);
    CU_ASSERT_EQUAL(mixer_row(own->kind)->token_flops(own, 1000), 7 * 4 * 8 * 16);
    CU_ASSERT_EQUAL(mixer_row(own->kind)->state_bytes(own, 2), 4 * 4 * 8 * 16 + 2 * 3 * 96);
    CU_ASSERT_EQUAL(model_layer_parameters(&model, kinds[0]), mamba + 64 + 64);
    CU_ASSERT_EQUAL(model_layer_parameters(&model, kinds[1]),
                    64 * (64 + 2 * 2 * 16) + 64 * 64 + 64);
    CU_ASSERT_EQUAL(model_layer_parameters(&model, kinds[2]), 2 * 64 * 128 + 64);
    CU_ASSERT_EQUAL(model_layer_parameters(&model, kinds[3]),
                    8 * 2 * 64 * 32 + 64 * 8 + 8 + 2 * 64 * 48 + 64);
    CU_ASSERT_EQUAL(kinds[3]->mixer.kind, MIXER_NONE);
    CU_ASSERT_TRUE(kinds[1]->ffn.none);
    CU_ASSERT_EQUAL(model.position, POSITION_NONE);
    arena_free(&arena);
}

static void patterns_of_a_wrong_length_are_refused(void) {
    expect_refused(NEMOTRON "\"hybrid_override_pattern\": \"M*-\"}",
                   "config.json: hybrid_override_pattern: has 3 layers, num_hidden_layers is 4");
    expect_refused(NEMOTRON "\"hybrid_override_pattern\": \"M*-X\"}",
                   "config.json: hybrid_override_pattern: 'X' is no kind of layer; expected M, *, "
                   "- or E");
    expect_refused(NEMOTRON "\"layers_block_type\": [\"mamba\"]}",
                   "config.json: layers_block_type: has 1 layers, num_hidden_layers is 4");
    expect_refused("{\"model_type\": \"nemotron_h\", " SIZES "}",
                   "config.json: hybrid_override_pattern: missing; expected it or "
                   "layers_block_type");
}

// Every fourth layer has no positions and sees all; the norm of queries and keys has no weights.
static void llama_4_sees_chunks(void) {
    const Model model = import(
        "{\"model_type\": \"llama4_text\", " SIZES ", \"intermediate_size_mlp\": 256, "
        "\"num_local_experts\": 4, \"num_experts_per_tok\": 1, \"interleave_moe_layer_step\": 2, "
        "\"attention_chunk_size\": 32, \"use_qk_norm\": true, "
        "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 16, \"low_freq_factor\": 1, "
        "\"high_freq_factor\": 1, \"original_max_position_embeddings\": 8192}}");
    const LayerKind *first = &model.kinds[model.layer_kind[0]],
                    *last = &model.kinds[model.layer_kind[3]];
    CU_ASSERT_EQUAL(first->mixer.chunk, 32);
    CU_ASSERT_FALSE(first->mixer.no_positions);
    CU_ASSERT_EQUAL(model_heads_norm_parameters(&model, &first->mixer), 0);
    CU_ASSERT_TRUE(first->mixer.qk_norm);
    CU_ASSERT_EQUAL(last->mixer.chunk, 0);
    CU_ASSERT_TRUE(last->mixer.no_positions);
    CU_ASSERT_FALSE(last->mixer.qk_norm);
    CU_ASSERT_FALSE(kind_is_moe(first));
    CU_ASSERT_TRUE(kind_is_moe(&model.kinds[model.layer_kind[1]]));
    CU_ASSERT_EQUAL(model_mlp_parameters(&model, &first->ffn), 3 * 64 * 256);
    CU_ASSERT_EQUAL(model_shared_expert_parameters(&model, &last->ffn), 3 * 64 * 128);
    arena_free(&arena);
}

// Layers with a window have heads of their own, each with a gate.
static void step_has_other_heads_behind_a_window(void) {
    const Model model =
        import("{\"model_type\": \"step3p5\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
               "\"num_attention_heads\": 4, \"num_attention_groups\": 2, \"head_dim\": 16, "
               "\"vocab_size\": 100, \"intermediate_size\": 128, \"moe_num_experts\": 4, "
               "\"moe_top_k\": 2, "
               "\"moe_intermediate_size\": 32, \"share_expert_dim\": 32, \"sliding_window\": 8, "
               "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\"], "
               "\"num_nextn_predict_layers\": 1, \"moe_layers_enum\": \"1,2\", "
               "\"use_head_wise_attn_gate\": true, \"attention_other_setting\": "
               "{\"num_attention_heads\": 6, \"num_attention_groups\": 2, \"head_dim\": 16}}");
    const LayerKind *first = &model.kinds[model.layer_kind[0]],
                    *second = &model.kinds[model.layer_kind[1]];
    CU_ASSERT_EQUAL(first->mixer.num_heads, 4);
    CU_ASSERT_EQUAL(second->mixer.num_heads, 6);
    CU_ASSERT_EQUAL(second->mixer.window, 8);
    CU_ASSERT_FALSE(kind_is_moe(first));
    CU_ASSERT_TRUE(kind_is_moe(second));
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, &second->mixer), 64 * (96 + 6 + 64) + 96 * 64);
    arena_free(&arena);
}

static void what_is_missing_is_named(void) {
    expect_refused("{\"model_type\": \"deepseek_v4\", \"index_topk\": 1024, \"hc_mult\": 4, "
                   "\"compress_ratios\": [128, 4]}",
                   "config.json: index_topk: sparse attention with an indexer (index_topk), "
                   "compressed attention (compress_ratios), several residual streams (hc_mult) are "
                   "not modelled yet");
    expect_refused("{\"model_type\": \"deepseek_v3\", \"index_topk\": 2048}",
                   "config.json: index_topk: sparse attention with an indexer (index_topk) is not "
                   "modelled yet");
    expect_refused("{\"model_type\": \"llama\", \"attention_chunk_size\": 8192}",
                   "config.json: attention_chunk_size: attention in chunks (attention_chunk_size) "
                   "is not modelled yet");
    expect_refused(NEMOTRON "\"moe_latent_size\": 1024, \"hybrid_override_pattern\": \"MMMM\"}",
                   "config.json: moe_latent_size: experts of a latent width (moe_latent_size) is "
                   "not modelled yet");
}

// Formats of released weights are no part of a model that is trained.
static void formats_of_weights_are_no_part_of_it(void) {
    const Model plain = import("{\"model_type\": \"qwen3_5_text\", " SIZES ", " DELTA "}");
    const Model quantized = import(
        "{\"model_type\": \"qwen3_5_text\", " SIZES ", " DELTA ", \"quantization_config\": "
        "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"ignore\": [\"lm_head\"]}}");
    CU_ASSERT_EQUAL(model_num_parameters(&plain), model_num_parameters(&quantized));
    arena_free(&arena);
}

static void towers_are_refused_with_a_hint(void) {
    expect_refused(
        "{\"model_type\": \"llama4\", \"text_config\": {\"model_type\": \"llama4_text\", " SIZES
        "}, "
        "\"vision_config\": {\"hidden_size\": 1408}}",
        "config.json: vision_config: the tower for images of \"llama4\" is not modelled yet; its "
        "text_config is \"llama4\", which is known: for the text alone put what `meshwright models "
        "FILE --text-only --json` prints in the place of the model");
}

CU_TestInfo mixers_tests[] = {
    {"gated_delta_rule_by_hand", gated_delta_rule_by_hand},
    {"heads_that_keep_a_state_are_split_whole", heads_that_keep_a_state_are_split_whole},
    {"layers_of_one_half_by_hand", layers_of_one_half_by_hand},
    {"patterns_of_a_wrong_length_are_refused", patterns_of_a_wrong_length_are_refused},
    {"llama_4_sees_chunks", llama_4_sees_chunks},
    {"step_has_other_heads_behind_a_window", step_has_other_heads_behind_a_window},
    {"what_is_missing_is_named", what_is_missing_is_named},
    {"formats_of_weights_are_no_part_of_it", formats_of_weights_are_no_part_of_it},
    {"towers_are_refused_with_a_hint", towers_are_refused_with_a_hint},
    CU_TEST_INFO_NULL,
};
