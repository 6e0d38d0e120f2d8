#include "config/job/training.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

// What a training object says.
typedef struct {
    TrainingJob job;
    Execution execution;
} Read;

// Reads a training object for an 8-GPU node of H100s.
static Status training_of(const char *training, Arena *arena, Read *out) {
    Scenario scenario;
    const char *text = scenario_text(arena, "\"gpt2-124m\"", "\"dgx-h100:1\"", training, NULL);
    TRY(scenario_of(text, arena, &scenario));
    *out = (Read){scenario.training, scenario.execution};
    return status_ok();
}

static Read training_read(const char *training) {
    Arena arena = {0};
    Read out = {0};
    Status status = training_of(training, &arena, &out);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code) fprintf(stderr, "%s\n", status.text);
    arena_free(&arena);
    return out;
}

static void assert_training_refused(const char *training, const char *sentence) {
    Arena arena = {0};
    Read out;
    ASSERT_REFUSED(training_of(training, &arena, &out), sentence);
    arena_free(&arena);
}

static void absent_switches_are_the_stacks(void) {
    Read core = training_read("{\"seq_len\": 1024, \"global_batch\": 8}");
    CU_ASSERT_EQUAL(core.job.seq_len, 1024);
    CU_ASSERT_EQUAL(core.job.global_batch, 8);
    CU_ASSERT_EQUAL(core.execution.precision, PRECISION_BF16);
    CU_ASSERT_EQUAL(core.job.optimizer, OPTIMIZER_ADAM);
    CU_ASSERT_EQUAL(core.execution.optimizer_precision, PRECISION_FP32);
    CU_ASSERT_EQUAL(core.execution.grad_reduce_precision,
                    core.execution.stack.defaults.grad_reduce_precision);
    CU_ASSERT_EQUAL(core.execution.grad_reduce, core.execution.stack.defaults.grad_reduce);
    CU_ASSERT_EQUAL(core.execution.attention, ATTENTION_FLASH);
    CU_ASSERT_EQUAL(core.execution.overlap_grad_reduce,
                    core.execution.stack.defaults.overlap_grad_reduce);
    CU_ASSERT_EQUAL(core.execution.cuda_graphs, GRAPH_NONE);
    CU_ASSERT_TRUE(core.job.causal);
    CU_ASSERT_EQUAL(core.job.moe_imbalance, 1);
    CU_ASSERT_EQUAL(core.job.capacity_factor, 0);
    CU_ASSERT_EQUAL(core.job.num_sequence_lengths, 0);
    Read old =
        training_read("{\"seq_len\": 1024, \"global_batch\": 8, \"stack\": \"megatron-2021\"}");
    CU_ASSERT_FALSE(old.execution.overlap_grad_reduce);
    Read told = training_read("{\"seq_len\": 1024, \"global_batch\": 8, \"stack\": "
                              "\"megatron-2021\", \"overlap_grad_reduce\": true}");
    CU_ASSERT_TRUE(told.execution.overlap_grad_reduce);
}

static void recipe_follows_the_precision(void) {
    CU_ASSERT_EQUAL(training_read("{\"seq_len\": 1, \"global_batch\": 1, \"precision\": \"fp8\"}")
                        .execution.fp8_recipe,
                    FP8_DELAYED);
    CU_ASSERT_EQUAL(training_read("{\"seq_len\": 1, \"global_batch\": 1, \"precision\": \"fp8\", "
                                  "\"fp8_recipe\": \"rowwise\"}")
                        .execution.fp8_recipe,
                    FP8_ROWWISE);
    // Without effect, hence accepted.
    CU_ASSERT_EQUAL(training_read("{\"seq_len\": 1, \"global_batch\": 1, \"precision\": \"bf16\", "
                                  "\"fp8_recipe\": \"mxfp8\"}")
                        .execution.precision,
                    PRECISION_BF16);
    assert_training_refused(
        "{\"seq_len\": 1, \"global_batch\": 1, \"precision\": \"fp8\", \"fp8_recipe\": \"mxfp8\"}",
        "job.json: training.fp8_recipe: mxfp8 does not go with precision fp8; expected precision "
        "mxfp8 or one of delayed, current, tensorwise, rowwise, block");
}

