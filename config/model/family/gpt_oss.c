// OpenAI's gpt-oss.
#include "config/model/family/family.h"

const ModelFamily GPT_OSS_FAMILIES[] = {
    {
        .model_type = "gpt_oss",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 8, .mixer.head_dim = 64,
                   .mixer.qkv_bias = true, .mixer.out_bias = true, .mixer.sinks = true,
                   .ffn.num_experts = 128, .ffn.num_experts_per_tok = 4, .ffn.norm_topk_prob = true,
                   .ffn.router_bias = true, .ffn.expert_bias = true,
                   .model.functions.swiglu_limit = 7},
        .moe_size_is_dense = true,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_EVEN,
        .window = 128,
    },
    {0},
};
