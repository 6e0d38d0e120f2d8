// Loading a model by name, path or in place, and every refusal with its exact words.
#include "config/model/model.h"

#include "base/arena.h"
#include "base/json.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Arena arena;

// The value of `model` in a scenario file named scenario_path.
static Status load(const char *scenario_path, const char *value, Model *model) {
    char text[4096];
    int size = snprintf(text, sizeof text, "{\"model\": %s}", value);
    JsonNode *root = ARENA_NEW(&arena, JsonNode), *node = ARENA_NEW(&arena, JsonNode);
    Status status = json_parse(text, (size_t)size, scenario_path, &arena, root);
    if (status.code != STATUS_OK) return status;
    *node = json_get(root, "model");
    return model_load(node, &arena, model);
}

static void expect_message(const char *value, const char *message) {
    Model model;
    Status status = load("job.json", value, &model);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text, message);
    if (strcmp(status.text, message) != 0) fprintf(stderr, "%s\n", status.text);
    arena_reset(&arena);
}

static void done(void) {
    arena_free(&arena);
}

static void preset_is_found_by_name(void) {
    Model model = {0};
    CU_ASSERT_EQUAL(load("job.json", "\"llama-3.1-70b\"", &model).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(model.name, "llama-3.1-70b");
    CU_ASSERT_STRING_EQUAL(model.model_type, "llama");
    CU_ASSERT_PTR_NOT_NULL(model.source);
    CU_ASSERT_EQUAL(model.num_layers, 80);
    CU_ASSERT_EQUAL(model_mixer(&model)->head_dim, 128);
    done();
}

static void object_in_place_is_named_by_itself_or_its_type(void) {
    const char *named = "{\"model_type\": \"generic\", \"name\": \"mine\", \"hidden_size\": 64, "
                        "\"intermediate_size\": 128, \"num_hidden_layers\": 2, "
                        "\"num_attention_heads\": 4, \"vocab_size\": 1000}";
    const char *unnamed = "{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, "
                          "\"n_head\": 4, \"vocab_size\": 1000}";
    Model model = {0};
    CU_ASSERT_EQUAL(load("job.json", named, &model).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(model.name, "mine");
    CU_ASSERT_PTR_NULL(model.source);
    CU_ASSERT_EQUAL(load("job.json", unnamed, &model).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(model.name, "gpt2");
    done();
}

static void path_is_relative_to_the_scenario(void) {
    char dir[] = "/tmp/test-model-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    const char *folder = arena_printf(&arena, "%s/My-Model", dir);
    const char *path = arena_printf(&arena, "%s/config.json", folder);
    const char *scenario = arena_printf(&arena, "%s/job.json", dir);
    CU_ASSERT_EQUAL(mkdir(folder, 0700), 0);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 5, "
          "\"vocab_size\": 1000}",
          file);
    fclose(file);

    Model model = {0};
    Status status = load(scenario, "\"My-Model/config.json\"", &model);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text,
                           arena_printf(&arena, "%s: n_head: 5 does not divide n_embd 64", path));

    file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, "
          "\"vocab_size\": 1000}",
          file);
    fclose(file);
    CU_ASSERT_EQUAL(load(scenario, "\"My-Model/config.json\"", &model).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(model.name, "My-Model");
    // From inside the folder its name does not stand in the path.
    const char *beside = arena_printf(&arena, "%s/job.json", folder);
    CU_ASSERT_EQUAL(load(beside, "\"./config.json\"", &model).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(model.name, "My-Model");
    // What the file says it was loaded from is its name.
    file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, "
          "\"vocab_size\": 1000, \"_name_or_path\": \"some-lab/Tiny-1.5\"}",
          file);
    fclose(file);
    CU_ASSERT_EQUAL(load(scenario, "\"My-Model/config.json\"", &model).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(model.name, "Tiny-1.5");
    unlink(path);
    rmdir(folder);
    rmdir(dir);
    done();
}

static void missing_file_names_presets_of_a_similar_name(void) {
    Model model;
    Status status = load("job.json", "\"meta-llama/Llama-3.1-70B\"", &model);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(
        status.text, "job.json: model: meta-llama/Llama-3.1-70B cannot be read: No such file or "
                     "directory; presets of a similar name are llama-3.1-70b, "
                     "llama-3.3-70b, llama-3-70b");
    done();
}

static void unknown_names_are_refused_with_the_nearest(void) {
    expect_message("\"llama-3.1-7b\"", "job.json: model: \"llama-3.1-7b\" is unknown; the nearest "
                                       "known ones are llama-3.1-70b, llama-3.1-8b, llama-3.2-1b");
    expect_message("\"Mixtral-8x7C\"", "job.json: model: \"Mixtral-8x7C\" is unknown; the nearest "
                                       "known ones are mixtral-8x7b, mixtral-8x22b");
    expect_message("\"?\"", "job.json: model: \"?\" is unknown; `meshwright models` lists what is "
                            "known");
    expect_message("{\"model_type\": \"lama\"}",
                   "job.json: model.model_type: \"lama\" is unknown; the nearest known ones are "
                   "llama");
    Model model;
    Status status = model_load_preset("gpt3-176b", &arena, &model);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_EQUAL(strncmp(status.text,
                            "model: \"gpt3-176b\" is unknown; the nearest known ones "
                            "are gpt3-175b",
                            strlen("model: \"gpt3-176b\" is unknown; the nearest known ones are "
                                   "gpt3-175b")),
                    0);
    done();
}

// Unknown keys of a Hugging Face file are ignored, but not where one of them must be meant.
static void a_misspelled_required_key_is_pointed_at(void) {
    expect_message("{\"model_type\": \"llama\", \"hidden_sise\": 64, \"num_hidden_layers\": 2, "
                   "\"num_attention_heads\": 8, \"vocab_size\": 1000}",
                   "job.json: model.hidden_size: missing; the file has \"hidden_sise\"");
    expect_message("{\"model_type\": \"mamba2\"}",
                   "job.json: model.model_type: \"mamba2\" is unknown; known are llama, llama4, "
                   "mistral, mixtral, qwen2, "
                   "qwen2_vl, qwen2_5_vl, qwen2_moe, qwen3, qwen3_moe, qwen3_vl, "
                   "qwen3_vl_moe, qwen3_next, qwen3_5, qwen3_5_moe, deepseek_v2, "
                   "deepseek_v3, kimi_k2, kimi_k25, kimi_vl, deepseek_v32, glm_moe_dsa, gpt_oss, "
                   "gemma2, gemma3, phi3, "
                   "internlm, gpt2, gpt_neox, bloom, mpt, opt, falcon, "
                   "RefinedWebModel, mimo, glm4_moe, seed_oss, hunyuan_v1_dense, "
                   "smollm3, cohere2, ernie4_5, ernie4_5_moe, minimax_m2, "
                   "nemotron_h, step3p5, step3p7, t5, mt5, generic");
}

static void values_of_a_wrong_type_are_refused(void) {
    expect_message("7", "job.json: model: expected a preset's name, a path or an object, found a "
                        "number");
    expect_message("{}", "job.json: model.model_type: missing; expected a string");
    expect_message("{\"model_type\": 3}",
                   "job.json: model.model_type: expected a string, found a number");
}

// A Llama with one key set; later keys of the same name are not allowed, so each is left out here.
#define LLAMA(keys) "{\"model_type\": \"llama\", \"vocab_size\": 1000, " keys "}"
#define SIZES "\"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 2"

static void sizes_are_checked(void) {
    expect_message(LLAMA("\"hidden_size\": 64"),
                   "job.json: model.num_hidden_layers: missing; expected a whole number");
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": 7"),
                   "job.json: model.num_attention_heads: 7 does not divide hidden_size 64");
    // Written as null, also in a family with a default of its own: hidden_size / heads.
    expect_message("{\"model_type\": \"gpt_oss\", \"vocab_size\": 1000, " SIZES
                   ", \"num_attention_heads\": 72, \"num_key_value_heads\": 8, "
                   "\"num_local_experts\": 4, \"head_dim\": null}",
                   "job.json: model.num_attention_heads: 72 does not divide hidden_size 64");
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": 8, \"num_key_value_heads\": 3"),
                   "job.json: model.num_key_value_heads: 3 does not divide num_attention_heads 8");
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": 0"),
                   "job.json: model.num_attention_heads: 0 is out of range; expected 1 to 16384");
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": 2.5"),
                   "job.json: model.num_attention_heads: 2.5 is not a whole number");
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": \"few\""),
                   "job.json: model.num_attention_heads: expected a whole number, found a string");
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": 8, \"n_head\": 4"),
                   "job.json: model.n_head: 4 contradicts num_attention_heads 8");
    expect_message(LLAMA("\"hidden_size\": 99999999999"),
                   "job.json: model.hidden_size: 99999999999 is out of range; expected 1 to "
                   "1048576");
    expect_message("{\"model_type\": \"llama\", \"hidden_size\": 1048576, \"vocab_size\": 1000, "
                   "\"num_attention_heads\": 8192, \"intermediate_size\": 16777216, "
                   "\"num_hidden_layers\": 4096}",
                   "job.json: model: the sizes give 2.34e+17 parameters; expected at most 1e+15");
}

