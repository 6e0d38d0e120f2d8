// Megatron-LM's command as a task: its settings, its flags, its data.
#include "launch/flags.h"
#include "launch/megatron_script.h"

static void add_data(Script *script, const Scenario *scenario) {
    script_add(script, "\n");
    megatron_add_data(script);
    script_add(script,
               "else\n"
               "    # The tokenizer of mock data adds one token of its own.\n"
               "    ARGS+=(--mock-data --tokenizer-type NullTokenizer --vocab-size %d)\n"
               "fi\n",
               scenario->model.vocab_size - 1);
    script_add(script, "if [ -n \"$CHECKPOINT_PATH\" ]; then\n"
                       "    ARGS+=(--save \"$CHECKPOINT_PATH\" --load \"$CHECKPOINT_PATH\"\n"
                       "        --save-interval \"$SAVE_INTERVAL\")\n"
                       "fi\n");
}

static Status megatron_task(const Scenario *scenario, const Plan *plan, Arena *arena,
                            LaunchTask *out) {
    MegatronCommand command;
    Script settings = {.arena = arena}, arguments = {.arena = arena};
    *out = (LaunchTask){.software = "NVIDIA/Megatron-LM, " MEGATRON_VERSION,
                        .program = "\"$MEGATRON_PATH/pretrain_gpt.py\"",
                        .needs = "MEGATRON_PATH",
                        .needs_in_container = "/opt/Megatron-LM"};
    TRY(megatron_command(scenario, plan, arena, &command));
    megatron_task_fill(scenario, &command,
                       "NVIDIA's Megatron-LM does not run on ROCm. It needs AMD's fork "
                       "(ROCm/Megatron-LM), whose flags may differ from these.",
                       arena, out);
    script_add(&settings, ": \"${MEGATRON_PATH:?set it to your checkout of Megatron-LM}\"\n");
    megatron_add_settings(&settings, &command);
    script_add(&arguments, "ARGS=(\n");
    flags_write(&arguments, &command.flags);
    script_add(&arguments, ")\n");
    add_data(&arguments, scenario);
    out->settings = settings.text;
    out->arguments = arguments.text;
    return status_ok();
}

const Target TARGET_MEGATRON = {.make = megatron_task};
