// Plans as configurations of torchtitan: what is written, what is refused, and that only
// documented keys are ever written.
#include "launch/titan.h"
#include "tests/launch/launch_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <string.h>

#define TRAINING(more)                                                                             \
    "{\"seq_len\": 4096, \"global_batch\": 256, \"stack\": \"torchtitan\"" more "}"

static LaunchCase job_write(LaunchJob job) {
    return launch_case(job, LAUNCH_TORCHTITAN, TRAINING(""));
}

static void expect(LaunchJob job, const char *lines) {
    LaunchCase w = job_write(job);
    CU_ASSERT_STRING_EQUAL(w.status.text, "");
    CU_ASSERT_EQUAL_FATAL(w.files.num_files, 2);
    expect_lines(&w.files.files[1], lines, "", " ");
    arena_free(&w.arena);
}

static void expect_refused(LaunchJob job, const char *sentence) {
    LaunchCase w = job_write(job);
    ASSERT_REFUSED(without_rule(w.status), arena_printf(&w.arena, "job.json: %s", sentence));
    arena_free(&w.arena);
}

static void models_have_a_flavor(void) {
    expect((LaunchJob){0}, "name = \"llama3\"&flavor = \"8B\"");
    expect((LaunchJob){.model = "\"llama-3.1-70b\"", .parallel = "{\"tp\": 8}"},
           "flavor = \"70B\"");
    expect((LaunchJob){.model = "\"deepseek-v2-lite\"", .parallel = "{\"ep\": 8}"},
           "name = \"deepseek_v3\"&flavor = \"16B\"&expert_parallel_degree = 8");
    expect_refused((LaunchJob){.model = "\"llama-2-7b\""},
                   "model: no flavor has these sizes: torchtitan cannot run this plan as priced; "
                   "nearest: llama-3.1-8b (llama3 8B)");
    expect_refused((LaunchJob){.model = "\"qwen2.5-7b\""},
                   "model: torchtitan's models lack biases, which this model has");
    expect_refused((LaunchJob){.model = "\"deepseek-v3\"",
                               .cluster = "\"dgx-h100:32\"",
                               .parallel = "{\"pp\": 16, \"ep\": 16}"},
                   "model.num_nextn_predict_layers: multi-token prediction is not possible: "
                   "torchtitan cannot run this plan as priced; nearest: 0");
}

static void degrees_are_written(void) {
    expect((LaunchJob){.parallel = "{\"tp\": 2, \"cp\": 2}"},
           "data_parallel_replicate_degree = 1&data_parallel_shard_degree = 4&"
           "tensor_parallel_degree = 2&context_parallel_degree = 2&"
           "context_parallel_rotate_method = \"alltoall\"&local_batch_size = 1&"
           "global_batch_size = 256&fsdp_reshard_after_forward = \"always\"&!converters");
    expect((LaunchJob){.parallel = "{\"zero_group\": 8}"},
           "data_parallel_replicate_degree = 2&data_parallel_shard_degree = 8");
    expect((LaunchJob){.parallel = "{\"zero_stage\": 0}"},
           "data_parallel_replicate_degree = 16&data_parallel_shard_degree = 1");
    expect((LaunchJob){.parallel = "{\"zero_stage\": 2}"},
           "data_parallel_shard_degree = 16&fsdp_reshard_after_forward = \"never\"");
    expect((LaunchJob){.parallel = "{\"reshard_after_forward\": false}"},
           "fsdp_reshard_after_forward = \"never\"");
    expect((LaunchJob){.parallel = "{\"cp\": 2, \"cp_method\": \"all-gather\"}"},
           "context_parallel_rotate_method = \"allgather\"");
}