#define MIXTURE                                                                                    \
    "{\"model_type\": \"qwen3_moe\", \"vocab_size\": 1000, \"num_attention_heads\": 8, "           \
    "\"num_experts\": 4, " SIZES ", "

static void mixtures_are_checked(void) {
    expect_message(MIXTURE "\"num_experts_per_tok\": 5}",
                   "job.json: model.num_experts_per_tok: 5 is more than the 4 experts");
    expect_message(MIXTURE "\"num_experts_per_tok\": 2, \"mlp_only_layers\": [2]}",
                   "job.json: model.mlp_only_layers[0]: 2 is out of range; expected 0 to 1");
    expect_message(MIXTURE "\"num_experts_per_tok\": 2, \"first_k_dense_replace\": 3}",
                   "job.json: model.first_k_dense_replace: 3 is out of range; expected 0 to 2");
    expect_message(MIXTURE "\"num_experts_per_tok\": 2, \"decoder_sparse_step\": 0}",
                   "job.json: model.decoder_sparse_step: 0 is out of range; expected 1 to 16384");
    expect_message(MIXTURE "\"num_experts_per_tok\": 2, \"n_shared_experts\": 2, "
                           "\"shared_expert_intermediate_size\": 7}",
                   "job.json: model.shared_expert_intermediate_size: 7 contradicts "
                   "n_shared_experts 2 x moe_intermediate_size 768");
}

