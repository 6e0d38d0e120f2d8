// Megatron Bridge's configuration and the program that reads it, as a task.
#include "launch/bridge.h"
#include "launch/megatron_script.h"
#include "launch/plan_lines.h"

#define CONFIG_FILE "megatron_bridge.yaml"
#define PROGRAM_FILE "megatron_bridge.py"

static const char *config_text(const Scenario *scenario, const Plan *plan, const KeyList *keys) {
    Script script = {.arena = keys->arena};
    script_comment(&script, "For NVIDIA-NeMo/Megatron-Bridge " BRIDGE_VERSION ". Written by "
                            "meshwright " MESHWRIGHT_VERSION ".");
    plan_lines_add(&script, scenario, plan);
    keys_write_yaml(&script, keys);
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
    if (megatron_uses_variable(command, "ROTARY_BASE"))
        script_add(&script, "    --rotary-base \"$ROTARY_BASE\"\n");
    if (megatron_uses_variable(command, "MOE_AUX_LOSS_COEFF"))
        script_add(&script, "    --moe-aux-loss-coeff \"$MOE_AUX_LOSS_COEFF\"\n");
    script_add(&script, ")\n");
    megatron_add_data(&script);
    script_add(&script, "fi\n"
                        "if [ -n \"$CHECKPOINT_PATH\" ]; then\n"
                        "    ARGS+=(--checkpoint-path \"$CHECKPOINT_PATH\" "
                        "--save-interval \"$SAVE_INTERVAL\")\n"
                        "fi\n");
    return script.text;
}

static Status nemo_task(const Scenario *scenario, const Plan *plan, Arena *arena, LaunchTask *out) {
    MegatronCommand command;
    Script settings = {.arena = arena};
    KeyList keys = {.arena = arena, .rows = BRIDGE_KEYS};
    *out = (LaunchTask){.software = "NVIDIA-NeMo/Megatron-Bridge " BRIDGE_VERSION,
                        .program = "\"$LAUNCH_DIR/" PROGRAM_FILE "\""};
    TRY(megatron_command(scenario, plan, arena, &command));
    TRY(bridge_config(scenario, plan, &command, &keys));
    megatron_task_fill(scenario, &command, "NVIDIA's Megatron Core does not run on ROCm.", arena,
                       out);
    megatron_add_settings(&settings, &command);
    out->settings = settings.text;
    out->arguments = arguments_text(&command, arena);
    out->files[out->num_files++] =
        (LaunchFile){CONFIG_FILE, config_text(scenario, plan, &keys), false};
    out->files[out->num_files++] =
        (LaunchFile){PROGRAM_FILE, bridge_program(scenario, &command, arena), false};
    return status_ok();
}

const Target TARGET_NEMO = {.make = nemo_task, .files = {CONFIG_FILE, PROGRAM_FILE}};
