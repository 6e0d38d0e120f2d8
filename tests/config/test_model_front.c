// Encoders and towers: their sizes, and what of them is refused.
#include "config/model/model_front.h"
#include "plan/plan.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#define CLUSTER "\"dgx-h100:2\""

static Status read(const char *model, const char *training, const char *parallel, Arena *arena,
                   Scenario *out) {
    return scenario_of(scenario_text(arena, model, CLUSTER, training, parallel), arena, out);
}

static void expect_refusal(const char *model, const char *training, const char *parallel,
                           const char *sentence) {
    Arena arena = {0};
    Scenario scenario;
    ASSERT_REFUSED(read(model, training, parallel, &arena, &scenario), sentence);
    arena_free(&arena);
}

#define TRAINING "\"seq_len\": 8192, \"global_batch\": 64"
#define QWEN2_VL_7B                                                                                \
    "{\"model_type\": \"qwen2_vl\", \"hidden_size\": 3584, \"intermediate_size\": 18944, "         \
    "\"num_hidden_layers\": 28, \"num_attention_heads\": 28, \"num_key_value_heads\": 4, "         \
    "\"vocab_size\": 152064, \"tie_word_embeddings\": false, \"vision_config\": {\"depth\": 32, "  \
    "\"embed_dim\": 1280, \"hidden_size\": 3584, \"mlp_ratio\": 4, \"num_heads\": 16, "            \
    "\"in_chans\": 3, \"patch_size\": 14, \"spatial_merge_size\": 2, \"temporal_patch_size\": 2}}"

#define TEXT                                                                                       \
    "\"hidden_size\": 1024, \"intermediate_size\": 4096, \"num_hidden_layers\": 4, "               \
    "\"num_attention_heads\": 16, \"num_key_value_heads\": 4, \"vocab_size\": 1024"
#define QWEN(vision) "{\"model_type\": \"qwen2_5_vl\", " TEXT ", \"vision_config\": {" vision "}}"
#define GEMMA(tokens, pixels)                                                                      \
    "{\"model_type\": \"gemma3\", " TEXT ", \"head_dim\": 64, \"mm_tokens_per_image\": " tokens    \
    ", \"vision_config\": {\"patch_size\": 14, \"image_size\": " pixels "}}"

// Published: the parameters on the pages of the released models, all of them with their towers.
static void towers_have_their_published_counts(void) {
    static const struct {
        const char *model;
        int layers;
        double num_parameters;
    } ROWS[] = {
        {"\"gemma-3-4b\"", 27 + 34, 4300079472},      {"\"gemma-3-12b\"", 27 + 48, 12187325040},
        {"\"gemma-3-27b\"", 27 + 62, 27432406640},    {QWEN2_VL_7B, 32 + 28, 8291375616},
        {"\"qwen2.5-vl-3b\"", 32 + 36, 3754622976},   {"\"qwen2.5-vl-7b\"", 32 + 28, 8292166656},
        {"\"qwen2.5-vl-72b\"", 32 + 80, 73410777344},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Arena arena = {0};
        Scenario with, without;
        const char *training = "{" TRAINING ", \"images_per_sequence\": 1, \"image_size\": 896}";
        CU_ASSERT_EQUAL_FATAL(read(ROWS[i].model, training, NULL, &arena, &with).code, STATUS_OK);
        CU_ASSERT_EQUAL(with.model.num_layers, ROWS[i].layers);
        CU_ASSERT_EQUAL(model_num_parameters(&with.model), ROWS[i].num_parameters);
        CU_ASSERT_EQUAL(read(ROWS[i].model, "{" TRAINING "}", NULL, &arena, &without).code,
                        STATUS_OK);
        CU_ASSERT_EQUAL(without.model.num_front_layers, 0);
        CU_ASSERT_EQUAL(without.model.num_layers, model_own_layers(&with.model));
        arena_free(&arena);
    }
}

#define KIMI(vision)                                                                               \
    "{\"model_type\": \"kimi_k25\", \"text_config\": {\"model_type\": \"kimi_k2\", "               \
    "\"hidden_size\": 7168, \"intermediate_size\": 18432, \"num_hidden_layers\": 2, "              \
    "\"num_attention_heads\": 64, \"num_key_value_heads\": 64, \"vocab_size\": 1024}, "            \
    "\"vision_config\": {" vision "}}"