static void expert_groups_are_checked(void) {
    expect_message(MIXTURE "\"num_experts_per_tok\": 2, \"n_group\": 3, \"topk_group\": 1}",
                   "job.json: model.n_group: 3 does not divide the 4 experts");
    expect_message(MIXTURE "\"num_experts_per_tok\": 2, \"n_group\": 4, \"topk_group\": 1}",
                   "job.json: model.topk_group: 1 of 4 groups hold fewer than 2 experts");
}

static void layer_types_are_checked(void) {
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": 8, \"layer_types\": "
                               "[\"full_attention\"]"),
                   "job.json: model.layer_types: has 1 entries; expected one for each of the 2 "
                   "layers");
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": 8, \"layer_types\": "
                               "[\"full_attention\", \"linear_attention\"]"),
                   "job.json: model.layer_types[1]: \"linear_attention\" is not supported yet");
    expect_message(LLAMA(SIZES ", \"num_attention_heads\": 8, \"layer_types\": "
                               "[\"full_attention\", \"sliding_attention\"]"),
                   "job.json: model.sliding_window: missing or switched off; layer_types has "
                   "sliding_attention");
}

static void what_cannot_be_modelled_is_refused(void) {
    expect_message(LLAMA("\"is_encoder_decoder\": true"),
                   "job.json: model.is_encoder_decoder: an encoder with a decoder is not "
                   "supported yet");
    expect_message("{\"model_type\": \"opt\", \"vocab_size\": 1000, \"num_attention_heads\": 8, "
                   "\"word_embed_proj_dim\": 32, " SIZES "}",
                   "job.json: model.word_embed_proj_dim: 32 differs from hidden_size 64; a "
                   "projected embedding is not supported yet");
    expect_message("{\"model_type\": \"mpt\", \"vocab_size\": 1000, \"d_model\": 64, "
                   "\"n_heads\": 8, \"n_layers\": 2, \"attn_config\": {\"qk_ln\": true}}",
                   "job.json: model.attn_config.qk_ln: a norm over all heads of query and key is "
                   "not supported yet");
    expect_message("{\"model_type\": \"gemma3\", \"text_config\": {\"hidden_size\": 0}}",
                   "job.json: model.text_config.hidden_size: 0 is out of range; expected 1 to "
                   "1048576");
}

#define GENERIC(keys)                                                                              \
    "{\"model_type\": \"generic\", \"vocab_size\": 1000, \"num_attention_heads\": 8, " keys "}"

static void generic_refuses_what_it_does_not_know(void) {
    expect_message(GENERIC(SIZES ", \"num_key_value_head\": 2"),
                   "job.json: model.num_key_value_head: unknown key; the nearest known one is "
                   "\"num_key_value_heads\"");
    expect_message(GENERIC(SIZES ", \"norm\": \"batchnorm\""),
                   "job.json: model.norm: \"batchnorm\" is unknown; expected one of rmsnorm, "
                   "layernorm");
    expect_message(GENERIC("\"hidden_size\": 64, \"num_hidden_layers\": 2"),
                   "job.json: model.intermediate_size: missing; expected a whole number");
    expect_message(GENERIC(SIZES ", \"hidden_act\": \"gleu\""),
                   "job.json: model.hidden_act: \"gleu\" is unknown; expected one of gelu, "
                   "gelu_new, gelu_fast, gelu_pytorch_tanh, quick_gelu, relu, relu2, silu, swish, "
                   "tanh");
    expect_message(GENERIC(SIZES ", \"num_experts_per_tok\": 2"),
                   "job.json: model.num_experts: missing; expected a whole number");
    expect_message(GENERIC(SIZES ", \"q_lora_rank\": 16"),
                   "job.json: model.kv_lora_rank: missing; expected a whole number");
}

#define TEST(name)                                                                                 \
    { #name, name }

CU_TestInfo model_tests[] = {
    TEST(preset_is_found_by_name),
    TEST(object_in_place_is_named_by_itself_or_its_type),
    TEST(path_is_relative_to_the_scenario),
    TEST(missing_file_names_presets_of_a_similar_name),
    TEST(unknown_names_are_refused_with_the_nearest),
    TEST(a_misspelled_required_key_is_pointed_at),
    TEST(values_of_a_wrong_type_are_refused),
    TEST(sizes_are_checked),
    TEST(mixtures_are_checked),
    TEST(expert_groups_are_checked),
    TEST(layer_types_are_checked),
    TEST(what_cannot_be_modelled_is_refused),
    TEST(generic_refuses_what_it_does_not_know),
    CU_TEST_INFO_NULL,
};
