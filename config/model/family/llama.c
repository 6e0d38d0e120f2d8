// Meta's Llama, and what is built like it.
#include "config/model/family/family.h"

const ModelFamily LLAMA_FAMILIES[] = {
    {
        .model_type = "llama",
        .traits = {LLAMA_KIND(2)},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .mlp_bias_key = "mlp_bias",
    },
    {0},
};
