#include "launch/deepspeed.h"

#include "launch/megatron.h"
#include "launch/task.h"
#include "plan/rank_place.h"

#include <stdarg.h>
#include <string.h>

Status deepspeed_refuse(const Scenario *scenario, const char *path, const char *nearest,
                        const char *format, ...) {
    va_list args;
    va_start(args, format);
    const Status status = task_refuse(scenario, "Megatron-DeepSpeed", path, nearest, format, args);
    va_end(args);
    return status;
}

// What of a model its pretrain_gpt.py cannot build; NULL: nothing.
static const char *model_lacks(const Model *model) {
    bool windowed = false;
    for (int k = 0; k < model->num_kinds; k++) windowed |= model->kinds[k].window > 0;
    if (model->num_experts > 0) return "experts as they are priced (it has GShard's)";
    if (model->attention == ATTENTION_MLA) return "latent attention";
    if (model->num_mtp_layers > 0) return "multi-token prediction";
    if (model->qk_norm) return "norms on query and key";
    if (model->attention_sinks) return "attention sinks";
    if (windowed) return "sliding windows";
    if (model->embedding_norm) return "a norm after the embedding";
    if (model->parallel_residual) return "a parallel residual";
    if (model->norms_per_layer != 2 || !model->final_norm) return "another number of norms";
    if (model->lm_head_bias) return "a bias in the output head";
    if (model->position == POSITION_ALIBI) return "ALiBi positions";
    if (model->qkv_bias != model->mlp_bias || model->attention_out_bias != model->mlp_bias)
        return "biases in only some linear layers";
    return NULL;
}

static Status activation_flags(const Scenario *scenario, FlagList *flags) {
    const cJSON *item = megatron_model_key(scenario, "hidden_act", flags->arena);
    const char *name = cJSON_IsString(item) ? item->valuestring : NULL;
    bool gated = scenario->model.gated_mlp;
    if (!name) name = gated ? "silu" : "gelu";
    if (gated && strcmp(name, "silu") == 0)
        flag_switch(flags, "--swiglu");
    else if (!gated && strcmp(name, "relu2") == 0)
        flag_switch(flags, "--squared-relu");
    else if (gated || strncmp(name, "gelu", 4) != 0)
        return deepspeed_refuse(scenario, "model.hidden_act", gated ? "silu" : "gelu or relu2",
                                "\"%.40s\" has no flag", name);
    return status_ok();
}

static void position_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    int longest = model->max_position_embeddings;
    if (longest < scenario->training.seq_len) longest = (int)scenario->training.seq_len;
    flag_int(flags, "--max-position-embeddings", longest);
    if (model->position == POSITION_NONE) flag_switch(flags, "--no-position-embedding");
    if (model->position != POSITION_ROPE) return;
    double base = megatron_model_number(
        scenario, "rope_theta", flags->arena,
        megatron_model_number(scenario, "rotary_emb_base", flags->arena, 10000));
    flag_switch(flags, "--use-rotary-position-embeddings");
    flag_int(flags, "--rotary-position-embeddings-theta", (long long)base);
}

Status deepspeed_model_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    const char *lacks = model_lacks(model);
    bool rms = model->norm == NORM_RMSNORM;
    if (lacks)
        return status_at(STATUS_INVALID, scenario->file, "model",
                         "Megatron-DeepSpeed's GPT lacks %s, which this model has; nearest: --for "
                         "megatron",
                         lacks);
    flag_int(flags, "--num-layers", model->num_layers);
    flag_int(flags, "--hidden-size", model->hidden_size);
    flag_int(flags, "--ffn-hidden-size", model->intermediate_size);
    flag_int(flags, "--num-attention-heads", model->num_heads);
    if (model->num_kv_heads != model->num_heads)
        flag_int(flags, "--num-key-value-heads", model->num_kv_heads);
    flag_int(flags, "--kv-channels", model->head_dim);
    flag_int(flags, "--seq-length", scenario->training.seq_len);
    position_flags(scenario, flags);
    flag_text(flags, "--normalization", rms ? "rmsnorm" : "layernorm");
    double epsilon = megatron_norm_epsilon(scenario, flags->arena);
    if (epsilon > 0) flag_number(flags, "--layernorm-epsilon", epsilon);
    TRY(activation_flags(scenario, flags));
    if (!model->mlp_bias) flag_switch(flags, "--disable-bias-linear");
    if (!model->tie_word_embeddings) flag_switch(flags, "--untie-embeddings-and-output-weights");
    if (!scenario->training.stack.dropout) {
        flag_int(flags, "--attention-dropout", 0);
        flag_int(flags, "--hidden-dropout", 0);
    }
    return status_ok();
}