static void blackwell_recipes_are_their_own(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text =
        scenario_text(&arena, "\"gpt2-124m\"", "\"dgx-b200:1\"",
                      "{\"seq_len\": 8, \"global_batch\": 8, \"precision\": \"nvfp4\"}", NULL);
    CU_ASSERT_EQUAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL(scenario.execution.fp8_recipe, FP8_NVFP4);
    text = scenario_text(&arena, "\"gpt2-124m\"", "\"dgx-b200:1\"",
                         "{\"seq_len\": 8, \"global_batch\": 8, \"precision\": \"mxfp8\", "
                         "\"fp8_recipe\": \"block\"}",
                         NULL);
    ASSERT_REFUSED(scenario_of(text, &arena, &scenario),
                   "job.json: training.fp8_recipe: block does not go with precision mxfp8; "
                   "expected mxfp8");
    arena_free(&arena);
}

static void precision_must_be_the_gpus(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text =
        scenario_text(&arena, "\"gpt2-124m\"", "\"dgx-a100-80g:1\"",
                      "{\"seq_len\": 8, \"global_batch\": 8, \"precision\": \"fp8\"}", NULL);
    ASSERT_REFUSED(scenario_of(text, &arena, &scenario),
                   "job.json: training.precision: fp8 is not supported by a100-sxm-80g; expected "
                   "one of fp64, fp32, tf32, fp16, bf16");
    arena_free(&arena);
}

static int graphs_of(const char *value) {
    char training[200];
    snprintf(training, sizeof training,
             "{\"seq_len\": 1, \"global_batch\": 1, \"cuda_graphs\": \"%s\"}", value);
    return training_read(training).execution.cuda_graphs;
}

static void cuda_graphs_are_a_word_or_scopes(void) {
    CU_ASSERT_EQUAL(graphs_of("none"), GRAPH_NONE);
    CU_ASSERT_EQUAL(graphs_of("full"), GRAPH_FULL);
    CU_ASSERT_EQUAL(graphs_of("layer"), GRAPH_LAYER);
    CU_ASSERT_EQUAL(graphs_of("moe_router,moe_preprocess"),
                    GRAPH_MOE_ROUTER | GRAPH_MOE_PREPROCESS);
    CU_ASSERT_EQUAL(graphs_of("attn,moe_router,moe_preprocess"),
                    GRAPH_ATTN | GRAPH_MOE_ROUTER | GRAPH_MOE_PREPROCESS);
    assert_training_refused(
        "{\"seq_len\": 1, \"global_batch\": 1, \"cuda_graphs\": \"attn,full\"}",
        "job.json: training.cuda_graphs: \"full\" is unknown; expected none, full, layer, or a "
        "list of attn, moe_router, moe_preprocess joined by commas");
    assert_training_refused("{\"seq_len\": 1, \"global_batch\": 1, \"cuda_graphs\": \"attn,\"}",
                            "job.json: training.cuda_graphs: \"\" is unknown; expected none, full, "
                            "layer, or a list of attn, moe_router, moe_preprocess joined by "
                            "commas");
    assert_training_refused("{\"seq_len\": 1, \"global_batch\": 1, \"cuda_graphs\": \"attn,mlp\"}",
                            "job.json: training.cuda_graphs: scope mlp is not supported yet");
    assert_training_refused("{\"seq_len\": 1, \"global_batch\": 1, \"cuda_graphs\": \"attn,attn\"}",
                            "job.json: training.cuda_graphs: attn stands here twice");
}

