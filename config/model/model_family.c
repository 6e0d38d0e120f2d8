#include "config/model/model_family.h"

#include "config/model/model_adjust.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

// Traits of the Llama kind: RMSNorm, SwiGLU, rotary positions, no biases.
#define LLAMA_KIND(norms)                                                                          \
    .model.position = POSITION_ROPE, .model.norm = NORM_RMSNORM, .model.norms_per_layer = (norms), \
    .model.final_norm = true, .ffn.gated = true

// Traits of the GPT-2 kind: LayerNorm with biases, two matrices in the MLP.
#define GPT2_KIND(biases, tied)                                                                    \
    .model.norm = NORM_LAYERNORM, .model.norm_bias = true, .model.norms_per_layer = 2,             \
    .model.final_norm = true, .mixer.qkv_bias = (biases), .mixer.out_bias = (biases),              \
    .ffn.bias = (biases), .model.tie_word_embeddings = (tied)

// DeepSeek's multi-head latent attention.
#define DEEPSEEK_KIND                                                                              \
    LLAMA_KIND(2), .mixer.kind = MIXER_LATENT_ATTENTION, .mixer.q_lora_rank = 1536,                \
                   .mixer.kv_lora_rank = 512, .mixer.qk_nope_head_dim = 128,                       \
                   .mixer.qk_rope_head_dim = 64, .mixer.v_head_dim = 128

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
    {
        .model_type = "deepseek_v2",
        .traits = {DEEPSEEK_KIND, .ffn.num_experts = 64, .ffn.moe_intermediate_size = 1407},
        .num_shared_experts = 2,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .mlp_bias_key = "mlp_bias",
    },
    {
        .model_type = "deepseek_v3",
        .traits = {DEEPSEEK_KIND, .ffn.num_experts = 256, .ffn.num_experts_per_tok = 8,
                   .ffn.moe_intermediate_size = 2048, .ffn.norm_topk_prob = true,
                   .ffn.router_bias = true},
        .num_shared_experts = 1,
        .first_k_dense = 3,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
    },
    {
        .model_type = "kimi_k2", // the code of DeepSeek-V3 with other sizes
        .traits = {DEEPSEEK_KIND, .ffn.num_experts = 256, .ffn.num_experts_per_tok = 8,
                   .ffn.moe_intermediate_size = 2048, .ffn.norm_topk_prob = true,
                   .ffn.router_bias = true},
        .num_shared_experts = 1,
        .first_k_dense = 3,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
    },
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
    {
        .model_type = "gemma2",
        .traits = {LLAMA_KIND(4), .model.tie_word_embeddings = true, .mixer.num_kv_heads = 4,
                   .mixer.head_dim = 256},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_EVEN,
        .window = 4096,
    },
    {
        .model_type = "gemma3", // sizes are in text_config; released files leave many of them out
        .vision = VISION_SIGLIP,
        .traits = {LLAMA_KIND(4), .mixer.qk_norm = true, .model.tie_word_embeddings = true,
                   .model.hidden_size = 2304, .ffn.intermediate_size = 9216, .model.num_layers = 26,
                   .mixer.num_heads = 8, .mixer.num_kv_heads = 4, .mixer.head_dim = 256,
                   .model.vocab_size = 262208},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_PATTERN,
        .window = 4096,
    },
    {
        .model_type = "gemma3_text",
        .traits = {LLAMA_KIND(4), .mixer.qk_norm = true, .model.tie_word_embeddings = true,
                   .model.hidden_size = 2304, .ffn.intermediate_size = 9216, .model.num_layers = 26,
                   .mixer.num_heads = 8, .mixer.num_kv_heads = 4, .mixer.head_dim = 256,
                   .model.vocab_size = 262208},
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
        .traits = {LLAMA_KIND(2), .mixer.qkv_bias = true, .mixer.out_bias = true},
        .qkv_bias_key = "bias",
        .out_bias_key = "bias",
    },
    {
        .model_type = "gpt2",
        .traits = {GPT2_KIND(true, true), .model.position = POSITION_LEARNED,
                   .model.max_position_embeddings = 1024},
        .intermediate_ratio = 4,
    },
    {
        .model_type = "gpt_neox",
        .traits = {GPT2_KIND(true, false), .model.position = POSITION_ROPE},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .adjust = gpt_neox_adjust,
    },
    {
        .model_type = "bloom",
        .traits = {GPT2_KIND(true, true), .model.position = POSITION_ALIBI,
                   .model.embedding_norm = true},
        .intermediate_ratio = 4,
        .intermediate_fixed = true,
    },
    {
        .model_type = "mpt",
        .traits = {GPT2_KIND(true, true), .model.position = POSITION_ALIBI},
        .intermediate_ratio = 4,
        .adjust = mpt_adjust,
    },
    {
        .model_type = "opt",
        .traits = {GPT2_KIND(true, true), .model.position = POSITION_LEARNED,
                   .model.max_position_embeddings = 2048},
        .position_extra_rows = 2,
        .qkv_bias_key = "enable_bias",
        .out_bias_key = "enable_bias",
        .mlp_bias_key = "enable_bias",
        .adjust = opt_adjust,
    },
    {
        .model_type = "falcon",
        .traits = {GPT2_KIND(false, true), .model.position = POSITION_ROPE},
        .intermediate_ratio = 4,
        .qkv_bias_key = "bias",
        .out_bias_key = "bias",
        .mlp_bias_key = "bias",
        .adjust = falcon_adjust,
    },
    {
        .model_type = "RefinedWebModel", // Falcon 7B as first released
        .traits = {GPT2_KIND(false, true), .model.position = POSITION_ROPE},
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
