// The whole configuration, and the task that reads it.
#include "launch/titan.h"

#include <string.h>

#define CONFIG_FILE "torchtitan.toml"

static Status recompute_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    static const char *const modes[] = {
        [RECOMPUTE_NONE] = "none", [RECOMPUTE_SELECTIVE] = "selective", [RECOMPUTE_FULL] = "full"};
    if (plan->layer_recompute)
        return titan_refuse(scenario, "parallel.layers", "recompute for all layers alike",
                            "layers that are recomputed differently have no key");
    if (plan->recompute != RECOMPUTE_NONE && plan->recompute_layers != ABSENT)
        return titan_refuse(scenario, "parallel.recompute_layers", "all layers, or recompute none",
                            "recomputation of %d layers a stage has no key",
                            plan->recompute_layers);
    if (plan->recompute == RECOMPUTE_SELECTIVE && plan->recompute_modules != 0)
        return titan_refuse(scenario, "parallel.recompute_modules", "selective without modules",
                            "recomputation by module has no key");
    key_text(keys, "activation_checkpoint", "mode", modes[plan->recompute]);
    if (plan->recompute == RECOMPUTE_SELECTIVE)
        key_text(keys, "activation_checkpoint", "selective_ac_option", "op");
    return status_ok();
}

static Status fp8_keys(const Scenario *scenario, KeyList *keys) {
    int recipe = scenario->training.fp8_recipe;
    const char *name = recipe == FP8_TENSORWISE || recipe == FP8_CURRENT ? "tensorwise"
                       : recipe == FP8_ROWWISE                           ? "rowwise"
                                                                         : NULL;
    if (!name)
        return titan_refuse(scenario, "training.fp8_recipe", "tensorwise or rowwise",
                            "%s has no key", FP8_RECIPE_NAMES[recipe]);
    key_list(keys, "model", "converters", "[\"float8\"]");
    key_text(keys, "float8", "recipe_name", name);
    key_list(keys, "float8", "filter_fqns", "[\"output\"]");
    return status_ok();
}

static Status precision_keys(const Scenario *scenario, KeyList *keys) {
    const Training *training = &scenario->training;
    int precision = training->precision;
    if (precision == PRECISION_FP8) TRY(fp8_keys(scenario, keys));
    if (precision == PRECISION_MXFP8) {
        key_list(keys, "model", "converters", "[\"mx\"]");
        key_text(keys, "mx", "recipe_name", "mxfp8_cublas");
        key_list(keys, "mx", "filter_fqns", "[\"output\"]");
    }
    if (precision != PRECISION_BF16 && precision != PRECISION_FP32 && precision != PRECISION_FP8 &&
        precision != PRECISION_MXFP8)
        return titan_refuse(scenario, "training.precision", "bf16", "%s has no key",
                            PRECISION_NAMES[precision]);
    if (training->grad_reduce_precision != PRECISION_FP32)
        return titan_refuse(scenario, "training.grad_reduce_dtype", "fp32",
                            "reducing gradients in bf16 has no key");
    key_text(keys, "training", "mixed_precision_param",
             precision == PRECISION_FP32 ? "float32" : "bfloat16");
    key_text(keys, "training", "mixed_precision_reduce", "float32");
    return status_ok();
}

// What torchtitan always or never does.
static Status switches_check(const Scenario *scenario, const Plan *plan) {
    const Training *t = &scenario->training;
    bool sharded = plan->zero_stage >= 2 && plan->dp * plan->cp > 1;
    if (t->optimizer != OPTIMIZER_ADAM)
        return titan_refuse(scenario, "training.optimizer", "adam", "%s has no key",
                            OPTIMIZER_NAMES[t->optimizer]);
    if (t->optimizer_precision != PRECISION_FP32)
        return titan_refuse(scenario, "training.optimizer_dtype", "fp32",
                            "bf16 moments have no "
                            "key");
    if (t->attention != ATTENTION_FLASH)
        return titan_refuse(scenario, "training.attention", "flash",
                            "unfused attention has no key");
    if (t->cuda_graphs != GRAPH_NONE)
        return titan_refuse(scenario, "training.cuda_graphs", "none", "CUDA graphs have no key");
    if (!t->causal)
        return titan_refuse(scenario, "training.causal", "true", "it trains causal models");
    if (t->optimizer_post_validation)
        return titan_refuse(scenario, "training.optimizer_post_validation", "false",
                            "looking at the gradient norm after the step has no key");
    if (sharded && (!t->overlap_grad_reduce || !t->overlap_param_gather))
        return titan_refuse(scenario,
                            t->overlap_grad_reduce ? "training.overlap_param_gather"
                                                   : "training.overlap_grad_reduce",
                            "true", "FSDP2 always overlaps");
    if (t->cross_entropy_fused && !t->compile)
        return titan_refuse(scenario, "training.cross_entropy_fused", "compile true",
                            "a fused loss is a compiled one");
    return status_ok();
}

