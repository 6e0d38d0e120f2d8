#include "planner/stack_rules.h"

#include <string.h>

#define ZERO(stage) (1u << (stage))

#define METHOD(method) (1u << (method))

#define SCHEDULE(kind) (1u << (kind))

#define LAYERS(recompute) (1u << (recompute))

#define ZERO_ALL (ZERO(0) | ZERO(1) | ZERO(2) | ZERO(3))
#define CP_ALL (METHOD(NUM_CP_METHODS) - 1)
#define SCHEDULES_ALL (SCHEDULE(NUM_SCHEDULES) - 1)

static const StackRules RULES[] = {
    {"megatron-core", ZERO_ALL, ZERO(0) | ZERO(1), .stages_alternate = true, .whole_groups = true,
     .whole_kv_heads = true, .refused_cp_windowed = METHOD(CP_RING),
     .refused_cp_mla = METHOD(CP_ULYSSES) | METHOD(CP_ALL_GATHER), .zero_groups = ZERO(1),
     .first_layers = LAYERS(RECOMPUTE_FULL), .first_layers_of_chunks = true,
     .source = "NVIDIA/Megatron-LM, megatron/training/arguments.py: --use-distributed-optimizer, "
               "--use-megatron-fsdp (not with pipelines) with --data-parallel-sharding-strategy "
               "optim_grads or optim_grads_params, interleaving asserts micro-batches % pp; "
               "--recompute-method block with --recompute-num-layers, of each virtual stage; "
               "megatron/core/parallel_state.py: num_distributed_optimizer_instances divides dp x "
               "cp, and of the order --use-tp-pp-dp-mapping; "
               "megatron/core/pipeline_parallel/schedules.py: 1F1B and interleaved, no other; "
               "NVIDIA/TransformerEngine, context_parallel.py, attn_forward_func_with_cp: asserts "
               "a2a or all_gather for sliding windows, p2p for MLA"},
    {"megatron-2022", ZERO(0) | ZERO(1), ZERO(0) | ZERO(1), .whole_groups = true,
     .whole_kv_heads = true, .refused_cp = CP_ALL, .first_layers = LAYERS(RECOMPUTE_FULL),
     .first_layers_of_chunks = true,
     .source = "NVIDIA/Megatron-LM v3.0, megatron/arguments.py: --use-distributed-optimizer, over "
               "all of dp; --recompute-method block; no context parallelism"},
    {"megatron-2021", ZERO(0) | ZERO(1), ZERO(0) | ZERO(1), .whole_groups = true,
     .whole_kv_heads = true, .refused_cp = CP_ALL,
     .source = "microsoft/Megatron-DeepSpeed: ZeRO 1 with pipelines; v2.5 has none; no context "
               "parallelism"},
    {"pytorch-fsdp", ZERO(0) | ZERO(2) | ZERO(3), 0, .data_parallel_only = true,
     .zero_groups = ZERO(2) | ZERO(3), .first_layers = LAYERS(RECOMPUTE_FULL),
     .source = "PyTorch, torch.distributed.fsdp.ShardingStrategy: NO_SHARD, SHARD_GRAD_OP, "
               "FULL_SHARD; HYBRID_SHARD and _HYBRID_SHARD_ZERO2 over a device_mesh (replicate, "
               "shard); llm-foundry has no other split; its activation_checkpointing_target takes "
               "first-n (llmfoundry/models/utils/act_ckpt.py)"},
    {"torchtitan", ZERO(0) | ZERO(2) | ZERO(3), ZERO(0) | ZERO(2) | ZERO(3),
     .schedules =
         SCHEDULE(SCHEDULE_GPIPE) | SCHEDULE(SCHEDULE_BREADTH_FIRST) | SCHEDULE(SCHEDULE_ZB_V),
     .refused_cp = METHOD(CP_ULYSSES), .zero_groups = ZERO(2) | ZERO(3),
     .source =
         "pytorch/torchtitan, data_parallel_replicate_degree x data_parallel_shard_degree; "
         "activation checkpointing is full, selective by operator, or of every n-th layer, not of "
         "the first; docs/fsdp.md (reshard_after_forward) and docs/composability.md "
         "(pipelines); torch/distributed/pipelining/schedules.py: ScheduleGPipe, Schedule1F1B, "
         "ScheduleInterleaved1F1B, ScheduleLoopedBFS, ScheduleZBVZeroBubble "
         "(ScheduleInterleavedZeroBubble is for several chunks a rank, not ZB-H1 or ZB-H2); "
         "context_parallel_rotate_"
         "method: allgather, or alltoall, which passes keys and values on like a ring"},
    {"internevo", ZERO_ALL, ZERO_ALL, .schedules = SCHEDULES_ALL & ~SCHEDULE(SCHEDULE_DUALPIPE),
     .zero_groups = ZERO(1), .first_layers = LAYERS(RECOMPUTE_FULL), .first_layers_of_chunks = true,
     .source = "InternLM/InternEvo, internlm/core/scheduler: pipeline_scheduler_1f1b.py, "
               "pipeline_scheduler_zb.py; nothing runs two pipelines against each other; "
               "configs/7B_sft.py: zero1.size is any part of dp; internlm/model: a `checkpoint` "
               "between 0 and 1 recomputes that share of the layers, the first of each chunk"},
    {"llm.c", ZERO(0) | ZERO(1), 0, .data_parallel_only = true,
     .source = "karpathy/llm.c, llmc/zero.cuh: stages 0 and 1; no other split"},
};

