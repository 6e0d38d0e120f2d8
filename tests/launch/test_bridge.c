// Plans as configurations of Megatron Bridge: what is written, what is refused, and that every flag
// of Megatron-LM has its key and only documented keys are ever written.
#include "launch/bridge.h"
#include "tests/launch/launch_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

#define TRAINING(more) "{\"seq_len\": 4096, \"global_batch\": 256" more "}"

static LaunchCase job_write(LaunchJob job) {
    return launch_case(job, LAUNCH_NEMO, TRAINING(""));
}

static void expect(LaunchJob job, const char *lines) {
    LaunchCase w = job_write(job);
    CU_ASSERT_STRING_EQUAL(w.status.text, "");
    CU_ASSERT_EQUAL_FATAL(w.files.num_files, 3);
    CU_ASSERT_STRING_EQUAL(w.files.files[1].name, "megatron_bridge.yaml");
    expect_lines(&w.files.files[1], lines, "  ", ":");
    arena_free(&w.arena);
}

static void expect_refused(LaunchJob job, const char *sentence) {
    LaunchCase w = job_write(job);
    ASSERT_REFUSED(without_rule(w.status), arena_printf(&w.arena, "job.json: %s", sentence));
    arena_free(&w.arena);
}

static void degrees_and_sharding_are_written(void) {
    expect((LaunchJob){.parallel = "{\"tp\": 2, \"cp\": 2}"},
           "tensor_model_parallel_size: 2&context_parallel_size: 2&cp_comm_type: \"p2p\"&"
           "sequence_parallel: true&use_distributed_optimizer: true&"
           "batch_p2p_comm: true&!virtual_pipeline_model_parallel_size&!num_moe_experts");
    expect((LaunchJob){.parallel = "{\"zero_stage\": 0}"},
           "use_distributed_optimizer: false&overlap_param_gather: false&"
           "ckpt_format: \"torch_dist\"");
    expect((LaunchJob){.parallel = "{\"zero_stage\": 2}"},
           "use_megatron_fsdp: true&data_parallel_sharding_strategy: \"optim_grads\"&"
           "ckpt_format: \"fsdp_dtensor\"&gradient_accumulation_fusion: false");
}

// 32 layers in 2 x 3 chunks: no even split, so the layout says it, and vpp beside it.
static void pipelines_are_written(void) {
    expect((LaunchJob){.parallel = "{\"pp\": 2, \"vpp\": 4}"},
           "virtual_pipeline_model_parallel_size: 4&overlap_p2p_comm: true&batch_p2p_comm: false&"
           "!pipeline_model_parallel_layout");
    expect((LaunchJob){.parallel = "{\"pp\": 2, \"vpp\": 3}"},
           "virtual_pipeline_model_parallel_size: 3&pipeline_model_parallel_layout: "
           "\"Ettttt|tttttt|tttttt|ttttt|ttttt|tttttL\"");
    expect((LaunchJob){.parallel = "{\"pp\": 4, \"recompute\": \"full\", \"recompute_layers\": 3}"},
           "recompute_granularity: \"full\"&recompute_method: \"block\"&recompute_num_layers: 3");
}

static void precision_is_written(void) {
    expect(
        (LaunchJob){.training = TRAINING(", \"precision\": \"fp8\", \"fp8_recipe\": \"delayed\"")},
        "fp8: \"hybrid\"&fp8_recipe: \"delayed\"&bf16: true&params_dtype: \"bfloat16\"&"
        "!fp8_param_gather");
    expect((LaunchJob){.training = TRAINING(", \"precision\": \"fp32\"")},
           "params_dtype: \"float32\"&grad_reduce_in_fp32: true&!bf16&!fp16");
    expect((LaunchJob){.training = TRAINING(", \"grad_reduce_dtype\": \"bf16\", "
                                            "\"cross_entropy_fused\": false")},
           "grad_reduce_in_fp32: false&cross_entropy_loss_fusion: false&"
           "!cross_entropy_fusion_impl");
}

