#include "launch/deepspeed.h"

#include "launch/megatron.h"

#include <string.h>

static void activation_flags(const Scenario *scenario, FlagList *flags) {
    const cJSON *item = megatron_model_key(scenario, "hidden_act", flags->arena);
    const char *name = cJSON_IsString(item) ? item->valuestring : "";
    if (model_ffn(&scenario->model)->gated)
        flag_switch(flags, "--swiglu");
    else if (strcmp(name, "relu2") == 0)
        flag_switch(flags, "--squared-relu");
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
    if (model->functions.rotary_frac < 1)
        flag_number(flags, "--rotary-percent", model->functions.rotary_frac);
}

void deepspeed_model_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    const Mixer *mixer = model_mixer(model);
    const FeedForward *ffn = model_ffn(model);
    bool rms = model->norm == NORM_RMSNORM;
    flag_int(flags, "--num-layers", model->num_layers);
    flag_int(flags, "--hidden-size", model->hidden_size);
    flag_int(flags, "--ffn-hidden-size", ffn->intermediate_size);
    flag_int(flags, "--num-attention-heads", mixer->num_heads);
    if (mixer->num_kv_heads != mixer->num_heads)
        flag_int(flags, "--num-key-value-heads", mixer->num_kv_heads);
    flag_int(flags, "--kv-channels", mixer->head_dim);
    flag_int(flags, "--seq-length", scenario->training.seq_len);
    flag_int(flags, "--vocab-size", model->vocab_size);
    position_flags(scenario, flags);
    flag_text(flags, "--normalization", rms ? "rmsnorm" : "layernorm");
    double epsilon = megatron_norm_epsilon(scenario, flags->arena);
    if (epsilon > 0) flag_number(flags, "--layernorm-epsilon", epsilon);
    activation_flags(scenario, flags);
    if (!ffn->bias) flag_switch(flags, "--disable-bias-linear");
    if (!model->tie_word_embeddings) flag_switch(flags, "--untie-embeddings-and-output-weights");
    if (!scenario->execution.stack.training.dropout) {
        flag_int(flags, "--attention-dropout", 0);
        flag_int(flags, "--hidden-dropout", 0);
    }
}

// DeepSpeed splits a pipeline into equal numbers of layers ("type:transformer").
static void pipeline_flags(const Plan *plan, FlagList *flags) {
    if (plan->pp == 1) {
        flag_switch(flags, "--no-pipeline-parallel");
        return;
    }
    flag_int(flags, "--pipeline-model-parallel-size", plan->pp);
    const char *flag = schedule_find(plan->schedule)->megatron_deepspeed_flag;
    if (flag) flag_switch(flags, flag);
}

static void degree_flags(const Plan *plan, FlagList *flags) {
    flag_int(flags, "--tensor-model-parallel-size", plan->tp);
    if (plan->tp > 1 && plan->sequence_parallel) flag_switch(flags, "--sequence-parallel");
    if (plan->cp > 1) flag_int(flags, "--ds-sequence-parallel-size", plan->cp);
    flag_int(flags, "--zero-stage", plan->zero_stage);
}

static void recompute_flags(const Plan *plan, FlagList *flags) {
    if (plan->recompute == RECOMPUTE_NONE) return;
    flag_switch(flags, "--checkpoint-activations");
    flag_int(flags, "--checkpoint-num-layers", 1);
    flag_switch(flags, "--deepspeed-activation-checkpointing");
}

static void training_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    const Execution *execution = &scenario->execution;
    const TrainingJob *t = &scenario->training;
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
    if (execution->precision == PRECISION_BF16) flag_switch(flags, "--bf16");
    if (execution->precision == PRECISION_FP16) flag_switch(flags, "--fp16");
    if (execution->attention == ATTENTION_FLASH) flag_switch(flags, "--use-flash-attn-v2");
}

void deepspeed_plan_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    degree_flags(plan, flags);
    pipeline_flags(plan, flags);
    recompute_flags(plan, flags);
    training_flags(scenario, plan, flags);
}

void deepspeed_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    const Execution *execution = &scenario->execution;
    const TrainingJob *t = &scenario->training;
    const char *reduce = execution->grad_reduce_precision == PRECISION_BF16 ? "bf16" : "fp32";
    key_int(keys, "", "train_batch_size", t->global_batch);
    key_int(keys, "", "train_micro_batch_size_per_gpu", plan->micro_batch);
    key_int(keys, "", "gradient_accumulation_steps", plan->num_microbatches);
    key_float(keys, "", "gradient_clipping", 1);
    key_int(keys, "", "steps_per_print", 1);
    key_text(keys, "", "communication_data_type", reduce);
    key_int(keys, "zero_optimization", "stage", plan->zero_stage);
    if (plan->zero_stage > 0) {
        key_bool(keys, "zero_optimization", "overlap_comm", execution->overlap_grad_reduce);
        key_bool(keys, "zero_optimization", "contiguous_gradients", true);
    }
    if (execution->precision == PRECISION_FP16) key_bool(keys, "fp16", "enabled", true);
    if (execution->precision == PRECISION_BF16) {
        key_bool(keys, "bf16", "enabled", true);
        key_text(keys, "data_types", "grad_accum_dtype", reduce);
    }
}
