// Hugging Face's SmolLM3 (SmolLM3Config): every no_rope_layer_interval-th layer has no positions.
#include "config/model/family/family.h"

const ModelFamily SMOLLM_FAMILIES[] = {
    {
        .model_type = "smollm3",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 4, .model.tie_word_embeddings = true},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .mlp_bias_key = "mlp_bias",
        .window_rule = WINDOW_NONE,
        .rope_name = "no_rope_layers",
    },
    {0},
};