static void batch_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    long long local = plan->micro_batch;
    if (plan->pp > 1) local *= plan->num_microbatches;
    key_int(keys, "training", "local_batch_size", local);
    key_int(keys, "training", "global_batch_size", scenario->training.global_batch);
    key_int(keys, "training", "seq_len", scenario->training.seq_len);
    key_bool(keys, "training", "compile", scenario->training.compile);
}

Status titan_config(const Scenario *scenario, const Plan *plan, KeyList *keys, LaunchTask *notes) {
    if (strcmp(scenario->training.stack.name, "torchtitan") != 0)
        return titan_refuse(scenario, "training.stack", "torchtitan",
                            "the plan was priced for %s%s", scenario->training.stack.name,
                            task_other_target(scenario));
    key_text(keys, "job", "description", plan_describe(plan, keys->arena));
    key_int(keys, "metrics", "log_freq", 1);
    key_text(keys, "optimizer", "name", "AdamW");
    key_text(keys, "optimizer", "implementation", "fused");
    TRY(titan_model_keys(scenario, keys));
    TRY(switches_check(scenario, plan));
    batch_keys(scenario, plan, keys);
    TRY(precision_keys(scenario, keys));
    TRY(titan_parallel_keys(scenario, plan, keys));
    TRY(titan_pipeline_keys(scenario, plan, keys));
    TRY(recompute_keys(scenario, plan, keys));
    if (scenario->training.compile && !scenario->training.cross_entropy_fused)
        task_add_note(notes, keys->arena,
                      "training.compile also compiles the loss, which the plan prices unfused: "
                      "state cross_entropy_fused to have it priced so.");
    task_add_note(notes, keys->arena,
                  "Learning rate, its schedule, initialisation and data are torchtitan's defaults "
                  "or yours to set.");
    return status_ok();
}

static const char *config_text(const KeyList *keys) {
    Script script = {.arena = keys->arena};
    script_comment(&script, "For pytorch/torchtitan, " TITAN_VERSION ". Written by "
                            "meshwright " MESHWRIGHT_VERSION ".");
    keys_write_toml(&script, keys);
    return script.text;
}

Status titan_task(const Scenario *scenario, const Plan *plan, Arena *arena, LaunchTask *out) {
    static const char settings[] =
        "# Folder in which outputs and checkpoints are written.\n"
        "OUTPUT_DIR=${OUTPUT_DIR:-./outputs}\n"
        "# DATASET and DATASET_PATH: c4_test is bundled, which is enough to measure the speed.\n"
        "DATASET=${DATASET:-c4_test}\n"
        "DATASET_PATH=${DATASET_PATH:-}\n"
        "# TOKENIZER_PATH: the folder of your tokenizer. Empty takes torchtitan's own small one.\n"
        "TOKENIZER_PATH=${TOKENIZER_PATH:-}\n"
        "# Length and learning rate of the training: placeholders.\n"
        "STEPS=${STEPS:-100}\n"
        "LR=${LR:-3e-4}\n";
    static const char arguments[] =
        "ARGS=(\n"
        "    --job.config_file \"$LAUNCH_DIR/" CONFIG_FILE "\"\n"
        "    --job.dump_folder \"$OUTPUT_DIR\"\n"
        "    --training.dataset \"$DATASET\"\n"
        "    --training.steps \"$STEPS\"\n"
        "    --optimizer.lr \"$LR\"\n"
        ")\n"
        "if [ -n \"$DATASET_PATH\" ]; then ARGS+=(--training.dataset_path \"$DATASET_PATH\"); fi\n"
        "if [ -n \"$TOKENIZER_PATH\" ]; then ARGS+=(--model.tokenizer_path \"$TOKENIZER_PATH\"); "
        "fi\n";
    KeyList keys = {.arena = arena, .rows = TITAN_KEYS};
    *out = (LaunchTask){.software = "pytorch/torchtitan, " TITAN_VERSION,
                        .settings = settings,
                        .arguments = arguments,
                        .program = "-m torchtitan.train"};
    TRY(titan_config(scenario, plan, &keys, out));
    out->files[out->num_files++] = (LaunchFile){CONFIG_FILE, config_text(&keys), false};
    task_add_variable(out, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
                      "The allocator's blocks grow, so that little memory is lost between them.");
    return status_ok();
}
