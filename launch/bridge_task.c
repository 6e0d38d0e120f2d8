// Megatron Bridge's configuration and the program that reads it, as a task.
#include "launch/bridge.h"
#include "launch/task.h"

#include <string.h>

#define CONFIG_FILE "megatron_bridge.yaml"
#define PROGRAM_FILE "megatron_bridge.py"

static const char *config_text(const KeyList *keys) {
    Script script = {.arena = keys->arena};
    script_comment(&script, "For NVIDIA-NeMo/Megatron-Bridge " BRIDGE_VERSION ". Written by "
                            "meshwright " MESHWRIGHT_VERSION ".");
    keys_write_yaml(&script, keys);
    return script.text;
}

static bool asks_for(const MegatronCommand *command, const char *variable) {
    for (int i = 0; i < command->flags.num_flags; i++) {
        const char *value = command->flags.flags[i].value;
        if (value && strstr(value, variable)) return true;
    }
    return false;
}

static const char *settings_text(const MegatronCommand *command, Arena *arena) {
    Script script = {.arena = arena};
    script_comment(&script, "DATA_PATH: prefix of your indexed data (of its .bin and .idx files). "
                            "Empty trains on mock data, which is enough to measure the speed.");
    script_add(&script, "DATA_PATH=${DATA_PATH:-}\nDATA_SPLIT=${DATA_SPLIT:-99,1,0}\n");
    script_comment(&script, "TOKENIZER_MODEL: file, folder or Hugging Face name; needed with "
                            "data.");
    script_add(&script, "TOKENIZER_TYPE=${TOKENIZER_TYPE:-HuggingFaceTokenizer}\n");
    script_comment(&script, "CHECKPOINT_PATH: folder to save to and to resume from. Empty saves "
                            "nothing.");
    script_add(&script,
               "CHECKPOINT_PATH=${CHECKPOINT_PATH:-}\nSAVE_INTERVAL=${SAVE_INTERVAL:-500}\n");
    script_comment(&script, "Length and learning rate of the training: placeholders.");
    script_add(&script, "TRAIN_ITERS=${TRAIN_ITERS:-100}\nLR=${LR:-3e-4}\n"
                        "EVAL_INTERVAL=${EVAL_INTERVAL:-1000}\nEVAL_ITERS=${EVAL_ITERS:-0}\n");
    if (asks_for(command, "ROTARY_BASE")) {
        script_comment(&script, "ROTARY_BASE: the scenario's model does not state rope_theta.");
        script_add(&script, "ROTARY_BASE=${ROTARY_BASE:-10000}\n");
    }
    if (asks_for(command, "MOE_AUX_LOSS_COEFF"))
        script_add(&script, "MOE_AUX_LOSS_COEFF=${MOE_AUX_LOSS_COEFF:-1e-3}\n");
    return script.text;
}

static const char *arguments_text(const MegatronCommand *command, Arena *arena) {
    Script script = {.arena = arena};
    script_add(&script, "ARGS=(\n"
                        "    --config \"$LAUNCH_DIR/" CONFIG_FILE "\"\n"
                        "    --train-iters \"$TRAIN_ITERS\"\n"
                        "    --lr \"$LR\"\n"
                        "    --eval-interval \"$EVAL_INTERVAL\"\n"
                        "    --eval-iters \"$EVAL_ITERS\"\n");
    if (asks_for(command, "ROTARY_BASE"))
        script_add(&script, "    --rotary-base \"$ROTARY_BASE\"\n");
    if (asks_for(command, "MOE_AUX_LOSS_COEFF"))
        script_add(&script, "    --moe-aux-loss-coeff \"$MOE_AUX_LOSS_COEFF\"\n");
    script_add(&script, ")\n"
                        "if [ -n \"$DATA_PATH\" ]; then\n"
                        "    : \"${TOKENIZER_MODEL:?set it to the tokenizer of your data}\"\n"
                        "    ARGS+=(\n"
                        "        --data-path \"$DATA_PATH\"\n"
                        "        --split \"$DATA_SPLIT\"\n"
                        "        --tokenizer-type \"$TOKENIZER_TYPE\"\n"
                        "        --tokenizer-model \"$TOKENIZER_MODEL\"\n"
                        "    )\n"
                        "fi\n"
                        "if [ -n \"$CHECKPOINT_PATH\" ]; then\n"
                        "    ARGS+=(--checkpoint-path \"$CHECKPOINT_PATH\" "
                        "--save-interval \"$SAVE_INTERVAL\")\n"
                        "fi\n");
    return script.text;
}

Status nemo_task(const Scenario *scenario, const Plan *plan, Arena *arena, LaunchTask *out) {
    MegatronCommand command;
    KeyList keys = {.arena = arena, .rows = BRIDGE_KEYS};
    *out = (LaunchTask){.software = "NVIDIA-NeMo/Megatron-Bridge " BRIDGE_VERSION,
                        .program = "\"$LAUNCH_DIR/" PROGRAM_FILE "\""};
    TRY(megatron_command(scenario, plan, arena, &command));
    TRY(bridge_config(scenario, plan, &command, &keys));
    if (strcmp(scenario->cluster.gpu.vendor, "AMD") == 0)
        task_add_note(out, arena, "AMD GPUs: NVIDIA's Megatron Core does not run on ROCm.");
    for (int i = 0; i < command.num_notes; i++) task_add_note(out, arena, "%s", command.notes[i]);
    for (int i = 0; i < command.num_variables; i++)
        out->variables[out->num_variables++] = command.variables[i];
    out->settings = settings_text(&command, arena);
    out->arguments = arguments_text(&command, arena);
    out->files[out->num_files++] = (LaunchFile){CONFIG_FILE, config_text(&keys), false};
    out->files[out->num_files++] =
        (LaunchFile){PROGRAM_FILE, bridge_program(scenario, &command, arena), false};
    return status_ok();
}
