// Families whose keys no preset shows: each weighs what its release says.
#include "config/model/model.h"
#include "config/model/model_front.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

static Arena arena;

static Model import(const char *text) {
    Model model = {0};
    JsonNode root;
    CU_ASSERT_EQUAL(json_parse(text, strlen(text), "config.json", &arena, &root).code, STATUS_OK);
    const Status status = model_load(&root, &arena, &model);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code != STATUS_OK) fprintf(stderr, "%s\n", status.text);
    return model;
}

typedef struct {
    const char *name, *config;
    double parameters; // of the released weights, less multi-token prediction and tower
} Release;

// Weights as the safetensors metadata of the model pages have them.
static const Release RELEASES[] = {
    {"Seed-OSS-36B",
     "{\"model_type\": \"seed_oss\", \"hidden_size\": 5120, \"num_hidden_layers\": 64, "
     "\"num_attention_heads\": 80, \"num_key_value_heads\": 8, \"head_dim\": 128, "
     "\"intermediate_size\": 27648, \"vocab_size\": 155136, \"attention_bias\": true, "
     "\"attention_out_bias\": false, \"tie_word_embeddings\": false}",
     36151104512},
    {"SmolLM3-3B",
     "{\"model_type\": \"smollm3\", \"hidden_size\": 2048, \"num_hidden_layers\": 36, "
     "\"num_attention_heads\": 16, \"num_key_value_heads\": 4, \"intermediate_size\": 11008, "
     "\"vocab_size\": 128256}",
     3075098624},
    {"Command A",
     "{\"model_type\": \"cohere2\", \"hidden_size\": 12288, \"num_hidden_layers\": 64, "
     "\"num_attention_heads\": 96, \"num_key_value_heads\": 8, \"head_dim\": 128, "
     "\"intermediate_size\": 36864, \"vocab_size\": 256000}",
     111057580032},
    {"Hunyuan-7B",
     "{\"model_type\": \"hunyuan_v1_dense\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, "
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"head_dim\": 128, "
     "\"intermediate_size\": 14336, \"vocab_size\": 128167, \"tie_word_embeddings\": true}",
     7504568320},
    {"ERNIE-4.5-21B-A3B",
     "{\"model_type\": \"ernie4_5_moe\", \"hidden_size\": 2560, \"num_hidden_layers\": 28, "
     "\"num_attention_heads\": 20, \"num_key_value_heads\": 4, \"intermediate_size\": 12288, "
     "\"moe_intermediate_size\": 1536, \"moe_num_experts\": 64, \"moe_k\": 6, "
     "\"moe_num_shared_experts\": 2, \"moe_layer_start_index\": 1, \"moe_layer_interval\": 1, "
     "\"vocab_size\": 103424, \"use_bias\": false, \"tie_word_embeddings\": true}",
     21825437888},
    {"MiniMax-M2.5", // 228.7 G: "230B"
     "{\"model_type\": \"minimax_m2\", \"hidden_size\": 3072, \"num_hidden_layers\": 62, "
     "\"num_attention_heads\": 48, \"num_key_value_heads\": 8, \"head_dim\": 128, "
     "\"intermediate_size\": 1536, \"vocab_size\": 200064, \"num_local_experts\": 256, "
     "\"num_experts_per_tok\": 8, \"use_qk_norm\": true, \"qk_norm_type\": \"per_layer\", "
     "\"use_routing_bias\": true, \"rotary_dim\": 64, \"tie_word_embeddings\": false}",
     228689764864},
};

static void releases_weigh_what_they_say(void) {
    for (size_t i = 0; i < sizeof RELEASES / sizeof *RELEASES; i++) {
        const Model model = import(RELEASES[i].config);
        CU_ASSERT_EQUAL(model_num_parameters(&model), RELEASES[i].parameters);
        arena_reset(&arena);
    }
}