static void moe_routing_is_balanced_or_a_factor(void) {
    CU_ASSERT_EQUAL(training_read("{\"seq_len\": 1, \"global_batch\": 1, \"moe_routing\": "
                                  "\"balanced\"}")
                        .job.moe_imbalance,
                    1);
    CU_ASSERT_EQUAL(training_read("{\"seq_len\": 1, \"global_batch\": 1, \"moe_routing\": "
                                  "{\"imbalance\": 1.5}}")
                        .job.moe_imbalance,
                    1.5);
    assert_training_refused(
        "{\"seq_len\": 1, \"global_batch\": 1, \"moe_routing\": {\"imbalance\": 0.5}}",
        "job.json: training.moe_routing.imbalance: 0.5 is out of range; expected 1 to 10000");
    assert_training_refused("{\"seq_len\": 1, \"global_batch\": 1, \"moe_routing\": \"even\"}",
                            "job.json: training.moe_routing: \"even\" is unknown; expected "
                            "balanced or {\"imbalance\": x}");
    assert_training_refused("{\"seq_len\": 1, \"global_batch\": 1, \"moe_routing\": 2}",
                            "job.json: training.moe_routing: expected balanced or "
                            "{\"imbalance\": x}, found a number");
}

static void sequence_lengths_add_up_to_one(void) {
    CU_ASSERT_EQUAL(training_read("{\"seq_len\": 8192, \"global_batch\": 1, \"sequence_lengths\": "
                                  "[{\"length\": 4096, \"frac\": 0.9}, {\"length\": 8192, "
                                  "\"frac\": 0.1}]}")
                        .job.num_sequence_lengths,
                    2);
    assert_training_refused("{\"seq_len\": 8192, \"global_batch\": 1, \"sequence_lengths\": "
                            "[{\"length\": 4096, \"frac\": 0.9}]}",
                            "job.json: training.sequence_lengths: the fractions add up to 0.9; "
                            "expected 1");
    assert_training_refused("{\"seq_len\": 8192, \"global_batch\": 1, \"sequence_lengths\": []}",
                            "job.json: training.sequence_lengths: the fractions add up to 0; "
                            "expected 1");
    assert_training_refused("{\"seq_len\": 4096, \"global_batch\": 1, \"sequence_lengths\": "
                            "[{\"length\": 8192, \"frac\": 1}]}",
                            "job.json: training.sequence_lengths[0]: length 8192 is more than "
                            "seq_len 4096");
}

static void ranges_are_sane(void) {
    assert_training_refused(
        "{\"seq_len\": 100000001, \"global_batch\": 1}",
        "job.json: training.seq_len: 100000001 is out of range; expected 1 to 100000000");
    assert_training_refused(
        "{\"seq_len\": 1, \"global_batch\": 0}",
        "job.json: training.global_batch: 0 is out of range; expected 1 to 1000000000");
    assert_training_refused("{\"seq_len\": 1, \"global_batch\": 1, \"grad_reduce_dtype\": \"fp8\"}",
                            "job.json: training.grad_reduce_dtype: \"fp8\" is unknown; expected "
                            "one of fp32, bf16");
    assert_training_refused("{\"seq_len\": 1, \"global_batch\": 1, \"compile\": 1}",
                            "job.json: training.compile: expected true or false, found a number");
}

CU_TestInfo training_tests[] = {
    {"absent_switches_are_the_stacks", absent_switches_are_the_stacks},
    {"recipe_follows_the_precision", recipe_follows_the_precision},
    {"blackwell_recipes_are_their_own", blackwell_recipes_are_their_own},
    {"precision_must_be_the_gpus", precision_must_be_the_gpus},
    {"cuda_graphs_are_a_word_or_scopes", cuda_graphs_are_a_word_or_scopes},
    {"moe_routing_is_balanced_or_a_factor", moe_routing_is_balanced_or_a_factor},
    {"sequence_lengths_add_up_to_one", sequence_lengths_add_up_to_one},
    {"ranges_are_sane", ranges_are_sane},
    CU_TEST_INFO_NULL,
};
