// What Hugging Face files of each family say, and what their absent keys mean.
#include "base/arena.h"
#include "base/json.h"
#include "config/model/model.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

static Arena arena;

static Model import(const char *text) {
    Model model = {0};
    JsonNode *root = ARENA_NEW(&arena, JsonNode);
    Status status = json_parse(text, strlen(text), "config.json", &arena, root);
    if (status.code == STATUS_OK) status = model_load(root, &arena, &model);
    if (status.code != STATUS_OK) fprintf(stderr, "%s\n", status.text);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return model;
}

static void done(void) {
    arena_free(&arena);
}

// One letter per layer: its window is full (f) or sliding (s); upper case where it is MoE.
static const char *layers_of(const Model *model) {
    char *text = arena_alloc(&arena, (size_t)model->num_layers + 1);
    for (int i = 0; i < model->num_layers; i++) {
        const LayerKind *kind = &model->kinds[model->layer_kind[i]];
        const char *letters = kind_is_moe(kind) ? "FS" : "fs";
        text[i] = letters[kind->mixer.window > 0];
    }
    return text;
}

#define SMALL                                                                                      \
    "\"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 6, "                  \
    "\"num_attention_heads\": 8, \"vocab_size\": 1000"

static void llama_without_kv_heads_is_multi_head(void) {
    Model model = import("{\"model_type\": \"llama\", " SMALL "}");
    CU_ASSERT_EQUAL(model_mixer(&model)->num_kv_heads, 8);
    CU_ASSERT_EQUAL(model_mixer(&model)->head_dim, 8);
    CU_ASSERT_FALSE(model.tie_word_embeddings);
    CU_ASSERT_TRUE(model_ffn(&model)->gated);
    CU_ASSERT_FALSE(model_mixer(&model)->qkv_bias || model_mixer(&model)->out_bias ||
                    model_ffn(&model)->bias);
    CU_ASSERT_EQUAL(model.position, POSITION_ROPE);
    CU_ASSERT_EQUAL(model.max_position_embeddings, 0);
    CU_ASSERT_EQUAL(model.num_kinds, 1);
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "ffffff");
    done();
}

static void llama_biases_are_switches(void) {
    Model model =
        import("{\"model_type\": \"llama\", \"attention_bias\": true, \"mlp_bias\": true, "
               "\"num_key_value_heads\": null, \"torch_dtype\": \"bfloat16\", "
               "\"rope_scaling\": {\"factor\": 8.0}, " SMALL "}");
    CU_ASSERT_TRUE(model_mixer(&model)->qkv_bias && model_mixer(&model)->out_bias &&
                   model_ffn(&model)->bias);
    CU_ASSERT_EQUAL(model_mixer(&model)->num_kv_heads, 8);
    // attention 4 x 64 x 64 + 4 x 64, MLP 3 x 64 x 128 + 2 x 128 + 64
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, model_mixer(&model)), 16640);
    CU_ASSERT_EQUAL(model_mlp_parameters(&model, model_ffn(&model)), 24896);
    done();
}

// transformers: MistralConfig has 8 key-value heads and a window of 4096 unless told otherwise.
static void mistral_absent_and_null_differ(void) {
    Model absent = import("{\"model_type\": \"mistral\", " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&absent), "ssssss");
    CU_ASSERT_EQUAL(absent.kinds[0].mixer.window, 4096);
    Model null = import("{\"model_type\": \"mistral\", \"sliding_window\": null, " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&null), "ffffff");
    done();
}

static void mixtral_experts_have_the_dense_size(void) {
    Model model = import("{\"model_type\": \"mixtral\", \"num_local_experts\": 4, " SMALL "}");
    CU_ASSERT_EQUAL(model_ffn(&model)->num_experts, 4);
    CU_ASSERT_EQUAL(model_ffn(&model)->num_experts_per_tok, 2);
    CU_ASSERT_EQUAL(model_ffn(&model)->moe_intermediate_size, 128);
    CU_ASSERT_EQUAL(model_router_parameters(&model, model_ffn(&model)), 256);
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "FFFFFF");
    done();
}

