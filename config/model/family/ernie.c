// Baidu's ERNIE 4.5 (Ernie4_5Config, Ernie4_5_MoeConfig).
#include "config/model/family/family.h"

const ModelFamily ERNIE_FAMILIES[] = {
    {
        .model_type = "ernie4_5",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 2, .mixer.head_dim = 128,
                   .model.tie_word_embeddings = true},
        .qkv_bias_key = "use_bias",
        .out_bias_key = "use_bias",
        .mlp_bias_key = "use_bias",
    },
    {
        .model_type = "ernie4_5_moe",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 4, .model.tie_word_embeddings = true,
                   .ffn.num_experts = 64, .ffn.num_experts_per_tok = 6,
                   .ffn.moe_intermediate_size = 1536, .ffn.norm_topk_prob = true,
                   .ffn.router_bias = true},
        .num_shared_experts = 2,
        .first_k_dense = 1,
        .qkv_bias_key = "use_bias",
        .out_bias_key = "use_bias",
        .mlp_bias_key = "use_bias",
    },
    {0},
};