// 256 sequences over dp 8: 32 for each replica, which a pipeline takes at once.
static void pipelines_name_every_module(void) {
    expect((LaunchJob){.parallel = "{\"pp\": 2, \"micro_batch\": 2}"},
           "pipeline_parallel_degree = 2&pipeline_parallel_schedule = \"1F1B\"&"
           "pipeline_parallel_microbatch_size = 2&local_batch_size = 32");
    LaunchCase w =
        job_write((LaunchJob){.parallel = "{\"pp\": 2, \"vpp\": 2, \"stages\": [{\"layers\": 7, "
                                          "\"embedding\": true}, {\"layers\": 9}, "
                                          "{\"layers\": 9}, {\"layers\": 7, \"loss\": true}]}"});
    CU_ASSERT_EQUAL_FATAL(w.status.code, STATUS_OK);
    const char *text = w.files.files[1].text;
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "[\"tok_embeddings\", \"layers.0\", "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "    [\"layers.7\", "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"layers.31\", \"norm\", \"output\"]\n]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "= \"Interleaved1F1B\""));
    arena_free(&w.arena);
    expect_refused(
        (LaunchJob){.parallel = "{\"pp\": 2, \"schedule\": \"zb-h1\"}"},
        "parallel.schedule: zb-h1 is none of its schedules: torchtitan cannot run this plan as "
        "priced; nearest: 1f1b, or with pp gpipe, interleaved, breadth-first or zb-v");
    expect_refused((LaunchJob){.parallel = "{\"pp\": 2, \"order\": \"tp-cp-ep-pp-dp\"}"},
                   "parallel.order: order tp-cp-ep-pp-dp is not possible: torchtitan cannot run "
                   "this plan as priced; nearest: tp-cp-ep-dp-pp");
    expect((LaunchJob){.parallel = "{\"tp\": 8, \"order\": \"tp-cp-ep-pp-dp\"}"},
           "tensor_parallel_degree = 8"); // without a pipeline both orders are one
}

static void recomputation_and_precision_are_written(void) {
    expect((LaunchJob){.parallel = "{\"recompute\": \"full\"}"},
           "mode = \"full\"&!selective_ac_option");
    expect((LaunchJob){.parallel = "{\"recompute\": \"selective\"}"},
           "mode = \"selective\"&selective_ac_option = \"op\"");
    expect(
        (LaunchJob){.training = TRAINING(", \"precision\": \"fp8\", \"fp8_recipe\": \"rowwise\", "
                                         "\"compile\": true, \"cross_entropy_fused\": true")},
        "converters = [\"float8\"]&recipe_name = \"rowwise\"&compile = true&"
        "filter_fqns = [\"output\"]");
    expect((LaunchJob){.training = TRAINING(", \"precision\": \"fp32\"")},
           "mixed_precision_param = \"float32\"");
}

static void what_cannot_run_is_refused(void) {
    expect_refused((LaunchJob){.parallel = "{\"zero_stage\": 1}"},
                   "parallel.zero_stage: sharding the optimizer alone is not possible: torchtitan "
                   "cannot run this plan as priced; nearest: 3, with reshard_after_forward "
                   "false where gathered weights shall stay");
    expect_refused((LaunchJob){.parallel = "{\"zero_stage\": 0, \"tp\": 2}"},
                   "parallel.zero_stage: unsharded weights beside tp 2, pp 1, cp 1 are not "
                   "possible: torchtitan cannot run this plan as priced; nearest: 3");
    expect_refused((LaunchJob){.parallel = "{\"cp\": 2, \"cp_method\": \"ulysses\"}"},
                   "parallel.cp_method: ulysses is not possible: torchtitan cannot run this plan "
                   "as priced; nearest: ring or all-gather");
    expect_refused((LaunchJob){.parallel = "{\"tp\": 2, \"sequence_parallel\": false}"},
                   "parallel.sequence_parallel: tp 2 without sequence parallelism is not possible: "
                   "torchtitan cannot run this plan as priced; nearest: true");
    expect_refused(
        (LaunchJob){.training = "{\"seq_len\": 4096, \"global_batch\": 256}"},
        "training.stack: the plan is priced for megatron-core, and torchtitan would run it "
        "otherwise: plan again with training.stack torchtitan, or start it --for megatron");
}

static void documentation_is_the_key_table(void) {
    expect_key_table("docs/launch/torchtitan.md", TITAN_KEYS);
}

CU_TestInfo titan_tests[] = {
    {"models_have_a_flavor", models_have_a_flavor},
    {"degrees_are_written", degrees_are_written},
    {"pipelines_name_every_module", pipelines_name_every_module},
    {"recomputation_and_precision_are_written", recomputation_and_precision_are_written},
    {"what_cannot_run_is_refused", what_cannot_run_is_refused},
    {"documentation_is_the_key_table", documentation_is_the_key_table},
    CU_TEST_INFO_NULL,
};