static void qwen2_window_needs_its_switch(void) {
    const char *off =
        "{\"model_type\": \"qwen2\", \"sliding_window\": 32, \"max_window_layers\": 4, "
        "\"num_key_value_heads\": 2, \"tie_word_embeddings\": true, " SMALL "}";
    Model model = import(off);
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "ffffff");
    CU_ASSERT_TRUE(model_mixer(&model)->qkv_bias && !model_mixer(&model)->out_bias &&
                   model.tie_word_embeddings);
    Model on = import("{\"model_type\": \"qwen2\", \"use_sliding_window\": true, "
                      "\"sliding_window\": 32, \"max_window_layers\": 4, "
                      "\"num_key_value_heads\": 2, " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&on), "ffffss");
    CU_ASSERT_EQUAL(on.kinds[1].mixer.window, 32);
    done();
}

static void qwen2_moe_has_a_gated_shared_expert(void) {
    Model model = import("{\"model_type\": \"qwen2_moe\", \"num_experts\": 8, "
                         "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, "
                         "\"shared_expert_intermediate_size\": 96, \"num_key_value_heads\": 8, "
                         "\"decoder_sparse_step\": 2, \"mlp_only_layers\": [5], " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "fFfFff");
    CU_ASSERT_EQUAL(model.num_kinds, 2);
    CU_ASSERT_EQUAL(model_expert_parameters(&model, model_ffn(&model)), 3 * 64 * 32);
    CU_ASSERT_EQUAL(model_shared_expert_parameters(&model, model_ffn(&model)), 3 * 64 * 96);
    CU_ASSERT_EQUAL(model_router_parameters(&model, model_ffn(&model)), 64 * 8 + 64);
    done();
}

static void qwen3_norms_each_head(void) {
    Model model = import("{\"model_type\": \"qwen3\", \"num_key_value_heads\": 4, " SMALL "}");
    CU_ASSERT_EQUAL(model_mixer(&model)->head_dim, 128); // not hidden_size / num_attention_heads
    CU_ASSERT_TRUE(model_mixer(&model)->qk_norm);
    CU_ASSERT_EQUAL(model_layer_norm_parameters(&model, model_mixer(&model)), 2 * 64 + 2 * 128);
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, model_mixer(&model)),
                    64 * (8 + 4 + 4) * 128 + 8 * 128 * 64);
    done();
}

#define DEEPSEEK                                                                                   \
    "\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, "         \
    "\"kv_lora_rank\": 16, \"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 4, \"v_head_dim\": "     \
    "8, " SMALL

// Query 64 x 8 x 12 = 6144; down 64 x 20 = 1280; up 16 x 8 x 16 = 2048; output 64 x 64 = 4096.
static void deepseek_v2_lite_projects_the_query_directly(void) {
    Model model = import("{\"model_type\": \"deepseek_v2\", \"q_lora_rank\": null, "
                         "\"n_shared_experts\": 2, \"first_k_dense_replace\": 1, "
                         "\"moe_layer_freq\": 1, " DEEPSEEK "}");
    CU_ASSERT_EQUAL(model_mixer(&model)->kind, MIXER_LATENT_ATTENTION);
    CU_ASSERT_EQUAL(model_mixer(&model)->q_lora_rank, 0);
    CU_ASSERT_EQUAL(model_ffn(&model)->shared_intermediate_size, 64);
    CU_ASSERT_FALSE(model_ffn(&model)->router_bias);
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "fFFFFF");
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, model_mixer(&model)), 6144 + 1280 + 2048 + 4096);
    CU_ASSERT_EQUAL(model_layer_norm_parameters(&model, model_mixer(&model)), 2 * 64 + 16);
    done();
}

