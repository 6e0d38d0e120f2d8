// Alibaba's Qwen.
#include "config/model/family/family.h"

// The text of Qwen3-VL, whose files have it in text_config (configuration_qwen3_vl.py and
// configuration_qwen3_vl_moe.py, 4.57).
#define QWEN3_VL_TEXT                                                                              \
    .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 32, .mixer.head_dim = 128,                     \
               .mixer.qk_norm = true},                                                             \
    .qkv_bias_key = "attention_bias", .out_bias_key = "attention_bias"
#define QWEN3_VL_MOE_TEXT                                                                          \
    .traits = {LLAMA_KIND(2),                                                                      \
               .mixer.num_kv_heads = 16,                                                           \
               .mixer.qk_norm = true,                                                              \
               .ffn.num_experts = 60,                                                              \
               .ffn.num_experts_per_tok = 4,                                                       \
               .ffn.moe_intermediate_size = 1408,                                                  \
               .ffn.norm_topk_prob = true},                                                        \
    .qkv_bias_key = "attention_bias", .out_bias_key = "attention_bias"

const ModelFamily QWEN_FAMILIES[] = {
    {
        .model_type = "qwen2",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 32, .mixer.qkv_bias = true},
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
    },
    {
        .model_type = "qwen2_vl",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 32, .mixer.qkv_bias = true},
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
        .vision = VISION_QWEN2,
    },
    {
        .model_type = "qwen2_5_vl",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 32, .mixer.qkv_bias = true},
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
        .vision = VISION_QWEN2_5,
    },
    {
        .model_type = "qwen2_moe",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 16, .mixer.qkv_bias = true,
                   .ffn.num_experts = 60, .ffn.num_experts_per_tok = 4,
                   .ffn.moe_intermediate_size = 1408, .ffn.shared_intermediate_size = 5632,
                   .ffn.shared_expert_gate = true},
        .qkv_bias_key = "qkv_bias",
        .window_rule = WINDOW_EVEN_BEFORE,
        .window_needs_switch = true,
        .window = 4096,
    },
    {
        .model_type = "qwen3",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 32, .mixer.head_dim = 128,
                   .mixer.qk_norm = true},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
    },
    {
        .model_type = "qwen3_moe",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 4, .mixer.qk_norm = true,
                   .ffn.num_experts = 128, .ffn.num_experts_per_tok = 8,
                   .ffn.moe_intermediate_size = 768},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_ALL,
        .window_needs_switch = true,
        .window = 4096,
    },
    {.model_type = "qwen3_vl", QWEN3_VL_TEXT, .vision = VISION_QWEN3},
    {.model_type = "qwen3_vl_text", QWEN3_VL_TEXT},
    {.model_type = "qwen3_vl_moe", QWEN3_VL_MOE_TEXT, .vision = VISION_QWEN3},
    {.model_type = "qwen3_vl_moe_text", QWEN3_VL_MOE_TEXT},
    {0},
};
