// Megatron-DeepSpeed's command as a task.
#include "launch/deepspeed.h"
#include "launch/flags.h"
#include "launch/task.h"

static const char *arguments_text(const FlagList *flags) {
    Script script = {.arena = flags->arena};
    script_add(&script, "ARGS=(\n");
    flags_write(&script, flags);
    script_add(&script, "    # Data and checkpoints\n"
                        "    --data-path \"$DATA_PATH\"\n"
                        "    --split \"$DATA_SPLIT\"\n"
                        "    --tokenizer-type \"$TOKENIZER_TYPE\"\n"
                        "    --tokenizer-model \"$TOKENIZER_MODEL\"\n"
                        ")\n"
                        "if [ -n \"$CHECKPOINT_PATH\" ]; then\n"
                        "    ARGS+=(--save \"$CHECKPOINT_PATH\" --load \"$CHECKPOINT_PATH\"\n"
                        "        --save-interval \"$SAVE_INTERVAL\")\n"
                        "fi\n");
    return script.text;
}

// Its table says all: megatron-2021 is also what trained before DeepSpeed had it.
Status deepspeed_check(const Scenario *scenario, const Plan *plan, Arena *arena) {
    return task_check_rules(scenario, plan, "Megatron-DeepSpeed", "megatron-2021", "for-deepspeed",
                            true, arena);
}

static Status deepspeed_task(const Scenario *scenario, const Plan *plan, Arena *arena,
                             LaunchTask *out) {
    static const char settings[] =
        ": \"${MEGATRON_DEEPSPEED_PATH:?set it to your checkout of Megatron-DeepSpeed}\"\n"
        "# DATA_PATH: prefix of your indexed data; this version makes up none. TOKENIZER_MODEL: "
        "its tokenizer.\n"
        ": \"${DATA_PATH:?set it to the prefix of your data}\"\n"
        ": \"${TOKENIZER_MODEL:?set it to the tokenizer of your data}\"\n"
        "DATA_SPLIT=${DATA_SPLIT:-99,1,0}\n"
        "TOKENIZER_TYPE=${TOKENIZER_TYPE:-HFTokenizer}\n"
        "# CHECKPOINT_PATH: folder to save to and to resume from. Empty saves nothing.\n"
        "CHECKPOINT_PATH=${CHECKPOINT_PATH:-}\n"
        "SAVE_INTERVAL=${SAVE_INTERVAL:-500}\n"
        "# Length and learning rate of the training: placeholders.\n"
        "TRAIN_ITERS=${TRAIN_ITERS:-100}\n"
        "LR=${LR:-3e-4}\n"
        "EVAL_INTERVAL=${EVAL_INTERVAL:-1000}\n"
        "EVAL_ITERS=${EVAL_ITERS:-0}\n";
    FlagList flags = {.arena = arena, .rows = DEEPSPEED_FLAGS};
    KeyList keys = {.arena = arena, .rows = DEEPSPEED_KEYS};
    Script config = {.arena = arena};
    TRY(deepspeed_check(scenario, plan, arena));
    deepspeed_model_flags(scenario, &flags);
    deepspeed_plan_flags(scenario, plan, &flags);
    deepspeed_keys(scenario, plan, &keys);
    keys_write_json(&config, &keys);
    *out = (LaunchTask){.software = "deepspeedai/Megatron-DeepSpeed, " DEEPSPEED_VERSION,
                        .settings = settings,
                        .arguments = arguments_text(&flags),
                        .program = "\"$MEGATRON_DEEPSPEED_PATH/pretrain_gpt.py\"",
                        .needs = "MEGATRON_DEEPSPEED_PATH",
                        .needs_in_container = "/opt/Megatron-DeepSpeed",
                        .files = {{"ds_config.json", config.text, false}},
                        .num_files = 1};
    task_add_note(out, arena,
                  "Initialisation, schedule of the learning rate and weight decay are "
                  "Megatron-DeepSpeed's defaults; scaling of rotary positions is left out.");
    task_add_variable(
        out, "CUDA_DEVICE_MAX_CONNECTIONS", "1",
        "Kernels start in the order of their launch: sequence parallelism asserts it.");
    return status_ok();
}

static bool has_model(const Scenario *scenario, Arena *arena) {
    const RuleTable *own;
    return rules_load("for-deepspeed", arena, &own).code == STATUS_OK &&
           task_model_obeys(scenario, own);
}

const Target TARGET_DEEPSPEED = {
    .make = deepspeed_task, .has_model = has_model, .files = {"ds_config.json"}};
