// Zhipu's GLM-4.5 and 4.6 (Glm4MoeConfig, modeling_glm4_moe.py: no bias behind the attention).
#include "config/model/family/family.h"

#include "config/model/model_keys.h"

static Status glm4_moe_adjust(const JsonNode *config, ModelDraft *draft) {
    return key_read_bool(config, "use_qk_norm", &draft->mixer.qk_norm);
}

const ModelFamily GLM_FAMILIES[] = {
    {
        .model_type = "glm4_moe",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 8, .mixer.head_dim = 128,
                   .ffn.num_experts = 128, .ffn.num_experts_per_tok = 8,
                   .ffn.moe_intermediate_size = 1408, .ffn.norm_topk_prob = true,
                   .ffn.router_bias = true},
        .num_shared_experts = 1,
        .first_k_dense = 1,
        .qkv_bias_key = "attention_bias",
        .adjust = glm4_moe_adjust,
    },
    {0},
};
