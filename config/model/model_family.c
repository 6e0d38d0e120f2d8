#include "config/model/model_family.h"

#include "config/model/model_adjust.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

// Traits of the Llama kind: RMSNorm, SwiGLU, rotary positions, no biases.
#define LLAMA_KIND(norms)                                                                          \
    .position = POSITION_ROPE, .norm = NORM_RMSNORM, .norms_per_layer = (norms),                   \
    .final_norm = true, .gated_mlp = true

// Traits of the GPT-2 kind: LayerNorm with biases, two matrices in the MLP.
#define GPT2_KIND(biases, tied)                                                                    \
    .norm = NORM_LAYERNORM, .norm_bias = true, .norms_per_layer = 2, .final_norm = true,           \
    .qkv_bias = (biases), .attention_out_bias = (biases), .mlp_bias = (biases),                    \
    .tie_word_embeddings = (tied)

// DeepSeek's multi-head latent attention.
#define DEEPSEEK_KIND                                                                              \
    LLAMA_KIND(2), .attention = ATTENTION_MLA, .q_lora_rank = 1536, .kv_lora_rank = 512,           \
                   .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128

static const ModelFamily FAMILIES[] = {
    {
        .model_type = "llama",
        .traits = {LLAMA_KIND(2)},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .mlp_bias_key = "mlp_bias",
    },
    {
        .model_type = "mistral",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 8},
        .window_rule = WINDOW_ALL,
        .window = 4096,
    },
    {
        .model_type = "mixtral",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 8, .num_experts = 8, .num_experts_per_tok = 2,
                   .norm_topk_prob = true},
        .moe_size_is_dense = true,
        .window_rule = WINDOW_ALL,
    },
    {
        .model_type = "qwen2",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 32, .qkv_bias = true},
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
    },
    {
        .model_type = "qwen2_vl",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 32, .qkv_bias = true},
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
        .vision = VISION_QWEN2,
    },
    {
        .model_type = "qwen2_5_vl",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 32, .qkv_bias = true},
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
        .vision = VISION_QWEN2_5,
    },
    {
        .model_type = "qwen2_moe",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 16, .qkv_bias = true, .num_experts = 60,
                   .num_experts_per_tok = 4, .moe_intermediate_size = 1408,
                   .shared_intermediate_size = 5632, .shared_expert_gate = true},
        .qkv_bias_key = "qkv_bias",
        .window_rule = WINDOW_EVEN_BEFORE,
        .window_needs_switch = true,
        .window = 4096,
    },
    {
        .model_type = "qwen3",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 32, .head_dim = 128, .qk_norm = true},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_FROM_LAYER,
        .window_needs_switch = true,
        .window = 4096,
    },
    {
        .model_type = "qwen3_moe",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 4, .qk_norm = true, .num_experts = 128,
                   .num_experts_per_tok = 8, .moe_intermediate_size = 768},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_ALL,
        .window_needs_switch = true,
        .window = 4096,
    },
    {
        .model_type = "deepseek_v2",
        .traits = {DEEPSEEK_KIND, .num_experts = 64, .moe_intermediate_size = 1407},
        .num_shared_experts = 2,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .mlp_bias_key = "mlp_bias",
    },
    {
        .model_type = "deepseek_v3",
        .traits = {DEEPSEEK_KIND, .num_experts = 256, .num_experts_per_tok = 8,
                   .moe_intermediate_size = 2048, .norm_topk_prob = true, .router_bias = true},
        .num_shared_experts = 1,
        .first_k_dense = 3,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
    },
    {
        .model_type = "kimi_k2", // the code of DeepSeek-V3 with other sizes
        .traits = {DEEPSEEK_KIND, .num_experts = 256, .num_experts_per_tok = 8,
                   .moe_intermediate_size = 2048, .norm_topk_prob = true, .router_bias = true},
        .num_shared_experts = 1,
        .first_k_dense = 3,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
    },
    {
        .model_type = "gpt_oss",
        .traits = {LLAMA_KIND(2), .num_kv_heads = 8, .head_dim = 64, .qkv_bias = true,
                   .attention_out_bias = true, .attention_sinks = true, .num_experts = 128,
                   .num_experts_per_tok = 4, .norm_topk_prob = true, .router_bias = true,
                   .expert_bias = true, .functions = {.swiglu_limit = 7}},
        .moe_size_is_dense = true,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_EVEN,
        .window = 128,
    },
    {
        .model_type = "gemma2",
        .traits = {LLAMA_KIND(4), .tie_word_embeddings = true, .num_kv_heads = 4, .head_dim = 256},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_EVEN,
        .window = 4096,
    },
    {
        .model_type = "gemma3", // sizes are in text_config; released files leave many of them out
        .vision = VISION_SIGLIP,
        .traits = {LLAMA_KIND(4), .qk_norm = true, .tie_word_embeddings = true, .hidden_size = 2304,
                   .intermediate_size = 9216, .num_layers = 26, .num_heads = 8, .num_kv_heads = 4,
                   .head_dim = 256, .vocab_size = 262208},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_PATTERN,
        .window = 4096,
    },
    {
        .model_type = "gemma3_text",
        .traits = {LLAMA_KIND(4), .qk_norm = true, .tie_word_embeddings = true, .hidden_size = 2304,
                   .intermediate_size = 9216, .num_layers = 26, .num_heads = 8, .num_kv_heads = 4,
                   .head_dim = 256, .vocab_size = 262208},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_PATTERN,
        .window = 4096,
    },
    {
        .model_type = "phi3",
        .traits = {LLAMA_KIND(2)},
        .window_rule = WINDOW_ALL,
    },
    {
        .model_type = "internlm",
        .traits = {LLAMA_KIND(2), .qkv_bias = true, .attention_out_bias = true},
        .qkv_bias_key = "bias",
        .out_bias_key = "bias",
    },
    {
        .model_type = "gpt2",
        .traits = {GPT2_KIND(true, true), .position = POSITION_LEARNED,
                   .max_position_embeddings = 1024},
        .intermediate_ratio = 4,
    },
    {
        .model_type = "gpt_neox",
        .traits = {GPT2_KIND(true, false), .position = POSITION_ROPE},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .adjust = gpt_neox_adjust,
    },
    {
        .model_type = "bloom",
        .traits = {GPT2_KIND(true, true), .position = POSITION_ALIBI, .embedding_norm = true},
        .intermediate_ratio = 4,
        .intermediate_fixed = true,
    },
    {
        .model_type = "mpt",
        .traits = {GPT2_KIND(true, true), .position = POSITION_ALIBI},
        .intermediate_ratio = 4,
        .adjust = mpt_adjust,
    },
    {
        .model_type = "opt",
        .traits = {GPT2_KIND(true, true), .position = POSITION_LEARNED,
                   .max_position_embeddings = 2048},
        .position_extra_rows = 2,
        .qkv_bias_key = "enable_bias",
        .out_bias_key = "enable_bias",
        .mlp_bias_key = "enable_bias",
        .adjust = opt_adjust,
    },
    {
        .model_type = "falcon",
        .traits = {GPT2_KIND(false, true), .position = POSITION_ROPE},
        .intermediate_ratio = 4,
        .qkv_bias_key = "bias",
        .out_bias_key = "bias",
        .mlp_bias_key = "bias",
        .adjust = falcon_adjust,
    },
    {
        .model_type = "RefinedWebModel", // Falcon 7B as first released
        .traits = {GPT2_KIND(false, true), .position = POSITION_ROPE},
        .intermediate_ratio = 4,
        .qkv_bias_key = "bias",
        .out_bias_key = "bias",
        .mlp_bias_key = "bias",
        .adjust = falcon_adjust,
    },
};

const ModelFamily *model_family_find(const char *model_type) {
    for (size_t i = 0; i < COUNT(FAMILIES); i++)
        if (strcmp(FAMILIES[i].model_type, model_type) == 0) return &FAMILIES[i];
    return NULL;
}

const char *const *model_family_names(Arena *arena) {
    static const char *const OTHERS[] = {"t5", "mt5", "generic"};
    const char **names = ARENA_ARRAY(arena, COUNT(FAMILIES) + COUNT(OTHERS) + 1, const char *);
    for (size_t i = 0; i < COUNT(FAMILIES); i++) names[i] = FAMILIES[i].model_type;
    for (size_t i = 0; i < COUNT(OTHERS); i++) names[COUNT(FAMILIES) + i] = OTHERS[i];
    return names;
}