// Query through rank 24: 64 x 24 + 24 x 96 = 3840; biases on both down-projections and the output.
static void deepseek_v3_counts_ranks_biases_and_mtp(void) {
    Model model =
        import("{\"model_type\": \"deepseek_v3\", \"q_lora_rank\": 24, "
               "\"attention_bias\": true, \"num_nextn_predict_layers\": 1, " DEEPSEEK "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "fffFFF"); // first_k_dense_replace is 3
    CU_ASSERT_TRUE(model_ffn(&model)->router_bias);
    CU_ASSERT_EQUAL(model_ffn(&model)->shared_intermediate_size, 32);
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, model_mixer(&model)),
                    3840 + 1280 + 2048 + 4096 + 24 + 20 + 64);
    CU_ASSERT_EQUAL(model_layer_norm_parameters(&model, model_mixer(&model)), 2 * 64 + 24 + 16);
    const LayerKind *last = &model.kinds[model.layer_kind[model.num_layers - 1]];
    CU_ASSERT_EQUAL(model_mtp_parameters(&model),
                    2 * 64 * 64 + 3 * 64 + model_layer_parameters(&model, last));
    done();
}

static void deepseek_without_experts_is_dense(void) {
    Model model =
        import("{\"model_type\": \"deepseek_v2\", \"n_routed_experts\": null, " SMALL "}");
    CU_ASSERT_EQUAL(model_ffn(&model)->num_experts, 0);
    CU_ASSERT_EQUAL(model_ffn(&model)->shared_intermediate_size, 0);
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "ffffff");
    done();
}

static void gpt_oss_has_sinks_and_biases_everywhere(void) {
    Model model = import("{\"model_type\": \"gpt_oss\", \"num_local_experts\": 4, "
                         "\"experts_per_token\": 2, \"num_experts_per_tok\": 2, "
                         "\"head_dim\": 16, \"num_key_value_heads\": 2, " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "SFSFSF");
    CU_ASSERT_EQUAL(model.kinds[0].mixer.window, 128);
    // 64 x (8 + 2 + 2) x 16 and its bias, 8 x 16 x 64 and its bias, 8 sinks
    CU_ASSERT_EQUAL(model_mixer_parameters(&model, model_mixer(&model)),
                    12288 + 192 + 8192 + 64 + 8);
    CU_ASSERT_EQUAL(model_expert_parameters(&model, model_ffn(&model)),
                    3 * 64 * 128 + 2 * 128 + 64);
    CU_ASSERT_EQUAL(model_router_parameters(&model, model_ffn(&model)), 64 * 4 + 4);
    done();
}

static void gemma2_alternates_and_ties(void) {
    Model model = import("{\"model_type\": \"gemma2\", \"head_dim\": 16, \"sliding_window\": 32, "
                         "\"num_key_value_heads\": 4, " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "sfsfsf");
    CU_ASSERT_TRUE(model.tie_word_embeddings);
    CU_ASSERT_EQUAL(model_layer_norm_parameters(&model, model_mixer(&model)), 4 * 64);
    CU_ASSERT_EQUAL(model_head_parameters(&model), 64); // the final norm
    done();
}

// The released gemma-3-4b: what it leaves out are the defaults of Gemma3TextConfig.
static void gemma3_reads_its_text(void) {
    Model model = import("{\"model_type\": \"gemma3\", \"vision_config\": {\"hidden_size\": 1152, "
                         "\"num_attention_heads\": 16, \"image_size\": 896, \"patch_size\": 14}, "
                         "\"text_config\": {\"hidden_size\": 2560, \"intermediate_size\": 10240, "
                         "\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 34, "
                         "\"sliding_window\": 1024}}");
    CU_ASSERT_EQUAL(model_num_parameters(&model), 3880263168.0);
    CU_ASSERT_EQUAL(model_mixer(&model)->num_heads, 8);
    CU_ASSERT_EQUAL(model_mixer(&model)->num_kv_heads, 4);
    CU_ASSERT_EQUAL(model_mixer(&model)->head_dim, 256);
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "sssssfsssssfsssssfsssssfsssssfssss");
    CU_ASSERT_EQUAL(model.kinds[0].mixer.window, 1024);
    done();
}