static void what_cannot_run_is_refused(void) {
    expect_refused((LaunchJob){.parallel = "{\"pp\": 2, \"schedule\": \"zb-h1\"}"},
                   "parallel.schedule: zb-h1 is none of its schedules: Megatron-LM cannot run this "
                   "plan as priced; nearest: 1f1b, or interleaved with vpp");
    expect_refused((LaunchJob){.training = TRAINING(", \"optimizer\": \"muon\""),
                               .parallel = "{\"zero_stage\": 0}"},
                   "training.optimizer: muon has no key: Megatron Bridge cannot run this plan as "
                   "priced; nearest: adam");
    expect_refused((LaunchJob){.training = TRAINING(", \"cuda_graphs\": \"layer\"")},
                   "training.cuda_graphs: a graph of the whole layer has no key: Megatron Bridge "
                   "cannot run this plan as priced; nearest: attn");
    expect_refused((LaunchJob){.model = "\"gpt-oss-20b\""},
                   "model.hidden_act: gpt-oss's clamped quick GELU has no key: Megatron Bridge "
                   "cannot run this plan as priced; nearest: silu");
    expect_refused((LaunchJob){.model = "\"gpt2-124m\"",
                               .training = "{\"seq_len\": 512, \"global_batch\": 256}"},
                   "training.seq_len: a table of 1024 learned positions at seq_len 512 has no "
                   "key: Megatron Bridge cannot run this plan as priced; nearest: 1024");
    expect_refused(
        (LaunchJob){.training = TRAINING(", \"stack\": \"torchtitan\"")},
        "training.stack: the plan is priced for torchtitan, and Megatron-LM would run it "
        "otherwise: plan again with training.stack megatron-core, or start it --for torchtitan");
}

// An order that the ranks of FSDP cannot have; without FSDP it is a key.
static void orders_go_without_fsdp(void) {
    for (int stage = 1; stage <= 3; stage += 2) {
        LaunchCase w = {0};
        MegatronCommand command;
        const char *text =
            scenario_text(&w.arena, "\"llama-3.1-8b\"", "\"dgx-h100:2\"", TRAINING(""),
                          stage == 1 ? "{\"zero_stage\": 1}" : "{\"zero_stage\": 3}");
        CU_ASSERT_EQUAL_FATAL(scenario_of(text, &w.arena, &w.scenario).code, STATUS_OK);
        CU_ASSERT_EQUAL_FATAL(plan_resolve(&w.scenario, &w.arena, &w.plan).code, STATUS_OK);
        w.plan.order = ORDER_PP_DP;
        CU_ASSERT_EQUAL_FATAL(megatron_command(&w.scenario, &w.plan, &w.arena, &command).code,
                              STATUS_OK);
        KeyList keys = {.arena = &w.arena, .rows = BRIDGE_KEYS};
        const Status status = bridge_config(&w.scenario, &w.plan, &command, &keys);
        CU_ASSERT_EQUAL(status.code, stage == 1 ? STATUS_OK : STATUS_INVALID);
        CU_ASSERT_EQUAL(key_is_set(&keys, "dist", "use_tp_pp_dp_mapping"), stage == 1);
        arena_free(&w.arena);
    }
}

// Flags that no file of Megatron Bridge gets: data and checkpoints are arguments of its program.
static bool flag_is_elsewhere(const FlagRow *flag) {
    return strcmp(flag->group, "Data and checkpoints") == 0 ||
           strcmp(flag->flag, "--vocab-size") == 0 ||  // model.vocab_size, of the scenario
           strcmp(flag->flag, "--quick-geglu") == 0 || // refused
           strcmp(flag->flag, "--activation-func-clamp-value") == 0 ||
           strcmp(flag->flag, "--glu-linear-offset") == 0;
}

static void every_flag_has_its_key(void) {
    for (const FlagRow *flag = MEGATRON_FLAGS; flag->flag; flag++) {
        int rows = 0;
        for (const BridgeFlag *row = BRIDGE_FLAGS; row->flag; row++) {
            if (strcmp(row->flag, flag->flag) != 0) continue;
            rows++;
            if (row->as != FLAG_OWN)
                CU_ASSERT_PTR_NOT_NULL(key_row_find(BRIDGE_KEYS, row->section, row->key));
        }
        if ((rows > 0) == flag_is_elsewhere(flag)) printf("\n%s: %d rows\n", flag->flag, rows);
        CU_ASSERT_EQUAL(rows > 0, !flag_is_elsewhere(flag));
    }
}

static void documentation_is_the_key_table(void) {
    expect_key_table("docs/launch/nemo.md", BRIDGE_KEYS);
}

static void documentation_names_the_version(void) {
    FILE *stream = fopen("docs/launch/nemo.md", "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    char line[400];
    bool named = false;
    while (fgets(line, sizeof line, stream))
        named |= strstr(line, "Megatron-Bridge " BRIDGE_VERSION) != NULL;
    CU_ASSERT(named);
    fclose(stream);
}

CU_TestInfo bridge_tests[] = {
    {"degrees_and_sharding_are_written", degrees_and_sharding_are_written},
    {"pipelines_are_written", pipelines_are_written},
    {"precision_is_written", precision_is_written},
    {"what_cannot_run_is_refused", what_cannot_run_is_refused},
    {"orders_go_without_fsdp", orders_go_without_fsdp},
    {"every_flag_has_its_key", every_flag_has_its_key},
    {"documentation_is_the_key_table", documentation_is_the_key_table},
    {"documentation_names_the_version", documentation_names_the_version},
    CU_TEST_INFO_NULL,
};
