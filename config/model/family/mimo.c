// Xiaomi's MiMo (configuration_mimo.py beside the released weights): Qwen2's layers with
// multi-token prediction.
#include "config/model/family/family.h"

const ModelFamily MIMO_FAMILIES[] = {
    {
        .model_type = "mimo",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 32, .mixer.qkv_bias = true},
        .qkv_bias_key = "attention_bias",
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
    },
    {0},
};
