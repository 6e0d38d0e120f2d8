// EleutherAI's GPT-NeoX, Pythia.
#include "config/model/family/family.h"

#include "config/model/model_keys.h"

static Status gpt_neox_adjust(const JsonNode *config, ModelDraft *draft) {
    draft->model.parallel_residual = true;
    return key_read_bool(config, "use_parallel_residual", &draft->model.parallel_residual);
}

const ModelFamily GPT_NEOX_FAMILIES[] = {
    {
        .model_type = "gpt_neox",
        .traits = {GPT2_KIND(true, false), .model.position = POSITION_ROPE},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .adjust = gpt_neox_adjust,
    },
    {0},
};