// DeepSpeed splits a pipeline into equal numbers of layers ("type:transformer").
static Status pipeline_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    if (plan->pp == 1) {
        flag_switch(flags, "--no-pipeline-parallel");
        return plan->vpp == 1 ? status_ok()
                              : deepspeed_refuse(scenario, "parallel.vpp", "1",
                                                 "vpp %d has no flag", plan->vpp);
    }
    bool zero_bubble = plan->schedule == SCHEDULE_ZB_H1;
    if (plan->vpp > 1 || (plan->schedule != SCHEDULE_1F1B && !zero_bubble))
        return deepspeed_refuse(scenario, "parallel.schedule", "1f1b or zb-h1", "%s has no flag",
                                plan_schedule_name(plan));
    if (plan->vocab_barriers)
        return deepspeed_refuse(scenario, "parallel.vocab_parallel", "false",
                                "a vocabulary spread over stages has no flag");
    if (plan->zero_stage > 1)
        return deepspeed_refuse(scenario, "parallel.zero_stage", "1, or pp 1",
                                "stage %d with pp %d is not possible", plan->zero_stage, plan->pp);
    if (zero_bubble && plan->sequence_parallel && plan->tp > 1)
        return deepspeed_refuse(scenario, "parallel.schedule", "1f1b, or sequence_parallel false",
                                "zb-h1 with sequence parallelism is not possible");
    for (int c = 1; c < plan->num_chunks; c++)
        if (plan->chunks[c].num_layers != plan->chunks[0].num_layers || plan->chunks[c].embedding ||
            plan->chunks[c - 1].loss)
            return deepspeed_refuse(scenario, "parallel.stages", "a pp that divides the layers",
                                    "stages of unequal layers have no flag");
    flag_int(flags, "--pipeline-model-parallel-size", plan->pp);
    if (zero_bubble) flag_switch(flags, "--enable-zbh1-pipeline");
    return status_ok();
}

static Status degree_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    bool sequence = plan->tp > 1 && plan->sequence_parallel;
    if (plan_stages_alternate(plan))
        return deepspeed_refuse(scenario, "parallel.order", "tp-cp-ep-dp-pp",
                                "order %s has no flag", PLAN_ORDER_NAMES[plan->order]);
    flag_int(flags, "--tensor-model-parallel-size", plan->tp);
    if (sequence) flag_switch(flags, "--sequence-parallel");
    if (plan->cp > 1) {
        if (plan->cp_method != CP_ULYSSES)
            return deepspeed_refuse(scenario, "parallel.cp_method", "ulysses", "%s has no flag",
                                    CP_METHOD_NAMES[plan->cp_method]);
        if (plan->pp > 1 || sequence)
            return deepspeed_refuse(scenario, "parallel.cp", "1, or pp 1 without sequence_parallel",
                                    "ulysses over cp %d beside pp %d%s is not possible", plan->cp,
                                    plan->pp, sequence ? " and sequence parallelism" : "");
        flag_int(flags, "--ds-sequence-parallel-size", plan->cp);
    }
    if (plan->zero_stage > 0 && plan->zero_group != plan->dp * plan->cp)
        return deepspeed_refuse(scenario, "parallel.zero_group", "all of dp x cp",
                                "shards over %d of %d ranks have no flag", plan->zero_group,
                                plan->dp * plan->cp);
    if (plan->zero_stage == 3 && !plan->reshard_after_forward)
        return deepspeed_refuse(scenario, "parallel.reshard_after_forward", "true",
                                "keeping gathered weights after the forward has no key");
    flag_int(flags, "--zero-stage", plan->zero_stage);
    return status_ok();
}

static Status recompute_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    if (plan->layer_recompute ||
        (plan->recompute == RECOMPUTE_FULL && plan->recompute_layers != ABSENT))
        return deepspeed_refuse(scenario, "parallel.recompute_layers", "recompute for all layers",
                                "recomputation of some layers has no flag");
    if (plan->recompute == RECOMPUTE_SELECTIVE)
        return deepspeed_refuse(scenario, "parallel.recompute", "full or none",
                                "selective has no flag");
    if (plan->recompute == RECOMPUTE_NONE) return status_ok();
    flag_switch(flags, "--checkpoint-activations");
    flag_int(flags, "--checkpoint-num-layers", 1);
    flag_switch(flags, "--deepspeed-activation-checkpointing");
    return status_ok();
}