static void layer_types_decide_where_they_are(void) {
    Model model =
        import("{\"model_type\": \"gemma3_text\", \"sliding_window\": 512, \"layer_types\": "
               "[\"full_attention\", \"sliding_attention\", \"full_attention\", "
               "\"full_attention\", \"sliding_attention\", \"full_attention\"], " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "fsffsf");
    done();
}

static void phi3_window_is_everywhere(void) {
    Model model = import("{\"model_type\": \"phi3\", \"sliding_window\": 2047, "
                         "\"attention_bias\": false, " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&model), "ssssss");
    CU_ASSERT_EQUAL(model.kinds[0].mixer.window, 2047);
    done();
}

static void gpt2_keys_have_their_own_spelling(void) {
    Model model =
        import("{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, "
               "\"n_positions\": 128, \"n_ctx\": 128, \"n_inner\": null, "
               "\"vocab_size\": 1000}");
    CU_ASSERT_EQUAL(model.hidden_size, 64);
    CU_ASSERT_EQUAL(model_ffn(&model)->intermediate_size, 256);
    CU_ASSERT_EQUAL(model.max_position_embeddings, 128);
    CU_ASSERT_EQUAL(model_embedding_parameters(&model), 64 * (1000 + 128));
    CU_ASSERT_EQUAL(model_head_parameters(&model), 2 * 64);
    Model wide = import("{\"model_type\": \"gpt2\", \"hidden_size\": 64, \"n_layer\": 2, "
                        "\"n_head\": 4, \"n_inner\": 100, \"vocab_size\": 1000}");
    CU_ASSERT_EQUAL(model_ffn(&wide)->intermediate_size, 100);
    CU_ASSERT_EQUAL(wide.max_position_embeddings, 1024);
    done();
}

static void gpt_neox_is_parallel_and_untied(void) {
    Model model = import("{\"model_type\": \"gpt_neox\", " SMALL "}");
    CU_ASSERT_TRUE(model.parallel_residual && !model.tie_word_embeddings &&
                   model_mixer(&model)->qkv_bias);
    Model serial = import("{\"model_type\": \"gpt_neox\", \"use_parallel_residual\": false, "
                          "\"attention_bias\": false, " SMALL "}");
    CU_ASSERT_TRUE(!serial.parallel_residual && !model_mixer(&serial)->qkv_bias &&
                   model_ffn(&serial)->bias);
    done();
}

static void bloom_ignores_n_inner_and_norms_its_embedding(void) {
    Model model = import("{\"model_type\": \"bloom\", \"n_embed\": 64, \"n_layer\": 2, "
                         "\"num_attention_heads\": 4, \"n_inner\": 100, \"vocab_size\": 1000}");
    CU_ASSERT_EQUAL(model_ffn(&model)->intermediate_size, 256);
    CU_ASSERT_EQUAL(model.position, POSITION_ALIBI);
    CU_ASSERT_EQUAL(model_embedding_parameters(&model), 64 * 1000 + 2 * 64);
    done();
}

#define MPT "\"d_model\": 64, \"n_layers\": 2, \"n_heads\": 4, \"vocab_size\": 1000"

