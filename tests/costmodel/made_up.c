#include "tests/costmodel/made_up.h"

#include "config/job/scenario_front.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

const char *const MADE_UP_GPT =
    "{\"model_type\": \"generic\", \"name\": \"gpt\", \"hidden_size\": 1024,"
    " \"intermediate_size\": 4096, \"num_hidden_layers\": 2, \"num_attention_heads\": 16,"
    " \"vocab_size\": 1024, \"position\": \"none\", \"linear_bias\": false}";

#define MADE_UP_EXPERTS                                                                            \
    "\"hidden_size\": 1024, \"intermediate_size\": 4096, \"num_hidden_layers\": 4,"                \
    " \"num_attention_heads\": 16, \"vocab_size\": 1024, \"gated_mlp\": true,"                     \
    " \"norm\": \"rmsnorm\", \"position\": \"rope\", \"linear_bias\": false,"                      \
    " \"tie_word_embeddings\": false, \"num_experts\": 8, \"num_experts_per_tok\": 2,"             \
    " \"moe_intermediate_size\": 512, \"shared_expert_intermediate_size\": 512,"                   \
    " \"first_k_dense_replace\": 1"

const char *const MADE_UP_MOE = "{\"model_type\": \"generic\", \"name\": \"moe\","
                                " \"num_key_value_heads\": 4, " MADE_UP_EXPERTS "}";

const char *const MADE_UP_MLA =
    "{\"model_type\": \"generic\", \"name\": \"mla\", \"q_lora_rank\": 256, \"kv_lora_rank\": 128,"
    " \"qk_nope_head_dim\": 64, \"qk_rope_head_dim\": 32, \"v_head_dim\": 64,"
    " \"num_nextn_predict_layers\": 1, " MADE_UP_EXPERTS "}";

static const GpuArchitecture MADE_UP_ARCHITECTURE = {
    .unaligned_frac = 0.5,
    .odd_frac = 0.25,
    .name = "made-up",
    .backward_192_frac = 0.82,
    .num_older = 1,
    .older = {{1, {.frac = 0.7}, {.frac = 0.62}}},
};

Gpu made_up_gpu(void) {
    Gpu gpu = {.name = "made-up",
               .architecture = "made-up",
               .shared = &MADE_UP_ARCHITECTURE,
               .num_sms = 100,
               .memory_bytes = 80e9,
               .memory_available_bytes = 80e9,
               .memory_bandwidth_bytes_per_s = 1e12,
               .power_watts = 1000,
               .idle_power_watts = 100,
               .price_usd_per_gpu_hour = 1};
    gpu.efficiency = (GpuEfficiency){.gemm_tile_m = 100,
                                     .gemm_tile_n = 100,
                                     .full_rate_watts = 500,
                                     .light_rate_watts = 500,
                                     .attention_head64_frac = 0.75,
                                     .memory_frac = 1,
                                     .attention_forward_frac = 0.5,
                                     .attention_backward_frac = 0.25};
    for (int p = 0; p < NUM_PRECISIONS; p++) {
        gpu.efficiency.gemm_max_frac[p] = 1;
        gpu.peak_flops_per_s[p] = p <= PRECISION_FP32   ? 2.5e13
                                  : p == PRECISION_TF32 ? 5e13
                                  : p <= PRECISION_BF16 ? 1e14
                                                        : 2e14;
    }
    return gpu;
}

Cluster made_up_cluster(int num_gpus) {
    Link up = {.name = "up",
               .bandwidth_bytes_per_s = 1e11,
               .switched = true,
               .latency_s = 1e-5,
               .hop_latency_s = 1e-6,
               .efficiency_frac = 1,
               .p2p_latency_s = 2e-6,
               .p2p_efficiency_frac = 1};
    Link out = {.name = "out",
                .bandwidth_bytes_per_s = 1e10,
                .latency_s = 1e-4,
                .hop_latency_s = 1e-5,
                .efficiency_frac = 1,
                .p2p_latency_s = 2e-5,
                .p2p_efficiency_frac = 1};
    return test_cluster(&(Pool){.gpu = made_up_gpu(),
                                .num_gpus = num_gpus,
                                .gpus_per_node = 8,
                                .num_nodes = (num_gpus + 7) / 8,
                                .scale_up = up,
                                .domain_gpus = 8,
                                .scale_out = out,
                                .nics_per_node = 8,
                                .nic_bytes_per_s = 1e10,
                                .oversubscription = 1,
                                .price_usd_per_gpu_hour = 1,
                                .power_watts_per_gpu = 1000});
}

