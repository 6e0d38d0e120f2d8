#include "planner/stack_rules.h"

#include <string.h>

#define ZERO(stage) (1u << (stage))

static const unsigned ZERO_ALL = ZERO(0) | ZERO(1) | ZERO(2) | ZERO(3);

static const StackRules RULES[] = {
    {"megatron-core", ZERO(0) | ZERO(1) | ZERO(3), ZERO(0) | ZERO(1), .whole_groups = true,
     .whole_kv_heads = true,
     .source = "NVIDIA/Megatron-LM, megatron/training/arguments.py: --use-distributed-optimizer, "
               "--use-megatron-fsdp (not with pipelines), interleaving asserts micro-batches % pp"},
    {"megatron-2022", ZERO(0) | ZERO(1), ZERO(0) | ZERO(1), .whole_groups = true,
     .whole_kv_heads = true,
     .source = "NVIDIA/Megatron-LM v3.0, megatron/arguments.py: --use-distributed-optimizer"},
    {"megatron-2021", ZERO(0) | ZERO(1), ZERO(0) | ZERO(1), .whole_groups = true,
     .whole_kv_heads = true,
     .source = "microsoft/Megatron-DeepSpeed: ZeRO 1 with pipelines; v2.5 has none"},
    {"pytorch-fsdp", ZERO(0) | ZERO(2) | ZERO(3), 0, .data_parallel_only = true,
     .source = "PyTorch, torch.distributed.fsdp.ShardingStrategy: NO_SHARD, SHARD_GRAD_OP, "
               "FULL_SHARD; llm-foundry has no other split"},
    {"torchtitan", ZERO(0) | ZERO(2) | ZERO(3), ZERO(0) | ZERO(2) | ZERO(3), .gpipe = true,
     .source = "pytorch/torchtitan, docs/fsdp.md (reshard_after_forward) and docs/composability.md "
               "(pipelines); schedules of torch.distributed.pipelining"},
    {"llm.c", ZERO(0) | ZERO(1), 0, .data_parallel_only = true,
     .source = "karpathy/llm.c, llmc/zero.cuh: stages 0 and 1; no other split"},
};

const StackRules *stack_rules(const Scenario *scenario) {
    static const StackRules ANYTHING = {"", ZERO_ALL, ZERO_ALL, .gpipe = true};
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (strcmp(RULES[i].stack, scenario->training.stack.name) == 0) return &RULES[i];
    return &ANYTHING;
}