// By modeling_kimi_k25.py of moonshotai/Kimi-K2.5: a convolution of 14 x 14 x 3 with a bias, a
// table of 64 x 64 positions, 27 layers with biases and two LayerNorms each, a LayerNorm behind
// them; then a LayerNorm, and matrices of 4608 x 4608 and 4608 x 7168 with biases.
static void moonvit_weighs_what_its_code_says(void) {
    static const char *const FILES[] = {
        KIMI("\"vt_hidden_size\": 1152, \"vt_num_hidden_layers\": 27, "
             "\"vt_num_attention_heads\": 16, \"vt_intermediate_size\": 4304, "
             "\"merge_kernel_size\": [2, 2], \"mm_hidden_size\": 1152, "
             "\"text_hidden_size\": 7168, \"patch_size\": 14"),
        KIMI(""),
    };
    const double embedding = 14 * 14 * 3 * 1152 + 1152 + 64 * 64 * 1152;
    const double layer = 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152 + 4 * 1152;
    const double merger = 2 * 1152 + 4608.0 * 4608 + 4608 + 4608.0 * 7168 + 7168;
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        Arena arena = {0};
        Scenario with, without;
        const char *training = "{" TRAINING ", \"images_per_sequence\": 1, \"image_size\": 896}";
        CU_ASSERT_EQUAL_FATAL(read(FILES[i], training, NULL, &arena, &with).code, STATUS_OK);
        CU_ASSERT_EQUAL_FATAL(read(FILES[i], "{" TRAINING "}", NULL, &arena, &without).code,
                              STATUS_OK);
        CU_ASSERT_EQUAL(model_num_parameters(&with.model) - model_num_parameters(&without.model),
                        embedding + 27 * layer + 2 * 1152 + merger);
        CU_ASSERT_EQUAL(front_image_patches(with.model.front, 896), 4096);
        CU_ASSERT_EQUAL(front_image_tokens(with.model.front, 896), 1024);
        arena_free(&arena);
    }
}

static void moonvit_that_contradicts_itself_is_refused(void) {
    expect_refusal(
        KIMI("\"merge_kernel_size\": [2, 4]"), "{" TRAINING "}", NULL,
        "job.json: model.vision_config.merge_kernel_size: 2 x 4: only squares of patches "
        "are merged here");
    expect_refusal(
        KIMI("\"merge_kernel_size\": [2]"), "{" TRAINING "}", NULL,
        "job.json: model.vision_config.merge_kernel_size: expected a height and a width");
    expect_refusal(KIMI("\"mm_hidden_size\": 1024"), "{" TRAINING "}", NULL,
                   "job.json: model.vision_config.mm_hidden_size: 1024 is not the tower's width "
                   "1152");
    expect_refusal(
        KIMI("\"text_hidden_size\": 2048"), "{" TRAINING "}", NULL,
        "job.json: model.vision_config.text_hidden_size: 2048 is not the hidden_size 7168 "
        "of the text");
}

// 896 / 14 = 64 patches a side; Gemma averages them to 256 tokens, Qwen makes one of 2 x 2.
static void images_become_tokens(void) {
    Arena arena = {0};
    Scenario s;
    const char *training = "{" TRAINING ", \"images_per_sequence\": 2}";
    CU_ASSERT_EQUAL_FATAL(read("\"gemma-3-4b\"", training, NULL, &arena, &s).code, STATUS_OK);
    CU_ASSERT_EQUAL(s.training.image_size, 896);
    CU_ASSERT_EQUAL(front_image_patches(s.model.front, 896), 4096);
    CU_ASSERT_EQUAL(front_image_tokens(s.model.front, 896), 256);
    training = "{" TRAINING ", \"images_per_sequence\": 2, \"image_size\": 448}";
    CU_ASSERT_EQUAL_FATAL(read("\"qwen2.5-vl-7b\"", training, NULL, &arena, &s).code, STATUS_OK);
    CU_ASSERT_EQUAL(front_image_tokens(s.model.front, 448), 256);
    // Windows of 112 / 14 = 8 patches a side, but for every eighth layer.
    for (int layer = 0; layer < 32; layer++) {
        const LayerKind *kind = &s.model.kinds[s.model.layer_kind[layer]];
        CU_ASSERT_TRUE(kind->front);
        CU_ASSERT_EQUAL(kind->mixer.window, layer % 8 == 7 ? 0 : 64);
    }
    CU_ASSERT_FALSE(s.model.kinds[s.model.layer_kind[32]].front);
    arena_free(&arena);
}