static void mpt_position_and_biases_are_choices(void) {
    Model model = import("{\"model_type\": \"mpt\", \"no_bias\": true, \"learned_pos_emb\": true, "
                         "\"attn_config\": {\"alibi\": true, \"qk_ln\": false}, " MPT "}");
    CU_ASSERT_EQUAL(model.position, POSITION_ALIBI);
    CU_ASSERT_FALSE(model_mixer(&model)->qkv_bias || model_ffn(&model)->bias || model.norm_bias);
    CU_ASSERT_EQUAL(model_embedding_parameters(&model), 64 * 1000);
    Model learned =
        import("{\"model_type\": \"mpt\", \"no_bias\": false, \"max_seq_len\": 512, "
               "\"expansion_ratio\": 2.5, \"attn_config\": {\"alibi\": false, "
               "\"attn_type\": \"grouped_query_attention\", \"kv_n_heads\": 2}, " MPT "}");
    CU_ASSERT_EQUAL(learned.max_position_embeddings, 512);
    CU_ASSERT_EQUAL(model_ffn(&learned)->intermediate_size, 160);
    CU_ASSERT_EQUAL(model_mixer(&learned)->num_kv_heads, 2);
    CU_ASSERT_TRUE(model_mixer(&learned)->qkv_bias && learned.norm_bias);
    Model rope = import("{\"model_type\": \"mpt\", \"norm_type\": \"rmsnorm\", \"attn_config\": "
                        "{\"alibi\": false, \"rope\": true, \"sliding_window_size\": -1, "
                        "\"attn_type\": \"multiquery_attention\"}, " MPT "}");
    CU_ASSERT_EQUAL(rope.position, POSITION_ROPE);
    CU_ASSERT_EQUAL(model_mixer(&rope)->num_kv_heads, 1);
    CU_ASSERT_EQUAL(rope.norm, NORM_RMSNORM);
    done();
}

#define OPT                                                                                        \
    "\"hidden_size\": 64, \"ffn_dim\": 128, \"num_hidden_layers\": 2, "                            \
    "\"num_attention_heads\": 4, \"vocab_size\": 1000"

static void opt_table_has_two_more_rows(void) {
    Model model = import("{\"model_type\": \"opt\", \"max_position_embeddings\": 512, "
                         "\"word_embed_proj_dim\": 64, " OPT "}");
    CU_ASSERT_EQUAL(model.max_position_embeddings, 514);
    CU_ASSERT_TRUE(model.final_norm);
    Model post = import("{\"model_type\": \"opt\", \"do_layer_norm_before\": false, "
                        "\"enable_bias\": false, " OPT "}");
    CU_ASSERT_FALSE(post.final_norm || model_mixer(&post)->qkv_bias || model_ffn(&post)->bias);
    CU_ASSERT_EQUAL(model_head_parameters(&post), 0);
    done();
}

#define FALCON                                                                                     \
    "\"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 8, "                  \
    "\"vocab_size\": 1000"

static void falcon_has_three_shapes(void) {
    Model small = import("{\"model_type\": \"falcon\", \"num_kv_heads\": 8, " FALCON "}");
    CU_ASSERT_EQUAL(model_mixer(&small)->num_kv_heads, 1); // multi_query
    CU_ASSERT_EQUAL(small.norms_per_layer, 1);
    CU_ASSERT_TRUE(small.parallel_residual && small.tie_word_embeddings &&
                   !model_mixer(&small)->qkv_bias);
    CU_ASSERT_EQUAL(model_ffn(&small)->intermediate_size, 256);
    Model large = import("{\"model_type\": \"falcon\", \"new_decoder_architecture\": true, "
                         "\"num_kv_heads\": 2, \"ffn_hidden_size\": 200, " FALCON "}");
    CU_ASSERT_EQUAL(model_mixer(&large)->num_kv_heads, 2);
    CU_ASSERT_EQUAL(large.norms_per_layer, 2);
    CU_ASSERT_EQUAL(model_ffn(&large)->intermediate_size, 200);
    Model refined = import("{\"model_type\": \"falcon\", \"alibi\": true, \"bias\": true, "
                           "\"multi_query\": false, \"parallel_attn\": false, " FALCON "}");
    CU_ASSERT_EQUAL(model_mixer(&refined)->num_kv_heads, 8);
    CU_ASSERT_EQUAL(refined.norms_per_layer, 2);
    CU_ASSERT_EQUAL(refined.position, POSITION_ALIBI);
    CU_ASSERT_TRUE(model_mixer(&refined)->qkv_bias && model_ffn(&refined)->bias &&
                   !refined.parallel_residual);
    done();
}

