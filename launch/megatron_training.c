// Batch, precision, optimizer, kernels.
#include "launch/megatron.h"

typedef struct {
    const char *format, *recipe; // NULL: none in Megatron-LM
} Fp8Flags;

static Status fp8_flags(const Scenario *scenario, FlagList *flags) {
    static const Fp8Flags recipes[NUM_FP8_RECIPES] = {
        [FP8_DELAYED] = {"hybrid", "delayed"},
        [FP8_CURRENT] = {"hybrid", "tensorwise"},
        [FP8_TENSORWISE] = {"hybrid", "tensorwise"},
        [FP8_BLOCK] = {"e4m3", "blockwise"},
        [FP8_MXFP8] = {"e4m3", "mxfp8"},
    };
    int recipe = scenario->training.fp8_recipe;
    if (!recipes[recipe].recipe)
        return megatron_refuse(scenario, "training.fp8_recipe", "tensorwise", "%s has no flag",
                               FP8_RECIPE_NAMES[recipe]);
    flag_text(flags, "--fp8-format", recipes[recipe].format);
    flag_text(flags, "--fp8-recipe", recipes[recipe].recipe);
    return status_ok();
}

static Status precision_flags(const Scenario *scenario, FlagList *flags) {
    const Training *training = &scenario->training;
    switch (training->precision) {
    case PRECISION_FP32:
        return status_ok();
    case PRECISION_FP16:
        flag_switch(flags, "--fp16");
        return status_ok();
    case PRECISION_BF16:
        flag_switch(flags, "--bf16");
        return status_ok();
    case PRECISION_FP8:
    case PRECISION_MXFP8:
        flag_switch(flags, "--bf16");
        return fp8_flags(scenario, flags);
    case PRECISION_NVFP4:
        flag_switch(flags, "--bf16");
        flag_text(flags, "--fp4-format", "e2m1");
        flag_text(flags, "--fp4-recipe", "nvfp4");
        return status_ok();
    default:
        return megatron_refuse(scenario, "training.precision", "fp32 or bf16", "%s has no flag",
                               PRECISION_NAMES[training->precision]);
    }
}

static Status reduction_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    const Training *training = &scenario->training;
    bool bf16 = training->grad_reduce_precision == PRECISION_BF16;
    if (bf16 && (training->precision == PRECISION_FP32 || training->precision == PRECISION_FP16))
        return megatron_refuse(scenario, "training.grad_reduce_dtype", "fp32",
                               "reducing the gradients of %s in bf16 is not possible",
                               PRECISION_NAMES[training->precision]);
    if (training->precision != PRECISION_FP32)
        flag_switch(flags, bf16 ? "--grad-reduce-in-bf16" : "--accumulate-allreduce-grads-in-fp32");
    if (training->optimizer_precision == PRECISION_BF16) {
        if (plan->zero_stage == 0)
            return megatron_refuse(scenario, "training.optimizer_dtype", "fp32, or zero_stage 1",
                                   "bf16 moments need the distributed optimizer");
        flag_switch(flags, "--use-precision-aware-optimizer");
        flag_text(flags, "--exp-avg-dtype", "bf16");
        flag_text(flags, "--exp-avg-sq-dtype", "bf16");
    }
    if (training->optimizer == OPTIMIZER_SGD) flag_text(flags, "--optimizer", "sgd");
    if (training->optimizer == OPTIMIZER_MUON) {
        if (plan->zero_stage != 0)
            return megatron_refuse(scenario, "parallel.zero_stage", "0",
                                   "Muon cannot be sharded over data-parallel ranks");
        flag_text(flags, "--optimizer", "muon");
        flag_text(flags, "--ckpt-format", "torch");
    }
    return status_ok();
}

static Status graph_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    int graphs = scenario->training.cuda_graphs;
    if (graphs == GRAPH_NONE) return status_ok();
    if (plan->recompute == RECOMPUTE_FULL)
        return megatron_refuse(scenario, "training.cuda_graphs", "recompute selective or none",
                               "graphs with full recomputation are not possible");
    if (graphs == GRAPH_FULL) {
        flag_text(flags, "--cuda-graph-impl", "local");
        flag_text(flags, "--cuda-graph-scope", "full_iteration");
        flag_switch(flags, "--no-check-for-nan-in-loss-and-grad");
    } else if (graphs == GRAPH_LAYER || graphs == GRAPH_ATTN) {
        flag_text(flags, "--cuda-graph-impl", "transformer_engine");
        flag_text(flags, "--cuda-graph-scope", graphs == GRAPH_LAYER ? "full" : "attn");
    } else {
        return megatron_refuse(scenario, "training.cuda_graphs", "attn",
                               "graphs of the router have no flag in this version");
    }
    flag_switch(flags, "--te-rng-tracker");
    return status_ok();
}

static void kernel_flags(const Scenario *scenario, FlagList *flags) {
    const Training *training = &scenario->training;
    bool plain = scenario->model.attention == ATTENTION_GQA && !scenario->model.attention_sinks;
    // Latent attention and sinks: Transformer Engine takes the kernel that can do them.
    const char *backend = training->attention == ATTENTION_UNFUSED ? "unfused"
                          : plain                                  ? "flash"
                                                                   : "auto";
    flag_text(flags, "--attention-backend", backend);
    if (training->cross_entropy_fused) {
        flag_switch(flags, "--cross-entropy-loss-fusion");
        flag_text(flags, "--cross-entropy-fusion-impl", "te");
    }
}

Status megatron_training_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    if (!scenario->training.causal)
        return megatron_refuse(scenario, "training.causal", "true",
                               "pretrain_gpt.py trains causal models");
    if (scenario->training.compile)
        return megatron_refuse(scenario, "training.compile", "false",
                               "compiling the whole model has no flag");
    if (scenario->training.optimizer_post_validation)
        return megatron_refuse(scenario, "training.optimizer_post_validation", "false",
                               "looking at the gradient norm after the step has no flag");
    flag_int(flags, "--micro-batch-size", plan->micro_batch);
    flag_int(flags, "--global-batch-size", scenario->training.global_batch);
    flag_raw(flags, "--train-iters", "\"$TRAIN_ITERS\"");
    flag_raw(flags, "--lr", "\"$LR\"");
    flag_raw(flags, "--eval-interval", "\"$EVAL_INTERVAL\"");
    flag_raw(flags, "--eval-iters", "\"$EVAL_ITERS\"");
    flag_int(flags, "--log-interval", 1);
    flag_switch(flags, "--log-throughput");
    TRY(precision_flags(scenario, flags));
    TRY(reduction_flags(scenario, plan, flags));
    TRY(graph_flags(scenario, plan, flags));
    kernel_flags(scenario, flags);
    return status_ok();
}