static void an_encoder_reads_as_much_as_the_decoder_where_nothing_is_said(void) {
    Arena arena = {0};
    Scenario s;
    CU_ASSERT_EQUAL_FATAL(read("\"t5-3b\"", "{" TRAINING "}", NULL, &arena, &s).code, STATUS_OK);
    CU_ASSERT_EQUAL(s.training.encoder_seq_len, 8192);
    CU_ASSERT_EQUAL(s.model.num_layers, 48);
    CU_ASSERT_EQUAL(s.model.num_front_layers, 24);
    CU_ASSERT_TRUE(s.model.kinds[s.model.layer_kind[47]].cross);
    arena_free(&arena);
}

static void what_the_model_lacks_is_refused(void) {
    expect_refusal("\"llama-3.1-8b\"", "{" TRAINING ", \"images_per_sequence\": 2}", NULL,
                   "job.json: training.images_per_sequence: llama-3.1-8b has no tower for images "
                   "(vision_config of gemma3, qwen2_vl, qwen2_5_vl)");
    expect_refusal("\"gemma-3-4b\"", "{" TRAINING ", \"encoder_seq_len\": 2}", NULL,
                   "job.json: training.encoder_seq_len: gemma-3-4b has no encoder");
    expect_refusal("\"t5-3b\"", "{" TRAINING ", \"image_size\": 448}", NULL,
                   "job.json: training.image_size: t5-3b has no tower for images");
}

static void images_of_a_wrong_size_are_refused(void) {
    expect_refusal("\"qwen2.5-vl-7b\"", "{" TRAINING ", \"images_per_sequence\": 2}", NULL,
                   "job.json: training.image_size: missing; expected the images' pixels a side, a "
                   "multiple of 28");
    expect_refusal("\"qwen2.5-vl-7b\"",
                   "{" TRAINING ", \"images_per_sequence\": 2, \"image_size\": 450}", NULL,
                   "job.json: training.image_size: 450 is not a multiple of 28, the pixels of a "
                   "token");
    expect_refusal("\"gemma-3-4b\"",
                   "{" TRAINING ", \"images_per_sequence\": 2, \"image_size\": 448}", NULL,
                   "job.json: training.image_size: 448; the tower's positions are of images of 896 "
                   "pixels a side");
    expect_refusal("\"gemma-3-4b\"", "{" TRAINING ", \"images_per_sequence\": 33}", NULL,
                   "job.json: training.images_per_sequence: 33 images of 256 tokens are more than "
                   "seq_len 8192");
    expect_refusal("\"qwen2.5-vl-7b\"", "{" TRAINING ", \"image_size\": 448}", NULL,
                   "job.json: training.image_size: given, but not images_per_sequence, without "
                   "which the tower is left out");
}

static void splits_that_no_stack_makes_are_refused(void) {
    expect_refusal("\"t5-3b\"", "{" TRAINING "}", "{\"pp\": 2}",
                   "job.json: parallel.pp: 2 with an encoder and a decoder is legal, but not "
                   "supported yet; expected 1");
    expect_refusal("\"t5-3b\"", "{" TRAINING "}", "{\"cp\": 2}",
                   "job.json: parallel.cp: 2 with an encoder and a decoder is legal, but not "
                   "supported yet; expected 1");
    expect_refusal("\"gemma-3-4b\"", "{" TRAINING ", \"images_per_sequence\": 2}",
                   "{\"pp\": 2, \"stages\": [{\"layers\": 20, \"embedding\": true}, "
                   "{\"layers\": 41, \"loss\": true}]}",
                   "job.json: parallel.stages: the first holds 20 layers; the tower's 27, which "
                   "count first, all lie there");
}

#define MT5                                                                                        \
    "{\"model_type\": \"mt5\", \"d_model\": 4096, \"d_ff\": 10240, \"num_layers\": 24, "           \
    "\"num_heads\": 64"

// What google/mt5-xxl states, and what MT5Config has where it does not: 12,921,057,280 parameters.
static void layers_of_tower_and_text_are_bounded_together(void) {
    const char *model =
        "{\"model_type\": \"qwen2_5_vl\", \"hidden_size\": 64, \"intermediate_size\": 64, "
        "\"num_hidden_layers\": 16300, \"num_attention_heads\": 1, "
        "\"num_key_value_heads\": 1, \"vocab_size\": 64, \"vision_config\": {\"depth\": "
        "97, \"hidden_size\": 64, \"num_heads\": 1}}";
    expect_refusal(model, "{" TRAINING ", \"images_per_sequence\": 1, \"image_size\": 28}", NULL,
                   "job.json: training.images_per_sequence: a tower of 97 layers before a text of "
                   "16300; expected at most 16384");
}

