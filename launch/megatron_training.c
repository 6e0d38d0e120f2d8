// Batch, precision, optimizer, kernels.
#include "launch/megatron.h"

static void fp8_flags(const Execution *execution, FlagList *flags) {
    static const char *const recipes[NUM_FP8_RECIPES][2] = {
        [FP8_DELAYED] = {"hybrid", "delayed"},
        [FP8_CURRENT] = {"hybrid", "tensorwise"},
        [FP8_TENSORWISE] = {"hybrid", "tensorwise"},
        [FP8_BLOCK] = {"e4m3", "blockwise"},
        [FP8_MXFP8] = {"e4m3", "mxfp8"},
    };
    flag_text(flags, "--fp8-format", recipes[execution->fp8_recipe][0]);
    flag_text(flags, "--fp8-recipe", recipes[execution->fp8_recipe][1]);
}

static void precision_flags(const Execution *execution, FlagList *flags) {
    const int precision = execution->precision;
    if (precision == PRECISION_FP32) return;
    flag_switch(flags, precision == PRECISION_FP16 ? "--fp16" : "--bf16");
    if (precision == PRECISION_FP8 || precision == PRECISION_MXFP8) fp8_flags(execution, flags);
    if (precision != PRECISION_NVFP4) return;
    flag_text(flags, "--fp4-format", "e2m1");
    flag_text(flags, "--fp4-recipe", "nvfp4");
}

static void reduction_flags(const Execution *execution, FlagList *flags) {
    bool bf16 = execution->grad_reduce_precision == PRECISION_BF16;
    if (execution->precision != PRECISION_FP32)
        flag_switch(flags, bf16 ? "--grad-reduce-in-bf16" : "--accumulate-allreduce-grads-in-fp32");
    if (execution->optimizer_precision == PRECISION_BF16) {
        flag_switch(flags, "--use-precision-aware-optimizer");
        flag_text(flags, "--exp-avg-dtype", "bf16");
        flag_text(flags, "--exp-avg-sq-dtype", "bf16");
    }
}

static void optimizer_flags(int optimizer, FlagList *flags) {
    if (optimizer == OPTIMIZER_SGD) flag_text(flags, "--optimizer", "sgd");
    if (optimizer == OPTIMIZER_MUON) {
        flag_text(flags, "--optimizer", "muon");
        flag_text(flags, "--ckpt-format", "torch");
    }
}

static void graph_flags(const Execution *execution, FlagList *flags) {
    const int graphs = execution->cuda_graphs;
    if (graphs == GRAPH_NONE) return;
    if (graphs == GRAPH_FULL) {
        flag_text(flags, "--cuda-graph-impl", "local");
        flag_text(flags, "--cuda-graph-scope", "full_iteration");
        flag_switch(flags, "--no-check-for-nan-in-loss-and-grad");
    } else {
        flag_text(flags, "--cuda-graph-impl", "transformer_engine");
        flag_text(flags, "--cuda-graph-scope", graphs == GRAPH_LAYER ? "full" : "attn");
    }
    flag_switch(flags, "--te-rng-tracker");
}

static void kernel_flags(const Scenario *scenario, FlagList *flags) {
    const Execution *execution = &scenario->execution;
    bool plain = model_mixer(&scenario->model)->kind == MIXER_ATTENTION &&
                 !model_mixer(&scenario->model)->sinks;
    // Latent attention and sinks: Transformer Engine takes the kernel that can do them.
    const char *backend = execution->attention == ATTENTION_UNFUSED ? "unfused"
                          : plain                                   ? "flash"
                                                                    : "auto";
    flag_text(flags, "--attention-backend", backend);
    if (execution->cross_entropy_fused) {
        flag_switch(flags, "--cross-entropy-loss-fusion");
        flag_text(flags, "--cross-entropy-fusion-impl", "te");
    }
}

void megatron_training_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    flag_int(flags, "--micro-batch-size", plan->micro_batch);
    flag_int(flags, "--global-batch-size", scenario->training.global_batch);
    flag_raw(flags, "--train-iters", "\"$TRAIN_ITERS\"");
    flag_raw(flags, "--lr", "\"$LR\"");
    flag_raw(flags, "--eval-interval", "\"$EVAL_INTERVAL\"");
    flag_raw(flags, "--eval-iters", "\"$EVAL_ITERS\"");
    flag_int(flags, "--log-interval", 1);
    flag_switch(flags, "--log-throughput");
    precision_flags(&scenario->execution, flags);
    reduction_flags(&scenario->execution, flags);
    optimizer_flags(scenario->training.optimizer, flags);
    graph_flags(&scenario->execution, flags);
    kernel_flags(scenario, flags);
}