static Status training_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    const Training *t = &scenario->training;
    if (t->precision != PRECISION_BF16 && t->precision != PRECISION_FP16 &&
        t->precision != PRECISION_FP32)
        return deepspeed_refuse(scenario, "training.precision", "bf16", "%s has no flag",
                                PRECISION_NAMES[t->precision]);
    if (t->optimizer == OPTIMIZER_MUON)
        return deepspeed_refuse(scenario, "training.optimizer", "adam", "muon has no flag");
    if (t->optimizer_precision != PRECISION_FP32)
        return deepspeed_refuse(scenario, "training.optimizer_dtype", "fp32",
                                "bf16 moments have no flag");
    if (t->compile || t->cross_entropy_fused || t->cuda_graphs != GRAPH_NONE ||
        t->tp_comm_overlap || t->optimizer_post_validation || !t->causal)
        return deepspeed_refuse(scenario, "training",
                                "none of compile, cross_entropy_fused, cuda_graphs, "
                                "tp_comm_overlap, optimizer_post_validation; causal true",
                                "one of these switches has no flag");
    flag_switch(flags, "--deepspeed");
    flag_raw(flags, "--deepspeed_config", "\"$LAUNCH_DIR/ds_config.json\"");
    flag_int(flags, "--micro-batch-size", plan->micro_batch);
    flag_int(flags, "--global-batch-size", t->global_batch);
    flag_raw(flags, "--train-iters", "\"$TRAIN_ITERS\"");
    flag_raw(flags, "--lr", "\"$LR\"");
    flag_raw(flags, "--eval-interval", "\"$EVAL_INTERVAL\"");
    flag_raw(flags, "--eval-iters", "\"$EVAL_ITERS\"");
    flag_int(flags, "--log-interval", 1);
    flag_text(flags, "--optimizer", OPTIMIZER_NAMES[t->optimizer]);
    if (t->precision == PRECISION_BF16) flag_switch(flags, "--bf16");
    if (t->precision == PRECISION_FP16) flag_switch(flags, "--fp16");
    if (t->attention == ATTENTION_FLASH) flag_switch(flags, "--use-flash-attn-v2");
    return status_ok();
}

Status deepspeed_plan_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    TRY(degree_flags(scenario, plan, flags));
    TRY(pipeline_flags(scenario, plan, flags));
    TRY(recompute_flags(scenario, plan, flags));
    return training_flags(scenario, plan, flags);
}

Status deepspeed_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    const Training *t = &scenario->training;
    const char *reduce = t->grad_reduce_precision == PRECISION_BF16 ? "bf16" : "fp32";
    if (t->overlap_param_gather && plan->zero_stage > 0 && plan->zero_stage < 3)
        return deepspeed_refuse(scenario, "training.overlap_param_gather", "false",
                                "gathering weights during the forward has no key");
    key_int(keys, "", "train_batch_size", t->global_batch);
    key_int(keys, "", "train_micro_batch_size_per_gpu", plan->micro_batch);
    key_int(keys, "", "gradient_accumulation_steps", plan->num_microbatches);
    key_float(keys, "", "gradient_clipping", 1);
    key_int(keys, "", "steps_per_print", 1);
    key_text(keys, "", "communication_data_type", reduce);
    key_int(keys, "zero_optimization", "stage", plan->zero_stage);
    if (plan->zero_stage > 0) {
        key_bool(keys, "zero_optimization", "overlap_comm", t->overlap_grad_reduce);
        key_bool(keys, "zero_optimization", "contiguous_gradients", true);
    } else if (t->overlap_grad_reduce) {
        return deepspeed_refuse(scenario, "training.overlap_grad_reduce", "false, or zero_stage 1",
                                "overlap without sharding has no key");
    }
    if (t->precision == PRECISION_FP16) key_bool(keys, "fp16", "enabled", true);
    if (t->precision == PRECISION_BF16) {
        key_bool(keys, "bf16", "enabled", true);
        key_text(keys, "data_types", "grad_accum_dtype", reduce);
    }
    return status_ok();
}