static void absent_keys_mean_what_they_do_in_that_family(void) {
    static const char *const MODELS[] = {
        MT5 "}", MT5 ", \"vocab_size\": 250112, \"tie_word_embeddings\": false, "
                     "\"feed_forward_proj\": \"gated-gelu\"}"};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        Scenario s;
        CU_ASSERT_EQUAL_FATAL(read(MODELS[i], "{" TRAINING "}", NULL, &arena, &s).code, STATUS_OK);
        CU_ASSERT_EQUAL(model_num_parameters(&s.model), 12921057280);
        arena_free(&arena);
    }
}

static void files_that_contradict_themselves_are_refused(void) {
    expect_refusal(MT5 ", \"architectures\": [\"MT5EncoderModel\"]}", "{" TRAINING "}", NULL,
                   "job.json: model.architectures[0]: \"MT5EncoderModel\": an encoder alone is "
                   "legal, but not supported yet");
    expect_refusal(MT5 ", \"is_encoder_decoder\": false}", "{" TRAINING "}", NULL,
                   "job.json: model.is_encoder_decoder: false: an encoder alone is legal, but not "
                   "supported yet");
    expect_refusal(
        QWEN("\"out_hidden_size\": 2048"), "{" TRAINING "}", NULL,
        "job.json: model.vision_config.out_hidden_size: 2048 is not the hidden_size 1024 "
        "of the text");
    expect_refusal(GEMMA("250", "896"), "{" TRAINING "}", NULL,
                   "job.json: model.mm_tokens_per_image: 250 tokens are not squares of the 64 x 64 "
                   "patches of an image");
    expect_refusal(GEMMA("256", "420"), "{" TRAINING "}", NULL,
                   "job.json: model.mm_tokens_per_image: 256 tokens are not squares of the 30 x 30 "
                   "patches of an image");
    expect_refusal(GEMMA("256", "210"), "{" TRAINING "}", NULL,
                   "job.json: model.mm_tokens_per_image: 256 is more than the 225 patches of an "
                   "image");
}

static void expect_plan_refusal(const char *model, const char *training, const char *parallel,
                                const char *sentence) {
    Arena arena = {0};
    Scenario scenario;
    Plan plan;
    CU_ASSERT_EQUAL_FATAL(read(model, training, parallel, &arena, &scenario).code, STATUS_OK);
    ASSERT_REFUSED(plan_resolve(&scenario, &arena, &plan), sentence);
    arena_free(&arena);
}

static void images_of_a_micro_batch_are_counted(void) {
    expect_plan_refusal(
        "\"qwen2.5-vl-3b\"",
        "{\"seq_len\": 1000000, \"global_batch\": 65536, "
        "\"images_per_sequence\": 1000000, \"image_size\": 28}",
        "{\"micro_batch\": 4096}",
        "job.json: training.images_per_sequence: 1000000 in each of micro_batch 4096 "
        "sequences is legal, but not supported yet; expected at most 1073741824 in "
        "all");
}

static void layers_are_counted_with_those_before_the_text(void) {
    expect_plan_refusal(
        "\"gemma-3-4b\"", "{" TRAINING ", \"images_per_sequence\": 2}",
        "{\"pp\": 2, \"stages\": [{\"layers\": 30, \"embedding\": true}, "
        "{\"layers\": 4, \"loss\": true}]}",
        "job.json: parallel.stages: the layers add up to 34; expected the tower's 27 + "
        "num_hidden_layers 34");
    expect_plan_refusal(
        "\"t5-3b\"", "{" TRAINING "}", "{\"recompute\": \"full\", \"recompute_layers\": 49}",
        "job.json: parallel.recompute_layers: 49 is more than the encoder's 24 + the "
        "decoder's 24");
}

#define TEST(name)                                                                                 \
    { #name, name }
CU_TestInfo model_front_tests[] = {
    TEST(towers_have_their_published_counts),
    TEST(moonvit_weighs_what_its_code_says),
    TEST(moonvit_that_contradicts_itself_is_refused),
    TEST(images_become_tokens),
    TEST(an_encoder_reads_as_much_as_the_decoder_where_nothing_is_said),
    TEST(what_the_model_lacks_is_refused),
    TEST(images_of_a_wrong_size_are_refused),
    TEST(splits_that_no_stack_makes_are_refused),
    TEST(layers_of_tower_and_text_are_bounded_together),
    TEST(absent_keys_mean_what_they_do_in_that_family),
    TEST(files_that_contradict_themselves_are_refused),
    TEST(images_of_a_micro_batch_are_counted),
    TEST(layers_are_counted_with_those_before_the_text),
    CU_TEST_INFO_NULL,
};
