// Mistral AI.
#include "config/model/family/family.h"

const ModelFamily MISTRAL_FAMILIES[] = {
    {
        .model_type = "mistral",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 8},
        .window_rule = WINDOW_ALL,
        .window = 4096,
    },
    {
        .model_type = "mixtral",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 8, .ffn.num_experts = 8,
                   .ffn.num_experts_per_tok = 2, .ffn.norm_topk_prob = true},
        .moe_size_is_dense = true,
        .window_rule = WINDOW_ALL,
    },
    {0},
};
