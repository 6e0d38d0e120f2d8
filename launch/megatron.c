#include "launch/megatron.h"

#include "launch/megatron_kept.h"
#include "launch/task.h"

#include <stdarg.h>
#include <string.h>

Status megatron_refuse(const Scenario *scenario, const char *path, const char *nearest,
                       const char *format, ...) {
    va_list args;
    va_start(args, format);
    const Status status = task_refuse(scenario, "Megatron-LM", path, nearest, format, args);
    va_end(args);
    return status;
}

// ZeRO-2 and ZeRO-3 are Megatron-FSDP's; it needs a checkpoint format of its own.
static Status fsdp_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    int ranks = plan->dp * plan->cp;
    bool weights = plan->zero_stage == 3;
    const char *what = weights ? "weights" : "gradients";
    if (plan->pp > 1)
        return megatron_refuse(scenario, "parallel.zero_stage", "1, or pp 1",
                               "sharded %s with pp %d are not possible", what, plan->pp);
    if (plan->zero_group != ranks)
        return megatron_refuse(scenario, "parallel.zero_group", "all of dp x cp",
                               "hybrid sharding of %s over %d of %d ranks has no flag", what,
                               plan->zero_group, ranks);
    if (weights && !plan->reshard_after_forward)
        return megatron_refuse(scenario, "parallel.reshard_after_forward", "true",
                               "keeping gathered weights after the forward has no flag");
    flag_switch(flags, "--use-megatron-fsdp");
    flag_text(flags, "--data-parallel-sharding-strategy",
              weights ? "optim_grads_params" : "optim_grads");
    if (weights) flag_switch(flags, "--init-model-with-meta-device");
    flag_switch(flags, "--no-gradient-accumulation-fusion");
    flag_text(flags, "--ckpt-format", "fsdp_dtensor");
    return status_ok();
}

static Status sharding_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    int ranks = plan->dp * plan->cp;
    if (plan->zero_stage == 0) return status_ok();
    flag_switch(flags, "--use-distributed-optimizer");
    if (plan->zero_stage > 1) return fsdp_flags(scenario, plan, flags);
    if (plan->zero_group != ranks)
        flag_int(flags, "--num-distributed-optimizer-instances", ranks / plan->zero_group);
    return status_ok();
}

static Status overlap_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    const Training *training = &scenario->training;
    if (training->overlap_grad_reduce) flag_switch(flags, "--overlap-grad-reduce");
    if (training->overlap_param_gather && plan->zero_stage > 0) {
        if (!training->overlap_grad_reduce)
            return megatron_refuse(scenario, "training.overlap_param_gather",
                                   "overlap_grad_reduce true",
                                   "overlapping the gather without the reduction is not possible");
        flag_switch(flags, "--overlap-param-gather");
    }
    if (training->tp_comm_overlap && plan->tp > 1) {
        if (!plan->sequence_parallel)
            return megatron_refuse(scenario, "training.tp_comm_overlap", "sequence_parallel true",
                                   "tensor-parallel overlap without sequence parallelism is not "
                                   "possible");
        flag_switch(flags, "--tp-comm-overlap");
    }
    return status_ok();
}

// Which attention each way to split the sequence can do: the assertions of
// attn_forward_func_with_cp() in Transformer Engine 2.8, context_parallel.py.
static Status context_check(const Scenario *scenario, const Plan *plan) {
    static const char *const names[] = {
        [CP_RING] = "ring", [CP_ULYSSES] = "ulysses", [CP_ALL_GATHER] = "all-gather"};
    const Model *model = &scenario->model;
    const char *path = "parallel.cp_method", *own = names[plan->cp_method];
    bool windowed = false;
    for (int k = 0; k < model->num_kinds; k++) windowed |= model->kinds[k].window > 0;
    if (model->attention_sinks && plan->cp_method != CP_ULYSSES)
        return megatron_refuse(scenario, path, "ulysses, or cp 1",
                               "attention sinks with %s context parallelism are not possible", own);
    if (windowed && plan->cp_method == CP_RING)
        return megatron_refuse(scenario, path, "all-gather, or ulysses",
                               "sliding windows with ring context parallelism are not possible");
    if (model->attention == ATTENTION_MLA && plan->cp_method != CP_RING)
        return megatron_refuse(scenario, path, "ring",
                               "latent attention with %s context parallelism is not possible", own);
    return status_ok();
}

// The name of a method is Transformer Engine's: Megatron-LM hands it through, and its own help text
// spells one of them otherwise (allgather).
static Status context_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    static const char *const methods[] = {
        [CP_RING] = "p2p", [CP_ULYSSES] = "a2a", [CP_ALL_GATHER] = "all_gather"};
    if (plan->cp == 1) return status_ok();
    TRY(context_check(scenario, plan));
    flag_int(flags, "--context-parallel-size", plan->cp);
    flag_text(flags, "--cp-comm-type", methods[plan->cp_method]);
    return status_ok();
}

Status megatron_parallel_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    const Model *model = &scenario->model;
    if (model->attention == ATTENTION_GQA && model->num_kv_heads % plan->tp != 0)
        return megatron_refuse(scenario, "parallel.tp", "a tp that divides them",
                               "tp %d with %d key and value heads is not possible", plan->tp,
                               model->num_kv_heads);
    flag_int(flags, "--tensor-model-parallel-size", plan->tp);
    if (plan->tp > 1 && plan->sequence_parallel) flag_switch(flags, "--sequence-parallel");
    TRY(context_flags(scenario, plan, flags));
    if (model->num_experts > 0) {
        flag_int(flags, "--expert-model-parallel-size", plan->ep);
        flag_int(flags, "--expert-tensor-parallel-size", plan->etp);
    }
    if (plan->order == ORDER_PP_DP) flag_switch(flags, "--use-tp-pp-dp-mapping");
    TRY(sharding_flags(scenario, plan, flags));
    return overlap_flags(scenario, plan, flags);
}

static void variable_add(MegatronCommand *command, const char *name, const char *value,
                         const char *why) {
    command->variables[command->num_variables++] = (LaunchVariable){name, value, why};
}

// What arguments.py demands of the environment.
static void environment_set(const Scenario *scenario, const Plan *plan, MegatronCommand *command) {
    bool expert_overlap = scenario->training.ep_overlap && plan->ep > 1;
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
    if (scenario->training.cuda_graphs == GRAPH_NONE)
        variable_add(command, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
                     "The allocator's blocks grow, so that little memory is lost between them.");
    variable_add(command, "TORCH_NCCL_AVOID_RECORD_STREAMS", "1",
                 "Memory of a finished message is free at once.");
}

Status megatron_command(const Scenario *scenario, const Plan *plan, Arena *arena,
                        MegatronCommand *out) {
    *out = (MegatronCommand){.flags = {.arena = arena, .rows = MEGATRON_FLAGS}};
    if (strcmp(scenario->training.stack.name, "megatron-core") != 0)
        return megatron_refuse(scenario, "training.stack", "megatron-core",
                               "the plan was priced for %s%s", scenario->training.stack.name,
                               task_other_target(scenario));
    TRY(megatron_model_flags(scenario, &out->flags));
    TRY(megatron_moe_flags(scenario, plan, &out->flags));
    TRY(megatron_parallel_flags(scenario, plan, &out->flags));
    TRY(megatron_pipeline_flags(scenario, plan, &out->flags));
    TRY(megatron_recompute_flags(scenario, plan, &out->flags));
    TRY(megatron_training_flags(scenario, plan, &out->flags));
    environment_set(scenario, plan, out);
    megatron_notes(scenario, out);
    return megatron_keep_flags(scenario, plan, out);
}
