#include "launch/megatron.h"

#include "launch/megatron_kept.h"
#include "launch/task.h"

#include <string.h>

// ZeRO-2 and ZeRO-3 are Megatron-FSDP's; it needs a checkpoint format of its own.
static void fsdp_flags(const Plan *plan, FlagList *flags) {
    bool weights = plan->zero_stage == 3;
    flag_switch(flags, "--use-megatron-fsdp");
    flag_text(flags, "--data-parallel-sharding-strategy",
              weights ? "optim_grads_params" : "optim_grads");
    if (weights) flag_switch(flags, "--init-model-with-meta-device");
    flag_switch(flags, "--no-gradient-accumulation-fusion");
    flag_text(flags, "--ckpt-format", "fsdp_dtensor");
}

static void sharding_flags(const Plan *plan, FlagList *flags) {
    int ranks = plan->dp * plan->cp;
    if (plan->zero_stage == 0) return;
    flag_switch(flags, "--use-distributed-optimizer");
    if (plan->zero_stage > 1)
        fsdp_flags(plan, flags);
    else if (plan->zero_group != ranks)
        flag_int(flags, "--num-distributed-optimizer-instances", ranks / plan->zero_group);
}

static void overlap_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    const Execution *execution = &scenario->execution;
    if (execution->overlap_grad_reduce) flag_switch(flags, "--overlap-grad-reduce");
    if (execution->overlap_param_gather && plan->zero_stage > 0)
        flag_switch(flags, "--overlap-param-gather");
    if (execution->tp_comm_overlap && plan->tp > 1) flag_switch(flags, "--tp-comm-overlap");
}

// The name of a method is Transformer Engine's: Megatron-LM hands it through, and its own help text
// spells one of them otherwise (allgather).
static void context_flags(const Plan *plan, FlagList *flags) {
    static const char *const methods[] = {
        [CP_RING] = "p2p", [CP_ULYSSES] = "a2a", [CP_ALL_GATHER] = "all_gather"};
    if (plan->cp == 1) return;
    flag_int(flags, "--context-parallel-size", plan->cp);
    flag_text(flags, "--cp-comm-type", methods[plan->cp_method]);
}

void megatron_parallel_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    flag_int(flags, "--tensor-model-parallel-size", plan->tp);
    if (plan->tp > 1 && plan->sequence_parallel) flag_switch(flags, "--sequence-parallel");
    context_flags(plan, flags);
    if (model_is_moe(&scenario->model)) {
        flag_int(flags, "--expert-model-parallel-size", plan->ep);
        flag_int(flags, "--expert-tensor-parallel-size", plan->etp);
    }
    if (plan->order == ORDER_PP_DP) flag_switch(flags, "--use-tp-pp-dp-mapping");
    // initialize_model_parallel asks as many data-parallel ranks of experts, which a dense model
    // has by name only, as of the rest.
    if (plan->order == ORDER_PP_DP && !model_is_moe(&scenario->model) && plan->cp > 1)
        flag_int(flags, "--expert-tensor-parallel-size", plan->tp * plan->cp);
    sharding_flags(plan, flags);
    overlap_flags(scenario, plan, flags);
}

static void variable_add(MegatronCommand *command, const char *name, const char *value,
                         const char *why) {
    command->variables[command->num_variables++] = (LaunchVariable){name, value, why};
}

// What arguments.py demands of the environment.
static void environment_set(const Scenario *scenario, const Plan *plan, MegatronCommand *command) {
    bool expert_overlap = scenario->execution.ep_overlap && plan->ep > 1;
    if (plan->zero_stage > 1)
        variable_add(command, "CUDA_DEVICE_MAX_CONNECTIONS", "8",
                     "Shards are gathered and reduced beside the compute: FSDP refuses 1.");
    else if (expert_overlap)
        variable_add(command, "CUDA_DEVICE_MAX_CONNECTIONS", "32",
                     "Expert messages run beside the compute of another micro-batch.");
    else
        variable_add(command, "CUDA_DEVICE_MAX_CONNECTIONS", "1",
                     "Kernels start in the order of their launch, so that a message starts before "
                     "the product that hides it.");
    if (scenario->execution.cuda_graphs == GRAPH_NONE)
        variable_add(command, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
                     "The allocator's blocks grow, so that little memory is lost between them.");
    variable_add(command, "TORCH_NCCL_AVOID_RECORD_STREAMS", "1",
                 "Memory of a finished message is free at once.");
}

// The tokenizer of mock data adds a token of its own to those that it is told of.
static Status vocabulary_check(const Scenario *scenario) {
    if (scenario->model.vocab_size > 1) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "model.vocab_size",
                     "%d: no tokenizer of Megatron-LM has so few tokens; nearest: 2",
                     scenario->model.vocab_size);
}

Status megatron_command(const Scenario *scenario, const Plan *plan, Arena *arena,
                        MegatronCommand *out) {
    *out = (MegatronCommand){.flags = {.arena = arena, .rows = MEGATRON_FLAGS}};
    TRY(task_check_rules(scenario, plan, "Megatron-LM", "megatron-core", NULL, false, arena));
    TRY(vocabulary_check(scenario));
    megatron_model_flags(scenario, &out->flags);
    megatron_moe_flags(scenario, plan, &out->flags);
    megatron_parallel_flags(scenario, plan, &out->flags);
    megatron_pipeline_flags(scenario, plan, &out->flags);
    megatron_recompute_flags(plan, &out->flags);
    megatron_training_flags(scenario, plan, &out->flags);
    environment_set(scenario, plan, out);
    megatron_notes(scenario, out);
    return megatron_keep_flags(scenario, plan, out);
}