// Log factors are independent; a GPU's own kernels and everything beyond are certain.
static const Calibration MADE_UP_CALIBRATION = {
    .title = "made up",
    .factor = {1, 1, 1, 1, 1, 1, 1},
    .covariance = {[PART_PRODUCTS][PART_PRODUCTS] = 0.01,
                   [PART_ATTENTION][PART_ATTENTION] = 0.04,
                   [PART_MEMORY][PART_MEMORY] = 0.04,
                   [PART_HOST][PART_HOST] = 0.09,
                   [PART_INSIDE][PART_INSIDE] = 0.09,
                   [PART_ACROSS][PART_ACROSS] = 0.16,
                   [PART_OPTIMIZER][PART_OPTIMIZER] = 0.04},
    .step_spread = 0.03,
    .num_nodes = 1 << 20,
};

static Status case_read(Case *c, const char *text, int num_gpus) {
    JsonNode *root = ARENA_NEW(&c->arena, JsonNode);
    TRY(json_parse(text, strlen(text), "job.json", &c->arena, root));
    JsonNode model = json_get(root, "model"), training = json_get(root, "training");
    JsonNode parallel = json_get(root, "parallel");
    c->scenario.file = "job.json";
    c->scenario.cluster = made_up_cluster(num_gpus);
    c->scenario.calibration = &MADE_UP_CALIBRATION;
    TRY(model_load(&model, &c->arena, &c->scenario.model));
    TRY(training_load(&training, &c->scenario.cluster.pools[0].gpu, NULL, &c->arena,
                      &c->scenario.training, &c->scenario.execution));
    TRY(scenario_take_front(root, &c->arena, &c->scenario));
    c->scenario.execution.stack.rules = NULL; // the laws hold whatever some software can run
    return parallel_load(&parallel, &c->arena, &c->scenario.parallel);
}

static bool is_good(const Status *status) {
    CU_ASSERT_EQUAL(status->code, STATUS_OK);
    if (status->code != STATUS_OK) fprintf(stderr, "\n%s\n", status->text);
    return status->code == STATUS_OK;
}

bool case_resolve(Case *c) {
    Status status = plan_resolve(&c->scenario, &c->arena, &c->plan);
    if (!is_good(&status)) return false;
    c->workload = workload_build(&c->scenario, &c->plan, &c->arena);
    return true;
}

bool case_make(Case *c, const char *model, int num_gpus, const char *training,
               const char *parallel) {
    *c = (Case){0};
    const char *text =
        arena_printf(&c->arena, "{\"model\": %s, \"training\": %s, \"parallel\": %s}", model,
                     training, parallel ? parallel : "{}");
    Status status = case_read(c, text, num_gpus);
    return is_good(&status) && case_resolve(c);
}

Estimate case_estimate(Case *c, EstimateParts *parts) {
    Estimate estimate = {.step_time_s = NAN};
    const Status status = estimate_plan(&c->scenario, &c->plan, &c->arena, &estimate, parts);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code != STATUS_OK) fprintf(stderr, "\n%s\n", status.text);
    return estimate;
}

void case_free(Case *c) {
    arena_free(&c->arena);
}

void stack_bare(Stack *stack) {
    stack->launch.host_launch_s = stack->launch.host_layer_s = stack->training.host_microbatch_s =
        stack->launch.host_step_s = 0;
    stack->launch.moe_sync_s = stack->launch.host_expert_s = 0;
    stack->communication.overlap_slowdown_frac = stack->residency.allocator_slack_frac = 0;
    stack->residency.context_bytes = stack->residency.comm_bytes_per_group =
        stack->residency.workspace_bytes = 0;
    stack->residency.grouped_workspace_bytes = 0;
}
