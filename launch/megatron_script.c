#include "launch/megatron_script.h"

#include <string.h>

bool megatron_uses_variable(const MegatronCommand *command, const char *variable) {
    for (int i = 0; i < command->flags.num_flags; i++) {
        const char *value = command->flags.flags[i].value;
        if (value && strstr(value, variable)) return true;
    }
    return false;
}

void megatron_add_settings(Script *script, const MegatronCommand *command) {
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
    if (megatron_uses_variable(command, "ROTARY_BASE")) {
        script_comment(script, "ROTARY_BASE: the scenario's model does not state rope_theta.");
        script_add(script, "ROTARY_BASE=${ROTARY_BASE:-10000}\n");
    }
    if (megatron_uses_variable(command, "MOE_AUX_LOSS_COEFF"))
        script_add(script, "MOE_AUX_LOSS_COEFF=${MOE_AUX_LOSS_COEFF:-1e-3}\n");
}

void megatron_add_data(Script *script) {
    script_add(script, "if [ -n \"$DATA_PATH\" ]; then\n"
                       "    : \"${TOKENIZER_MODEL:?set it to the tokenizer of your data}\"\n"
                       "    ARGS+=(\n"
                       "        --data-path \"$DATA_PATH\"\n"
                       "        --split \"$DATA_SPLIT\"\n"
                       "        --tokenizer-type \"$TOKENIZER_TYPE\"\n"
                       "        --tokenizer-model \"$TOKENIZER_MODEL\"\n"
                       "    )\n");
}

void megatron_task_fill(const Scenario *scenario, const MegatronCommand *command, const char *amd,
                        Arena *arena, LaunchTask *out) {
    if (strcmp(cluster_only_pool(&scenario->cluster)->gpu.vendor, "AMD") == 0)
        task_add_note(out, arena, "AMD GPUs: %s", amd);
    for (int i = 0; i < command->num_notes; i++) task_add_note(out, arena, "%s", command->notes[i]);
    for (int i = 0; i < command->num_variables; i++)
        out->variables[out->num_variables++] = command->variables[i];
}
