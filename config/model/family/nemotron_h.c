// NVIDIA's Nemotron-H and Nemotron 3 (configuration_nemotron_h.py and modeling_nemotron_h.py beside
// the released weights; arXiv:2504.03624): each layer is one of Mamba-2, attention without
// positions, an MLP or experts, with one norm.
#include "config/model/family/family.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"

#include <string.h>

static Status read_mamba(const JsonNode *config, Mixer *m) {
    static const char *const HEADS[] = {"mamba_num_heads", NULL};
    static const char *const HEAD_DIM[] = {"mamba_head_dim", NULL};
    static const char *const GROUPS[] = {"n_groups", "mamba_n_groups", NULL};
    static const char *const STATE[] = {"ssm_state_size", NULL};
    static const char *const KERNEL[] = {"conv_kernel", NULL};
    static const char *const CHUNK[] = {"chunk_size", "mamba_chunk_size", NULL};
    *m = (Mixer){.kind = MIXER_MAMBA2, .conv_bias = true};
    TRY(key_read_size_or(config, HEADS, MODEL_MAX_HEADS, 128, &m->num_heads));
    TRY(key_read_size_or(config, HEAD_DIM, MODEL_MAX_HEAD_DIM, 64, &m->v_head_dim));
    TRY(key_read_size_or(config, GROUPS, MODEL_MAX_HEADS, 8, &m->num_kv_heads));
    TRY(key_read_size_or(config, STATE, MODEL_MAX_HEAD_DIM, 128, &m->head_dim));
    TRY(key_read_size_or(config, KERNEL, 1024, 4, &m->conv_kernel));
    TRY(key_read_size_or(config, CHUNK, MODEL_MAX_POSITIONS, 128, &m->scan_chunk));
    TRY(key_read_bool(config, "use_conv_bias", &m->conv_bias));
    TRY(key_read_bool(config, "mamba_proj_bias", &m->qkv_bias));
    m->out_bias = m->qkv_bias;
    if (m->num_heads % m->num_kv_heads == 0) return status_ok();
    const JsonNode node = key_find(config, GROUPS);
    return json_error(&node, "%d does not divide mamba_num_heads %d", m->num_kv_heads,
                      m->num_heads);
}

static const struct {
    char letter;      // of hybrid_override_pattern
    const char *name; // of layers_block_type
    uint8_t layer;
} LAYERS[] = {
    {'M', "mamba", LAYER_OTHER | LAYER_NO_FFN},
    {'*', "attention", LAYER_NO_FFN},
    {'-', "mlp", LAYER_NO_MIXER | LAYER_DENSE},
    {'E', "moe", LAYER_NO_MIXER | LAYER_EXPERTS},
};
enum { NUM_LAYERS = sizeof LAYERS / sizeof *LAYERS };

static Status read_pattern(const JsonNode *node, uint8_t *layers, int num_layers) {
    const char *pattern = cJSON_GetStringValue(node->item);
    if (!pattern) return json_error(node, "expected a text of M, *, - and E");
    if (strlen(pattern) != (size_t)num_layers)
        return json_error(node, "has %zu layers, num_hidden_layers is %d", strlen(pattern),
                          num_layers);
    for (int i = 0; i < num_layers; i++) {
        int at = 0;
        while (at < NUM_LAYERS && LAYERS[at].letter != pattern[i]) at++;
        if (at == NUM_LAYERS)
            return json_error(node, "'%c' is no kind of layer; expected M, *, - or E", pattern[i]);
        layers[i] = LAYERS[at].layer;
    }
    return status_ok();
}

static Status read_list(const JsonNode *list, uint8_t *layers, int num_layers) {
    static const char *const NAMES[] = {"mamba", "attention", "mlp", "moe", NULL}; // as LAYERS
    TRY(json_expect_array(list));
    if (json_size(list) != num_layers)
        return json_error(list, "has %d layers, num_hidden_layers is %d", json_size(list),
                          num_layers);
    for (int i = 0; i < num_layers; i++) {
        const JsonNode node = json_at(list, i);
        int at;
        TRY(json_read_name(&node, NAMES, &at));
        layers[i] = LAYERS[at].layer;
    }
    return status_ok();
}

static Status read_layers(const JsonNode *config, ModelDraft *draft) {
    const JsonNode pattern = json_get(config, "hybrid_override_pattern"),
                   list = json_get(config, "layers_block_type");
    const int num_layers = draft->model.num_layers;
    uint8_t *layers = ARENA_ARRAY(draft->arena, num_layers, uint8_t);
    draft->layers = layers;
    if (json_is_present(&pattern)) return read_pattern(&pattern, layers, num_layers);
    if (json_is_present(&list)) return read_list(&list, layers, num_layers);
    return json_error(&pattern, "missing; expected it or layers_block_type");
}

// A layer of multi-token prediction has attention and experts (mtp_layers_block_type).
static void mtp_set(ModelDraft *draft) {
    LayerKind *kind = ARENA_NEW(draft->arena, LayerKind);
    *kind = (LayerKind){.mixer = draft->mixer, .ffn = draft->ffn};
    draft->model.mtp_kind = kind;
}

static Status nemotron_h_adjust(const JsonNode *config, ModelDraft *draft) {
    TRY(read_mamba(config, &draft->other));
    TRY(read_layers(config, draft));
    bool has_experts = false;
    for (int i = 0; i < draft->model.num_layers; i++)
        has_experts |= (draft->layers[i] & LAYER_EXPERTS) != 0;
    if (!has_experts) draft->ffn = model_dense_ffn(&draft->ffn);
    mtp_set(draft);
    return status_ok();
}

const ModelFamily NEMOTRON_H_FAMILIES[] = {
    {
        .model_type = "nemotron_h",
        .traits = {.model.position = POSITION_NONE,
                   .model.norm = NORM_RMSNORM,
                   .model.norms_per_layer = 2, // one before each half, of which a layer has one
                   .model.final_norm = true,
                   .mixer.num_kv_heads = 8,
                   .mixer.head_dim = 128,
                   .ffn.num_experts = 8,
                   .ffn.num_experts_per_tok = 2,
                   .ffn.moe_intermediate_size = 7688,
                   .ffn.norm_topk_prob = true,
                   .ffn.router_bias = true},
        .num_shared_experts = 1,
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .mlp_bias_key = "mlp_bias",
        .adjust = nemotron_h_adjust,
    },
    {0},
};
