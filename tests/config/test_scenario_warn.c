#include "config/job/scenario_warn.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define LLAMA(more)                                                                                \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "                  \
    "\"num_attention_heads\": 8, \"intermediate_size\": 256, \"vocab_size\": 1000" more "}"
#define BATCH(seq_len, batch) "{\"seq_len\": " #seq_len ", \"global_batch\": " #batch "}"

// All warnings, one a line.
static const char *warnings_of(const char *model, const char *training, Arena *arena) {
    Scenario scenario;
    const char *const *texts, *all = "";
    const char *text = scenario_text(arena, model, "\"dgx-h100:2\"", training, NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, arena, &scenario).code, STATUS_OK);
    const int num_texts = scenario_warnings(&scenario, arena, &texts);
    for (int i = 0; i < num_texts; i++) all = arena_printf(arena, "%s%s\n", all, texts[i]);
    return all;
}

static void warns(const char *model, const char *training, const char *expected) {
    Arena arena = {0};
    const char *found = warnings_of(model, training, &arena);
    CU_ASSERT_STRING_EQUAL(found, expected);
    if (strcmp(found, expected) != 0) printf("%s\n  not %s\n", found, expected);
    arena_free(&arena);
}

// 4194304 sequences of 8192 tokens are 3.44e10 tokens; 4194304 tokens are 512 sequences.
static void a_batch_in_tokens_is_asked_about(void) {
    warns(LLAMA(), BATCH(8192, 4194304),
          "job.json: training.global_batch: 4194304 counts sequences, of 8192 tokens each: "
          "3.44e+10 tokens a step, more than any published run. Is this tokens? Then write 512\n");
    warns(LLAMA(), BATCH(4096, 15360), ""); // DeepSeek-V3's
}

static void sequences_beyond_the_positions_are_pointed_at(void) {
    const char *said = "job.json: training.seq_len: 8192 tokens on a model of 4096 positions "
                       "(max_position_embeddings and rope_scaling of llama); it was not made for "
                       "them unless you extend it\n";
    warns(LLAMA(", \"max_position_embeddings\": 4096"), BATCH(8192, 16), said);
    warns(LLAMA(", \"max_position_embeddings\": 4096"), BATCH(4096, 16), "");
    warns("\"gpt2-124m\"", BATCH(2048, 16),
          "job.json: training.seq_len: 2048 tokens on a model of 1024 positions (its table of "
          "gpt2-124m): one of as many rows as seq_len is priced, and launched\n");
    warns("\"mpt-7b\"", BATCH(65536, 16), ""); // ALiBi has no end
}

// Qwen3's file with YaRN: 32768 x 4 tokens, though max_position_embeddings says 40960; a linear
// factor without an original length extends what the file says.
static void scaling_of_positions_counts(void) {
    const char *yarn = LLAMA(", \"max_position_embeddings\": 40960, \"rope_scaling\": {"
                             "\"rope_type\": \"yarn\", \"factor\": 4.0, "
                             "\"original_max_position_embeddings\": 32768}");
    warns(yarn, BATCH(131072, 16), "");
    warns(LLAMA(", \"max_position_embeddings\": 4096, \"rope_scaling\": {\"type\": \"linear\", "
                "\"factor\": 2}"),
          BATCH(8192, 16), "");
    warns(LLAMA(", \"max_position_embeddings\": 131072, \"rope_scaling\": {\"rope_type\": "
                "\"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
                "\"original_max_position_embeddings\": 8192}"),
          BATCH(131072, 16), "");
}

static void a_key_that_nearly_matters_is_named(void) {
    warns(
        LLAMA(", \"num_key_value_head\": 2"), BATCH(4096, 16),
        "job.json: model.num_key_value_head: not read, and \"num_key_value_heads\" is missing; is "
        "that meant?\n");
    warns(LLAMA(", \"num_key_value_head\": 2, \"num_key_value_heads\": 2"), BATCH(4096, 16), "");
    warns(LLAMA(", \"attention_bias\": false, \"torch_dtype\": \"bfloat16\", \"use_cache\": true, "
                "\"num_heads\": 8, \"o_lora_rank\": 8"),
          BATCH(4096, 16), "");
}

static void an_unknown_architecture_is_pointed_at(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *const *texts;
    const char *text = scenario_text(&arena, LLAMA(), "\"dgx-h100:2\"", BATCH(4096, 16), NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    Gpu *gpu = &test_pool(&scenario.cluster)->gpu;
    gpu->file = "rdna.json";
    gpu->architecture = "rdna9";
    CU_ASSERT_EQUAL(architecture_load(gpu->architecture, &arena, &gpu->shared).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(scenario_warnings(&scenario, &arena, &texts), 1);
    CU_ASSERT_STRING_EQUAL(
        texts[0],
        "rdna.json: architecture \"rdna9\" has no file in hw-profiles/architectures: older "
        "kernels of attention, large heads and operands of 8 bits are priced as \"other\" "
        "has them");
    arena_free(&arena);
}

CU_TestInfo scenario_warn_tests[] = {
    {"an_unknown_architecture_is_pointed_at", an_unknown_architecture_is_pointed_at},
    {"a_batch_in_tokens_is_asked_about", a_batch_in_tokens_is_asked_about},
    {"sequences_beyond_the_positions_are_pointed_at",
     sequences_beyond_the_positions_are_pointed_at},
    {"scaling_of_positions_counts", scaling_of_positions_counts},
    {"a_key_that_nearly_matters_is_named", a_key_that_nearly_matters_is_named},
    CU_TEST_INFO_NULL,
};
