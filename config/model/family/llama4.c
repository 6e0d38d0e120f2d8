// Meta's Llama 4 (Llama4TextConfig, modeling_llama4.py): every no_rope_layer_interval-th layer has
// no positions and sees all, the others see chunks; every interleave_moe_layer_step-th layer has
// experts, of intermediate_size, and one shared expert as wide.
#include "config/model/family/family.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"
#include "config/model/model_read.h"

// Whether each layer rotates queries and keys: no_rope_layers has 1 where it does.
static Status read_rotates(const JsonNode *config, int num_layers, uint8_t *rotates) {
    static const char *const INTERVAL[] = {"no_rope_layer_interval", NULL};
    int interval;
    TRY(key_read_size_or(config, INTERVAL, MODEL_MAX_LAYERS, 4, &interval));
    const JsonNode list = json_get(config, "no_rope_layers");
    const bool said = json_is_present(&list) && json_size(&list) > 0;
    if (said && json_size(&list) != num_layers)
        return json_error(&list, "has %d entries; expected one for each of the %d layers",
                          json_size(&list), num_layers);
    for (int i = 0; i < num_layers; i++) {
        int own = (i + 1) % interval != 0;
        if (said) {
            const JsonNode node = json_at(&list, i);
            TRY(json_read_int(&node, 0, 1, &own));
        }
        rotates[i] = (uint8_t)own;
    }
    return status_ok();
}

static Status read_layers(const JsonNode *config, ModelDraft *draft) {
    static const char *const CHUNK[] = {"attention_chunk_size", NULL};
    const int num_layers = draft->model.num_layers;
    uint8_t *layers = ARENA_ARRAY(draft->arena, num_layers, uint8_t);
    TRY(key_read_size(config, &(SizeKey){CHUNK, 1, MODEL_MAX_POSITIONS, 8192, 0},
                      &draft->mixer.chunk));
    TRY(read_rotates(config, num_layers, layers));
    TRY(model_read_layer_types(config, draft));
    const uint8_t rotating = draft->mixer.chunk > 0 ? LAYER_CHUNKED : 0;
    for (int i = 0; i < num_layers; i++) {
        const int sees = draft->layers ? draft->layers[i] : layers[i] ? rotating : 0;
        layers[i] = (uint8_t)(sees | (layers[i] ? 0 : LAYER_NO_POSITIONS));
    }
    draft->layers = layers;
    return status_ok();
}

static Status llama4_adjust(const JsonNode *config, ModelDraft *draft) {
    static const char *const DENSE[] = {"intermediate_size_mlp", NULL};
    FeedForward *ffn = &draft->ffn;
    bool normed = true;
    TRY(key_read_bool(config, "use_qk_norm", &normed));
    draft->mixer.qk_norm = draft->mixer.qk_norm_plain = normed;
    ffn->shared_intermediate_size = ffn->num_experts > 0 ? ffn->moe_intermediate_size : 0;
    TRY(key_read_size_or(config, DENSE, MODEL_MAX_INTERMEDIATE, 16384, &ffn->intermediate_size));
    return read_layers(config, draft);
}

#define LLAMA4                                                                                     \
    .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 8, .mixer.head_dim = 128,                      \
               .ffn.num_experts = 16, .ffn.num_experts_per_tok = 1},                               \
    .moe_size_is_dense = true, .qkv_bias_key = "attention_bias", .out_bias_key = "attention_bias", \
    .reads_key = "attention_chunk_size", .rope_name = "no_rope_layers", .adjust = llama4_adjust

const ModelFamily LLAMA4_FAMILIES[] = {
    {.model_type = "llama4", LLAMA4},
    {.model_type = "llama4_text", LLAMA4},
    {0},
};
