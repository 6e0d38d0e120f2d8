// InternLM.
#include "config/model/family/family.h"

const ModelFamily INTERNLM_FAMILIES[] = {
    {
        .model_type = "internlm",
        .traits = {LLAMA_KIND(2), .mixer.qkv_bias = true, .mixer.out_bias = true},
        .qkv_bias_key = "bias",
        .out_bias_key = "bias",
    },
    {0},
};
