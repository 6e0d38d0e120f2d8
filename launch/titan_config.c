// The whole configuration, and the task that reads it.
#include "launch/titan.h"

#include "launch/plan_lines.h"

#define CONFIG_FILE "torchtitan.toml"

static void recompute_keys(const Plan *plan, KeyList *keys) {
    static const char *const modes[] = {
        [RECOMPUTE_NONE] = "none", [RECOMPUTE_SELECTIVE] = "selective", [RECOMPUTE_FULL] = "full"};
    key_text(keys, "activation_checkpoint", "mode", modes[plan->recompute]);
    if (plan->recompute == RECOMPUTE_SELECTIVE)
        key_text(keys, "activation_checkpoint", "selective_ac_option", "op");
}

static void precision_keys(const Execution *execution, KeyList *keys) {
    const int precision = execution->precision;
    if (precision == PRECISION_FP8) {
        key_list(keys, "model", "converters", "[\"float8\"]");
        key_text(keys, "float8", "recipe_name",
                 execution->fp8_recipe == FP8_ROWWISE ? "rowwise" : "tensorwise");
        key_list(keys, "float8", "filter_fqns", "[\"output\"]");
    }
    if (precision == PRECISION_MXFP8) {
        key_list(keys, "model", "converters", "[\"mx\"]");
        key_text(keys, "mx", "recipe_name", "mxfp8_cublas");
        key_list(keys, "mx", "filter_fqns", "[\"output\"]");
    }
    key_text(keys, "training", "mixed_precision_param",
             precision == PRECISION_FP32 ? "float32" : "bfloat16");
    key_text(keys, "training", "mixed_precision_reduce", "float32");
}

static void batch_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    long long local = plan->micro_batch;
    if (plan->pp > 1) local *= plan->num_microbatches;
    key_int(keys, "training", "local_batch_size", local);
    key_int(keys, "training", "global_batch_size", scenario->training.global_batch);
    key_int(keys, "training", "seq_len", scenario->training.seq_len);
    key_bool(keys, "training", "compile", scenario->execution.compile);
}

Status titan_config(const Scenario *scenario, const Plan *plan, KeyList *keys, LaunchTask *notes) {
    TRY(task_check_rules(scenario, plan, "torchtitan", "torchtitan", NULL, false, keys->arena));
    key_text(keys, "job", "description", plan_describe(plan, keys->arena));
    key_int(keys, "metrics", "log_freq", 1);
    key_text(keys, "optimizer", "name", "AdamW");
    key_text(keys, "optimizer", "implementation", "fused");
    TRY(titan_model_keys(scenario, keys));
    batch_keys(scenario, plan, keys);
    precision_keys(&scenario->execution, keys);
    titan_parallel_keys(scenario, plan, keys);
    titan_pipeline_keys(plan, keys);
    recompute_keys(plan, keys);
    task_add_note(notes, keys->arena,
                  "Learning rate, its schedule, initialisation and data are torchtitan's defaults "
                  "or yours to set.");
    return status_ok();
}

static const char *config_text(const Scenario *scenario, const Plan *plan, const KeyList *keys) {
    Script script = {.arena = keys->arena};
    script_comment(&script, "For pytorch/torchtitan, " TITAN_VERSION ". Written by "
                            "meshwright " MESHWRIGHT_VERSION ".");
    plan_lines_add(&script, scenario, plan);
    keys_write_toml(&script, keys);
    return script.text;
}

static Status titan_task(const Scenario *scenario, const Plan *plan, Arena *arena,
                         LaunchTask *out) {
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
    out->files[out->num_files++] =
        (LaunchFile){CONFIG_FILE, config_text(scenario, plan, &keys), false};
    task_add_variable(out, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
                      "The allocator's blocks grow, so that little memory is lost between them.");
    return status_ok();
}

const Target TARGET_TORCHTITAN = {
    .make = titan_task, .has_model = titan_has_model, .files = {CONFIG_FILE}};