const StackRules *stack_rules(const Scenario *scenario) {
    static const StackRules ANYTHING = {"",
                                        ZERO_ALL,
                                        ZERO_ALL,
                                        .schedules = SCHEDULES_ALL,
                                        .stages_alternate = true,
                                        .zero_groups = ZERO_ALL,
                                        .first_layers =
                                            LAYERS(RECOMPUTE_SELECTIVE) | LAYERS(RECOMPUTE_FULL)};
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (strcmp(RULES[i].stack, scenario->training.stack.name) == 0) return &RULES[i];
    return &ANYTHING;
}

// A tower is not split by cp (workload/front.h).
static bool has_window(const Model *model) {
    for (int k = 0; k < model->num_kinds; k++)
        if (model->kinds[k].window > 0 && !model->kinds[k].front) return true;
    return false;
}

bool stack_has_cp(const StackRules *rules, const Model *model, CpMethod method) {
    unsigned refused = rules->refused_cp;
    if (has_window(model)) refused |= rules->refused_cp_windowed;
    if (model->attention == ATTENTION_MLA) refused |= rules->refused_cp_mla;
    return !(refused & METHOD(method));
}

bool stack_has_any_cp(const StackRules *rules, const Model *model) {
    for (int method = 0; method < NUM_CP_METHODS; method++)
        if (stack_has_cp(rules, model, (CpMethod)method)) return true;
    return false;
}

bool stack_has_schedule(const StackRules *rules, ScheduleKind kind) {
    return kind == SCHEDULE_1F1B || kind == SCHEDULE_INTERLEAVED ||
           rules->schedules & SCHEDULE(kind);
}

bool stack_has_first_layers(const StackRules *rules, const Plan *plan) {
    return rules->first_layers & LAYERS(plan->recompute) &&
           (plan->vpp == 1 || !rules->first_layers_of_chunks);
}

bool stack_has_plan(const StackRules *rules, const Plan *plan) {
    const unsigned stages = plan->pp > 1 ? rules->zero_stages_pipelined : rules->zero_stages;
    const bool hybrid = plan->zero_stage > 0 && plan->zero_group != plan->dp * plan->cp;
    const bool some = plan->recompute != RECOMPUTE_NONE && plan->recompute_layers != ABSENT;
    return stages & ZERO(plan->zero_stage) &&
           (!hybrid || rules->zero_groups & ZERO(plan->zero_stage)) &&
           (!some || stack_has_first_layers(rules, plan)) &&
           (plan->pp == 1 || stack_has_schedule(rules, plan->schedule));
}

int stack_zero_groups(const StackRules *rules, const Scenario *scenario, const Plan *plan,
                      int zero_stage, int *groups) {
    const int all = plan->dp * plan->cp;
    const bool over_cp = scenario->training.stack.shards_over_cp && plan->cp > 1;
    int num = 0;
    groups[num++] = plan_zero_group(scenario, plan->dp, plan->cp);
    if (scenario->parallel.zero_group != ABSENT || zero_stage == 0) return num;
    if (!(rules->zero_groups & ZERO(zero_stage))) return num;
    for (int parts = 2; parts <= all / 2 && num < STACK_MAX_ZERO_GROUPS; parts++) {
        const int group = all / parts;
        if (all % parts != 0) continue;
        if (over_cp && (group % plan->cp != 0 || group == plan->dp)) continue;
        groups[num++] = group;
    }
    return num;
}
