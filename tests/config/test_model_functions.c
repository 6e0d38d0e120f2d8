// What of a model file changes its numbers only: activation, epsilon, rotary frequencies.
#include "config/model/model_functions.h"

#include <CUnit/CUnit.h>
#include <string.h>

static Status read_text(const char *text, Arena *arena, ModelFunctions *out) {
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    const Status status = json_parse(text, strlen(text), "config.json", arena, root);
    return status.code == STATUS_OK ? model_read_functions(root, arena, out) : status;
}

static ModelFunctions functions_of(const char *text, Arena *arena) {
    ModelFunctions functions = {0};
    CU_ASSERT_STRING_EQUAL(read_text(text, arena, &functions).text, "");
    return functions;
}

static void what_is_not_stated_is_plain(void) {
    Arena arena = {0};
    const ModelFunctions f = functions_of("{\"rope_scaling\": null}", &arena);
    CU_ASSERT(f.activation == FUNCTION_UNSTATED && f.activation_name == NULL);
    CU_ASSERT(f.norm_epsilon == 1e-5 && f.rope_theta == 1e4 && f.rotary_frac == 1);
    CU_ASSERT(f.rope == ROPE_PLAIN && f.rope_name == NULL);
    arena_free(&arena);
}

static void llama_3_1_scales_its_frequencies(void) {
    Arena arena = {0};
    const ModelFunctions f = functions_of(
        "{\"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-06, \"rope_theta\": 500000.0, "
        "\"rope_scaling\": {\"factor\": 32.0, \"low_freq_factor\": 2.0, \"high_freq_factor\": 5.0, "
        "\"original_max_position_embeddings\": 4096, \"rope_type\": \"llama3\"}}",
        &arena);
    CU_ASSERT(f.activation == FUNCTION_SILU && f.norm_epsilon == 1e-6 && f.rope_theta == 5e5);
    CU_ASSERT(f.rope == ROPE_LLAMA3 && f.rope_factor == 32 && f.low_freq_factor == 2);
    CU_ASSERT(f.high_freq_factor == 5 && f.original_positions == 4096);
    arena_free(&arena);
}

// GPT-2's, GPT-NeoX' and newer files' spellings; the types before rope_type.
static void other_spellings_say_the_same(void) {
    Arena arena = {0};
    ModelFunctions f = functions_of(
        "{\"activation_function\": \"gelu_new\", \"layer_norm_epsilon\": 0.001}", &arena);
    CU_ASSERT(f.activation == FUNCTION_GELU && f.norm_epsilon == 1e-3);
    f = functions_of("{\"hidden_act\": \"relu2\", \"rotary_pct\": 0.25, \"rotary_emb_base\": 5000, "
                     "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}}",
                     &arena);
    CU_ASSERT(f.activation == FUNCTION_OTHER && f.rotary_frac == 0.25 && f.rope_theta == 5000);
    CU_ASSERT(f.rope == ROPE_LINEAR && f.rope_factor == 2);
    f = functions_of("{\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e6}}",
                     &arena);
    CU_ASSERT(f.rope == ROPE_PLAIN && f.rope_theta == 1e6);
    f = functions_of("{\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40}}", &arena);
    CU_ASSERT_EQUAL(f.rope, ROPE_OTHER);
    CU_ASSERT_STRING_EQUAL(f.rope_name, "yarn");
    f = functions_of("{\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e6}}}", &arena);
    CU_ASSERT_EQUAL(f.rope, ROPE_OTHER);
    arena_free(&arena);
}

static void what_cannot_be_is_refused(void) {
    static const struct {
        const char *text, *says;
    } CASES[] = {
        {"{\"rope_theta\": 0}", "config.json: rope_theta: "},
        {"{\"rms_norm_eps\": -1}", "config.json: rms_norm_eps: "},
        {"{\"rope_scaling\": 8}", "config.json: rope_scaling: "},
        {"{\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 0.5}}",
         "config.json: rope_scaling.factor: "},
        {"{\"rope_scaling\": {\"rope_type\": \"llama3\", \"low_freq_factor\": 4, "
         "\"high_freq_factor\": 4}}",
         "config.json: rope_scaling.high_freq_factor: 4; expected more than low_freq_factor 4"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        ModelFunctions functions;
        const Status status = read_text(CASES[i].text, &arena, &functions);
        CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
        CU_ASSERT_NSTRING_EQUAL(status.text, CASES[i].says, strlen(CASES[i].says));
        arena_free(&arena);
    }
}

CU_TestInfo model_functions_tests[] = {
    {"what_is_not_stated_is_plain", what_is_not_stated_is_plain},
    {"llama_3_1_scales_its_frequencies", llama_3_1_scales_its_frequencies},
    {"other_spellings_say_the_same", other_spellings_say_the_same},
    {"what_cannot_be_is_refused", what_cannot_be_is_refused},
    CU_TEST_INFO_NULL,
};
