// DeepSeek, and what uses its code.
#include "config/model/family/family.h"

#include "config/model/model_limits.h"

#include <string.h>

// DeepSeek's multi-head latent attention, and the experts of V3 behind it.
#define LATENT(mixer_kind, q_rank, nope_dim, value_dim)                                            \
    LLAMA_KIND(2), .mixer.kind = (mixer_kind), .mixer.q_lora_rank = (q_rank),                      \
                   .mixer.kv_lora_rank = 512, .mixer.qk_nope_head_dim = (nope_dim),                \
                   .mixer.qk_rope_head_dim = 64, .mixer.v_head_dim = (value_dim)
#define DEEPSEEK_KIND LATENT(MIXER_LATENT_ATTENTION, 1536, 128, 128)

#define WITH_EXPERTS(...)                                                                          \
    .traits = {__VA_ARGS__,                                                                        \
               .ffn.num_experts = 256,                                                             \
               .ffn.num_experts_per_tok = 8,                                                       \
               .ffn.moe_intermediate_size = 2048,                                                  \
               .ffn.norm_topk_prob = true,                                                         \
               .ffn.router_bias = true},                                                           \
    .num_shared_experts = 1, .first_k_dense = 3, .qkv_bias_key = "attention_bias",                 \
    .out_bias_key = "attention_bias"
#define DEEPSEEK_V3 WITH_EXPERTS(DEEPSEEK_KIND)

// Its attention is sparse (configuration_deepseek_v32.py and configuration_glm_moe_dsa.py of
// Hugging Face transformers).
#define INDEXER(heads)                                                                             \
    .mixer.index_num_heads = (heads), .mixer.index_head_dim = 128, .mixer.index_topk = 2048

// Of GLM-5.2, layers that are "shared" see the keys that the last "full" one before has chosen.
static Status shared_indexers(const JsonNode *config, ModelDraft *draft) {
    const JsonNode list = json_get(config, "indexer_types");
    if (!json_is_present(&list)) return status_ok();
    TRY(json_expect_array(&list));
    if (json_size(&list) != draft->model.num_layers)
        return json_error(&list, "%d entries for num_hidden_layers %d", json_size(&list),
                          draft->model.num_layers);
    uint8_t *layers = ARENA_ARRAY(draft->arena, draft->model.num_layers, uint8_t);
    for (int i = 0; i < draft->model.num_layers; i++) {
        const JsonNode node = json_at(&list, i);
        const char *type;
        TRY(json_read_string(&node, draft->arena, &type));
        const bool is_shared = strcmp(type, "shared") == 0;
        if (!is_shared && strcmp(type, "full") != 0)
            return json_error(&node, "\"%.60s\" is unknown; expected \"full\" or \"shared\"", type);
        if (is_shared && i == 0)
            return json_error(&node, "no layer before the first has chosen keys");
        layers[i] = is_shared ? LAYER_OTHER : 0;
    }
    draft->other = draft->mixer;
    draft->other.index_num_heads = 0;
    draft->layers = layers;
    return status_ok();
}

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
    {.model_type = "deepseek_v32",
     WITH_EXPERTS(LATENT(MIXER_SPARSE_LATENT_ATTENTION, 1536, 128, 128), INDEXER(64)),
     .reads_key = "index_topk"},
    {.model_type = "glm_moe_dsa",
     WITH_EXPERTS(LATENT(MIXER_SPARSE_LATENT_ATTENTION, 2048, 192, 256), INDEXER(32)),
     .reads_key = "index_topk",
     .adjust = shared_indexers},
    {0},
};
