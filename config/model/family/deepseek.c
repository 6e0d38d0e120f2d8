// DeepSeek, and what uses its code.
#include "config/model/family/family.h"

// DeepSeek's multi-head latent attention.
#define DEEPSEEK_KIND                                                                              \
    LLAMA_KIND(2), .mixer.kind = MIXER_LATENT_ATTENTION, .mixer.q_lora_rank = 1536,                \
                   .mixer.kv_lora_rank = 512, .mixer.qk_nope_head_dim = 128,                       \
                   .mixer.qk_rope_head_dim = 64, .mixer.v_head_dim = 128

#define DEEPSEEK_V3                                                                                \
    .traits = {DEEPSEEK_KIND,                                                                      \
               .ffn.num_experts = 256,                                                             \
               .ffn.num_experts_per_tok = 8,                                                       \
               .ffn.moe_intermediate_size = 2048,                                                  \
               .ffn.norm_topk_prob = true,                                                         \
               .ffn.router_bias = true},                                                           \
    .num_shared_experts = 1, .first_k_dense = 3, .qkv_bias_key = "attention_bias",                 \
    .out_bias_key = "attention_bias"

const ModelFamily DEEPSEEK_FAMILIES[] = {
    {
        .model_type = "deepseek_v2",
        .traits = {DEEPSEEK_KIND, .ffn.num_experts = 64, .ffn.moe_intermediate_size = 1407},
        .num_shared_experts = 2,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .mlp_bias_key = "mlp_bias",
    },
    {.model_type = "deepseek_v3", DEEPSEEK_V3},
    {.model_type = "kimi_k2", DEEPSEEK_V3}, // the same code with other sizes
    {.model_type = "kimi_k25", DEEPSEEK_V3, .vision = VISION_MOONVIT}, // text: kimi_k2
    {.model_type = "kimi_vl", DEEPSEEK_V3, .vision = VISION_MOONVIT},  // text: deepseek_v3
    {0},
};