// GLM-4.5-Air: 110,468,824,832 with a layer of multi-token prediction that holds its own copy of
// word table and head, 2 x 151552 x 4096.
static void glm_has_experts_behind_its_first_layer(void) {
    const Model model = import(
        "{\"model_type\": \"glm4_moe\", \"hidden_size\": 4096, \"num_hidden_layers\": 46, "
        "\"num_attention_heads\": 96, \"num_key_value_heads\": 8, \"head_dim\": 128, "
        "\"intermediate_size\": 10944, \"moe_intermediate_size\": 1408, \"n_routed_experts\": 128, "
        "\"n_shared_experts\": 1, \"num_experts_per_tok\": 8, \"first_k_dense_replace\": 1, "
        "\"vocab_size\": 151552, \"attention_bias\": true, \"partial_rotary_factor\": 0.5, "
        "\"num_nextn_predict_layers\": 1, \"tie_word_embeddings\": false}");
    CU_ASSERT_EQUAL(model_num_parameters(&model) + model_mtp_parameters(&model),
                    110468824832 - 2.0 * 151552 * 4096);
    CU_ASSERT_FALSE(kind_is_moe(&model.kinds[model.layer_kind[0]]));
    CU_ASSERT_TRUE(kind_is_moe(&model.kinds[model.layer_kind[1]]));
    CU_ASSERT_FALSE(model_mixer(&model)->qk_norm);
    arena_reset(&arena);
    const Model normed =
        import("{\"model_type\": \"glm4_moe\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
               "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": "
               "128, \"vocab_size\": 100, "
               "\"use_qk_norm\": true}");
    CU_ASSERT_TRUE(model_mixer(&normed)->qk_norm);
    arena_reset(&arena);
}

// Qwen3-VL-8B: 8,767,123,696 with the tower, of which 8,190,735,360 are the text.
static void qwen3_vl_has_a_tower_with_deep_mergers(void) {
    const Model model = import(
        "{\"model_type\": \"qwen3_vl\", \"tie_word_embeddings\": false, \"text_config\": "
        "{\"model_type\": \"qwen3_vl_text\", \"hidden_size\": 4096, \"num_hidden_layers\": 36, "
        "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"head_dim\": 128, "
        "\"intermediate_size\": 12288, \"vocab_size\": 151936}, \"vision_config\": "
        "{\"depth\": 27, \"hidden_size\": 1152, \"intermediate_size\": 4304, \"num_heads\": 16, "
        "\"patch_size\": 16, \"num_position_embeddings\": 2304, \"out_hidden_size\": 4096, "
        "\"deepstack_visual_indexes\": [8, 16, 24]}}");
    const Model *tower = model.front->model;
    double sum = model_front_parameters(&model);
    for (int l = 0; l < tower->num_layers; l++)
        sum += model_layer_parameters(tower, &tower->kinds[tower->layer_kind[l]]);
    CU_ASSERT_EQUAL(model_num_parameters(&model), 8190735360);
    CU_ASSERT_EQUAL(model_num_parameters(&model) + sum, 8767123696);
    CU_ASSERT_EQUAL(model.front->num_deep_mergers, 3);
    arena_free(&arena);
}

// Software that rotates in every layer computes another function.
static void layers_without_positions_are_no_plain_rope(void) {
    const Model smol = import(RELEASES[1].config), cohere = import(RELEASES[2].config);
    CU_ASSERT_EQUAL(smol.functions.rope, ROPE_OTHER);
    CU_ASSERT_EQUAL(cohere.functions.rope, ROPE_OTHER);
    CU_ASSERT_EQUAL(cohere.kinds[cohere.layer_kind[0]].mixer.window, 4096);
    CU_ASSERT_EQUAL(cohere.kinds[cohere.layer_kind[3]].mixer.window, 0);
    arena_free(&arena);
}

static void a_wrapper_of_a_known_text_says_so(void) {
    static const char TEXT[] =
        "{\"model_type\": \"ovis\", \"text_config\": {\"model_type\": \"kimi_k2\"}}";
    Model model;
    JsonNode root;
    CU_ASSERT_EQUAL(json_parse(TEXT, strlen(TEXT), "config.json", &arena, &root).code, STATUS_OK);
    const Status status = model_load(&root, &arena, &model);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text,
                           "config.json: model_type: \"ovis\" is unknown, but its text_config is "
                           "\"kimi_k2\", which is known; for the text alone put what "
                           "`meshwright models FILE --text-only --json` prints in the place of the "
                           "model");
    arena_free(&arena);
}

CU_TestInfo model_families_tests[] = {
    {"a_wrapper_of_a_known_text_says_so", a_wrapper_of_a_known_text_says_so},
    {"releases_weigh_what_they_say", releases_weigh_what_they_say},
    {"glm_has_experts_behind_its_first_layer", glm_has_experts_behind_its_first_layer},
    {"qwen3_vl_has_a_tower_with_deep_mergers", qwen3_vl_has_a_tower_with_deep_mergers},
    {"layers_without_positions_are_no_plain_rope", layers_without_positions_are_no_plain_rope},
    CU_TEST_INFO_NULL,
};