static void generic_defaults_are_those_of_gpt2(void) {
    Model model = import("{\"model_type\": \"generic\", " SMALL "}");
    CU_ASSERT_TRUE(!model_ffn(&model)->gated && model_mixer(&model)->qkv_bias &&
                   model_mixer(&model)->out_bias);
    CU_ASSERT_TRUE(model_ffn(&model)->bias && model.norm_bias && model.tie_word_embeddings);
    CU_ASSERT_EQUAL(model.norm, NORM_LAYERNORM);
    CU_ASSERT_EQUAL(model.position, POSITION_LEARNED);
    CU_ASSERT_EQUAL(model.max_position_embeddings, 0); // as many as the training needs
    Model llama =
        import("{\"model_type\": \"generic\", \"gated_mlp\": true, \"norm\": \"rmsnorm\", "
               "\"position\": \"rope\", \"linear_bias\": false, "
               "\"tie_word_embeddings\": false, \"sliding_window\": 32, "
               "\"max_position_embeddings\": 4096, " SMALL "}");
    Model same = import("{\"model_type\": \"llama\", " SMALL "}");
    CU_ASSERT_EQUAL(model_num_parameters(&llama), model_num_parameters(&same));
    CU_ASSERT_EQUAL(llama.max_position_embeddings, 0);
    CU_ASSERT_STRING_EQUAL(layers_of(&llama), "ssssss");
    done();
}

static void generic_takes_experts_and_mla(void) {
    Model moe = import("{\"model_type\": \"generic\", \"gated_mlp\": true, \"norm\": \"rmsnorm\", "
                       "\"position\": \"rope\", \"linear_bias\": false, \"num_experts\": 4, "
                       "\"num_experts_per_tok\": 2, \"first_k_dense_replace\": 2, "
                       "\"shared_expert_intermediate_size\": 32, "
                       "\"num_nextn_predict_layers\": 1, " SMALL "}");
    CU_ASSERT_STRING_EQUAL(layers_of(&moe), "ffFFFF");
    CU_ASSERT_EQUAL(model_ffn(&moe)->moe_intermediate_size, 128);
    CU_ASSERT_EQUAL(model_ffn(&moe)->shared_intermediate_size, 32);
    CU_ASSERT_EQUAL(moe.num_mtp_layers, 1);
    Model mla = import("{\"model_type\": \"generic\", \"kv_lora_rank\": 16, "
                       "\"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 4, \"v_head_dim\": 8, "
                       "\"num_key_value_heads\": 8, " SMALL "}");
    CU_ASSERT_EQUAL(model_mixer(&mla)->kind, MIXER_LATENT_ATTENTION);
    CU_ASSERT_EQUAL(model_mixer(&mla)->q_lora_rank, 0);
    CU_ASSERT_EQUAL(model_mixer(&mla)->head_dim, 12);
    done();
}

#define TEST(name)                                                                                 \
    { #name, name }

CU_TestInfo model_import_tests[] = {
    TEST(llama_without_kv_heads_is_multi_head),
    TEST(llama_biases_are_switches),
    TEST(mistral_absent_and_null_differ),
    TEST(mixtral_experts_have_the_dense_size),
    TEST(qwen2_window_needs_its_switch),
    TEST(qwen2_moe_has_a_gated_shared_expert),
    TEST(qwen3_norms_each_head),
    TEST(deepseek_v2_lite_projects_the_query_directly),
    TEST(deepseek_v3_counts_ranks_biases_and_mtp),
    TEST(deepseek_without_experts_is_dense),
    TEST(gpt_oss_has_sinks_and_biases_everywhere),
    TEST(gemma2_alternates_and_ties),
    TEST(gemma3_reads_its_text),
    TEST(layer_types_decide_where_they_are),
    TEST(phi3_window_is_everywhere),
    TEST(gpt2_keys_have_their_own_spelling),
    TEST(gpt_neox_is_parallel_and_untied),
    TEST(bloom_ignores_n_inner_and_norms_its_embedding),
    TEST(mpt_position_and_biases_are_choices),
    TEST(opt_table_has_two_more_rows),
    TEST(falcon_has_three_shapes),
    TEST(generic_defaults_are_those_of_gpt2),
    TEST(generic_takes_experts_and_mla),
    CU_TEST_INFO_NULL,
};
