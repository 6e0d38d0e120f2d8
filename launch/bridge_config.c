// The whole configuration: keys of the flags, and what Megatron-LM's program sets by itself and the
// dataclasses of Megatron Bridge do not.
#include "launch/bridge.h"
#include "launch/task.h"

#include <string.h>

static const char *flag_value(const FlagList *flags, const char *name) {
    for (int i = 0; i < flags->num_flags; i++)
        if (strcmp(flags->flags[i].row->flag, name) == 0)
            return flags->flags[i].plain ? flags->flags[i].plain : "";
    return NULL;
}

// pretrain_gpt.py fuses by default what the dataclasses leave apart.
static void fusion_keys(const Scenario *scenario, const FlagList *flags, KeyList *keys) {
    const Model *model = &scenario->model;
    bool latent = mixer_is_latent(model_mixer(model)),
         gated = flag_value(flags, "--swiglu") != NULL;
    bool squared = flag_value(flags, "--squared-relu") != NULL;
    bool biased = !flag_value(flags, "--disable-bias-linear");
    if (!key_is_set(keys, "model", "activation_func"))
        key_text(keys, "model", "activation_func", "gelu");
    key_bool(keys, "model", "bias_activation_fusion", gated || (biased && !squared));
    if (!key_is_set(keys, "model", "bias_dropout_fusion"))
        key_bool(keys, "model", "bias_dropout_fusion", true);
    key_bool(keys, "model", "persist_layer_norm", true);
    key_bool(keys, "model", "apply_rope_fusion", model->position == POSITION_ROPE && !latent);
    if (!scenario->execution.cross_entropy_fused)
        key_bool(keys, "model", "cross_entropy_loss_fusion", false);
}

static void pipeline_keys(const Plan *plan, KeyList *keys) {
    bool interleaved = plan->pp > 1 && plan->vpp > 1;
    if (interleaved && !key_is_set(keys, "model", "virtual_pipeline_model_parallel_size"))
        key_int(keys, "model", "virtual_pipeline_model_parallel_size", plan->vpp);
    // As pretrain_gpt.py: messages overlap where there are chunks to overlap with.
    key_bool(keys, "model", "overlap_p2p_comm", interleaved);
    key_bool(keys, "model", "batch_p2p_comm", !interleaved);
}

static void precision_keys(const Scenario *scenario, KeyList *keys) {
    int precision = scenario->execution.precision;
    const char *type = precision == PRECISION_FP32   ? "float32"
                       : precision == PRECISION_FP16 ? "float16"
                                                     : "bfloat16";
    key_text(keys, "mixed_precision", "params_dtype", type);
    key_text(keys, "mixed_precision", "pipeline_dtype", type);
    // Gradients of fp32 weights are fp32; an imported fp16 command may reduce them as they are.
    if (!key_is_set(keys, "mixed_precision", "grad_reduce_in_fp32"))
        key_bool(keys, "mixed_precision", "grad_reduce_in_fp32", precision == PRECISION_FP32);
    if (precision == PRECISION_MXFP8 && key_is_set(keys, "mixed_precision", "fp8_param_gather"))
        key_bool(keys, "mixed_precision", "reuse_grad_buf_for_mxfp8_param_ag", true);
}

// Switches that are off where no flag says that they are on, and whose default may be on.
static void switch_keys(const Scenario *scenario, KeyList *keys) {
    static const struct {
        const char *section, *key;
        bool value;
    } switches[] = {
        {"model", "gated_linear_unit", false},
        {"model", "add_bias_linear", true},
        {"model", "share_embeddings_and_output_weights", true},
        {"model", "sequence_parallel", false},
        {"model", "tp_comm_overlap", false},
        {"ddp", "use_distributed_optimizer", false},
        {"optimizer", "use_distributed_optimizer", false},
        {"ddp", "overlap_grad_reduce", false},
        {"ddp", "overlap_param_gather", false},
        {"optimizer", "overlap_param_gather", false},
        {"ddp", "check_for_nan_in_grad", true},
    };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (!key_is_set(keys, switches[i].section, switches[i].key))
            key_bool(keys, switches[i].section, switches[i].key, switches[i].value);
    if (!key_is_set(keys, "optimizer", "optimizer"))
        key_text(keys, "optimizer", "optimizer", "adam");
    if (!key_is_set(keys, "checkpoint", "ckpt_format"))
        key_text(keys, "checkpoint", "ckpt_format", "torch_dist");
    if (!key_is_set(keys, "model", "pipeline_model_parallel_size"))
        key_int(keys, "model", "pipeline_model_parallel_size", 1);
    if (!key_is_set(keys, "model", "context_parallel_size"))
        key_int(keys, "model", "context_parallel_size", 1);
    key_int(keys, "model", "vocab_size", scenario->model.vocab_size);
    key_bool(keys, "model", "should_pad_vocab", true);
    key_int(keys, "dataset", "seq_length", scenario->training.seq_len);
    key_int(keys, "tokenizer", "vocab_size", scenario->model.vocab_size - 1);
}

Status bridge_config(const Scenario *scenario, const Plan *plan, const MegatronCommand *command,
                     KeyList *keys) {
    TRY(task_check_rules(scenario, plan, "Megatron Bridge", "megatron-core", "for-nemo", true,
                         keys->arena)); // those of the stack: megatron_command
    TRY(bridge_flag_keys(&command->flags, keys));
    fusion_keys(scenario, &command->flags, keys);
    pipeline_keys(plan, keys);
    precision_keys(scenario, keys);
    switch_keys(scenario, keys);
    return status_ok();
}
