// Megatron-LM's command as a task: its settings, its flags, its data.
#include "launch/flags.h"
#include "launch/megatron.h"
#include "launch/task.h"

#include <string.h>

// True where the command leaves this variable to the user.
static bool uses_variable(const MegatronCommand *command, const char *variable) {
    for (int i = 0; i < command->flags.num_flags; i++) {
        const char *value = command->flags.flags[i].value;
        if (value && strstr(value, variable)) return true;
    }
    return false;
}

static void add_settings(Script *script, const MegatronCommand *command) {
    script_add(script, ": \"${MEGATRON_PATH:?set it to your checkout of Megatron-LM}\"\n");
    script_comment(script, "DATA_PATH: prefix of your indexed data (of its .bin and .idx files). "
                           "Empty trains on mock data, which is enough to measure the speed.");
    script_add(script, "DATA_PATH=${DATA_PATH:-}\nDATA_SPLIT=${DATA_SPLIT:-99,1,0}\n");
    script_comment(script, "TOKENIZER_MODEL: file, folder or Hugging Face name; needed with data.");
    script_add(script, "TOKENIZER_TYPE=${TOKENIZER_TYPE:-HuggingFaceTokenizer}\n");
    script_comment(script, "CHECKPOINT_PATH: folder to save to and to resume from. Empty saves "
                           "nothing.");
    script_add(script,
               "CHECKPOINT_PATH=${CHECKPOINT_PATH:-}\nSAVE_INTERVAL=${SAVE_INTERVAL:-500}\n");
    script_comment(script, "Length and learning rate of the training: placeholders.");
    script_add(script, "TRAIN_ITERS=${TRAIN_ITERS:-100}\nLR=${LR:-3e-4}\n"
                       "EVAL_INTERVAL=${EVAL_INTERVAL:-1000}\nEVAL_ITERS=${EVAL_ITERS:-0}\n");
    if (uses_variable(command, "ROTARY_BASE")) {
        script_comment(script, "ROTARY_BASE: the scenario's model does not state rope_theta.");
        script_add(script, "ROTARY_BASE=${ROTARY_BASE:-10000}\n");
    }
    if (uses_variable(command, "MOE_AUX_LOSS_COEFF"))
        script_add(script, "MOE_AUX_LOSS_COEFF=${MOE_AUX_LOSS_COEFF:-1e-3}\n");
}

static void add_arguments(Script *script, const MegatronCommand *command) {
    script_add(script, "ARGS=(\n");
    const char *group = "";
    for (int i = 0; i < command->flags.num_flags; i++) {
        const Flag *flag = &command->flags.flags[i];
        if (strcmp(group, flag->row->group) != 0) {
            group = flag->row->group;
            script_add(script, "    # %s\n", group);
        }
        script_add(script, "    %s%s%s\n", flag->row->flag, flag->value ? " " : "",
                   flag->value ? flag->value : "");
    }
    script_add(script, ")\n");
}

static void add_data(Script *script, const Scenario *scenario) {
    script_add(script,
               "\nif [ -n \"$DATA_PATH\" ]; then\n"
               "    : \"${TOKENIZER_MODEL:?set it to the tokenizer of your data}\"\n"
               "    ARGS+=(\n"
               "        --data-path \"$DATA_PATH\"\n"
               "        --split \"$DATA_SPLIT\"\n"
               "        --tokenizer-type \"$TOKENIZER_TYPE\"\n"
               "        --tokenizer-model \"$TOKENIZER_MODEL\"\n"
               "    )\n"
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

Status megatron_task(const Scenario *scenario, const Plan *plan, Arena *arena, LaunchTask *out) {
    MegatronCommand command;
    Script settings = {.arena = arena}, arguments = {.arena = arena};
    *out = (LaunchTask){.software = "NVIDIA/Megatron-LM, " MEGATRON_VERSION,
                        .program = "\"$MEGATRON_PATH/pretrain_gpt.py\"",
                        .needs = "MEGATRON_PATH",
                        .needs_in_container = "/opt/Megatron-LM"};
    TRY(megatron_command(scenario, plan, arena, &command));
    if (strcmp(scenario->cluster.gpu.vendor, "AMD") == 0)
        task_add_note(out, arena,
                      "AMD GPUs: NVIDIA's Megatron-LM does not run on ROCm. It needs AMD's fork "
                      "(ROCm/Megatron-LM), whose flags may differ from these.");
    for (int i = 0; i < command.num_notes; i++) task_add_note(out, arena, "%s", command.notes[i]);
    for (int i = 0; i < command.num_variables; i++)
        out->variables[out->num_variables++] = command.variables[i];
    add_settings(&settings, &command);
    add_arguments(&arguments, &command);
    add_data(&arguments, scenario);
    out->settings = settings.text;
    out->arguments = arguments.text;
    return status_ok();
}
