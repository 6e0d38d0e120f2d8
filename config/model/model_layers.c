#include "config/model/model_keys.h"
#include "config/model/model_limits.h"
#include "config/model/model_read.h"

// What decides about one layer, read from the file.
typedef struct {
    int num_layers;
    bool has_experts;
    int first_k_dense, sparse_step, moe_freq;
    const bool *mlp_only; // [num_layers]
    WindowRule rule;
    int pattern;           // of WINDOW_PATTERN
    int max_window_layers; // of WINDOW_FROM_LAYER, WINDOW_EVEN_BEFORE
    const uint8_t *layers; // [num_layers] LAYER_* where the file says, else NULL
} LayerRules;

static bool layer_is_moe(const LayerRules *rules, int layer) {
    const int has = rules->layers ? rules->layers[layer] : 0;
    if (has & (LAYER_DENSE | LAYER_EXPERTS)) return rules->has_experts && has & LAYER_EXPERTS;
    return rules->has_experts && layer >= rules->first_k_dense && !rules->mlp_only[layer] &&
           (layer + 1) % rules->sparse_step == 0 && layer % rules->moe_freq == 0;
}

static bool layer_is_sliding(const LayerRules *rules, int layer) {
    if (rules->layers) return rules->layers[layer] & LAYER_SLIDING;
    switch (rules->rule) {
    case WINDOW_NONE:
        return false;
    case WINDOW_ALL:
        return true;
    case WINDOW_FROM_LAYER:
        return layer >= rules->max_window_layers;
    case WINDOW_EVEN_BEFORE:
        return layer % 2 == 0 && layer < rules->max_window_layers;
    case WINDOW_EVEN:
        return layer % 2 == 0;
    case WINDOW_PATTERN:
        return (layer + 1) % rules->pattern != 0;
    }
    return false;
}

static Status read_mlp_only(const JsonNode *config, Arena *arena, LayerRules *rules) {
    bool *mlp_only = ARENA_ARRAY(arena, rules->num_layers, bool);
    rules->mlp_only = mlp_only;
    JsonNode list = json_get(config, "mlp_only_layers");
    if (!json_is_present(&list)) return status_ok();
    TRY(json_expect_array(&list));
    const int size = json_size(&list);
    if (size > rules->num_layers)
        return json_error(&list, "has %d entries; there are %d layers", size, rules->num_layers);
    for (int i = 0; i < size; i++) {
        JsonNode node = json_at(&list, i);
        int layer;
        TRY(json_read_int(&node, 0, rules->num_layers - 1, &layer));
        mlp_only[layer] = true;
    }
    return status_ok();
}

static Status read_layer_type(const JsonNode *node, const ModelDraft *draft, uint8_t *layer) {
    static const char *const NAMES[] = {"full_attention", "sliding_attention", "chunked_attention",
                                        "linear_attention", NULL};
    static const uint8_t MEANS[] = {0, LAYER_SLIDING, LAYER_CHUNKED, LAYER_OTHER};
    const bool known[] = {true, true, draft->mixer.chunk > 0, draft->other.num_heads > 0};
    int kind;
    TRY(json_read_name(node, NAMES, &kind));
    if (!known[kind]) return json_error(node, "\"%s\" is not supported yet", NAMES[kind]);
    *layer = MEANS[kind];
    return status_ok();
}

Status model_read_layer_types(const JsonNode *config, ModelDraft *draft) {
    const int num_layers = draft->model.num_layers, num_mtp = draft->model.num_mtp_layers;
    JsonNode list = json_get(config, "layer_types");
    if (!json_is_present(&list)) return status_ok();
    TRY(json_expect_array(&list));
    const int size = json_size(&list); // may go on with the layers of multi-token prediction
    if (size != num_layers && size != num_layers + num_mtp)
        return json_error(&list, "has %d entries; expected one for each of the %d layers", size,
                          num_layers);
    uint8_t *layers = ARENA_ARRAY(draft->arena, size, uint8_t);
    int layer = 0;
    const cJSON *item; // json_at() walks the list from its start
    cJSON_ArrayForEach(item, list.item) {
        JsonNode node = {.file = list.file, .item = item, .parent = &list, .index = layer};
        TRY(read_layer_type(&node, draft, &layers[layer]));
        layer++;
    }
    draft->layers = layers;
    return status_ok();
}

static Status read_rules(const JsonNode *config, const LayerDefaults *defaults, Arena *arena,
                         LayerRules *rules) {
    static const char *const FIRST_K[] = {"first_k_dense_replace", "moe_layer_start_index", NULL};
    static const char *const STEP[] = {"decoder_sparse_step", "interleave_moe_layer_step", NULL};
    static const char *const FREQ[] = {"moe_layer_freq", "moe_layer_interval", NULL};
    static const char *const PATTERN[] = {"sliding_window_pattern", "_sliding_window_pattern",
                                          NULL};
    static const char *const MAX_WINDOW[] = {"max_window_layers", NULL};
    const int n = rules->num_layers;
    if (rules->has_experts) {
        const int first = defaults->first_k_dense < n ? defaults->first_k_dense : n;
        TRY(key_read_size(config, &(SizeKey){FIRST_K, 0, n, first, 0}, &rules->first_k_dense));
        TRY(key_read_size(config, &(SizeKey){STEP, 1, MODEL_MAX_LAYERS, 1, 1},
                          &rules->sparse_step));
        TRY(key_read_size(config, &(SizeKey){FREQ, 1, MODEL_MAX_LAYERS, 1, 1}, &rules->moe_freq));
    }
    if (rules->rule == WINDOW_PATTERN)
        TRY(key_read_size(
            config, &(SizeKey){PATTERN, 1, MODEL_MAX_LAYERS, defaults->pattern, defaults->pattern},
            &rules->pattern));
    if (rules->rule == WINDOW_FROM_LAYER || rules->rule == WINDOW_EVEN_BEFORE)
        TRY(key_read_size(config, &(SizeKey){MAX_WINDOW, 0, MODEL_MAX_POSITIONS, 28, 28},
                          &rules->max_window_layers));
    return read_mlp_only(config, arena, rules);
}

FeedForward model_dense_ffn(const FeedForward *ffn) {
    return (FeedForward){
        .intermediate_size = ffn->intermediate_size, .gated = ffn->gated, .bias = ffn->bias};
}

static LayerKind layer_of(const ModelDraft *draft, int has, bool moe, int window) {
    LayerKind kind = {.mixer = has & LAYER_OTHER ? draft->other : draft->mixer, .ffn = draft->ffn};
    kind.mixer.window = window;
    kind.mixer.chunk = has & LAYER_CHUNKED ? draft->mixer.chunk : 0;
    kind.mixer.no_positions = (has & LAYER_NO_POSITIONS) != 0;
    if (kind.mixer.no_positions) kind.mixer.qk_norm &= !kind.mixer.qk_norm_plain;
    if (has & LAYER_NO_MIXER) kind.mixer = (Mixer){.kind = MIXER_NONE};
    if (!moe) kind.ffn = model_dense_ffn(&draft->ffn);
    if (has & LAYER_NO_FFN) kind.ffn = (FeedForward){.none = true};
    return kind;
}

static bool layers_alike(const LayerKind *a, const LayerKind *b) {
    const Mixer *x = &a->mixer, *y = &b->mixer;
    return x->kind == y->kind && x->num_heads == y->num_heads &&
           x->num_kv_heads == y->num_kv_heads && x->index_num_heads == y->index_num_heads &&
           x->window == y->window && x->chunk == y->chunk && x->no_positions == y->no_positions &&
           kind_is_moe(a) == kind_is_moe(b) && a->ffn.none == b->ffn.none;
}

// Its number among the model's kinds; a new one where there is none like it.
static int kind_index(Model *model, const LayerKind *kind) {
    for (int i = 0; i < model->num_kinds; i++)
        if (layers_alike(&model->kinds[i], kind)) return i;
    if (model->num_kinds == MODEL_MAX_LAYER_KINDS) return -1;
    model->kinds[model->num_kinds] = *kind;
    return model->num_kinds++;
}

Status model_read_layers(const JsonNode *config, const LayerDefaults *defaults, Arena *arena,
                         ModelDraft *draft) {
    const int window = defaults->window;
    draft->arena = arena;
    if (!draft->layers) TRY(model_read_layer_types(config, draft));
    LayerRules rules = {.num_layers = draft->model.num_layers,
                        .has_experts = draft->ffn.num_experts > 0,
                        .rule = defaults->rule,
                        .layers = draft->layers};
    TRY(read_rules(config, defaults, arena, &rules));
    uint8_t *layer_kind = ARENA_ARRAY(arena, draft->model.num_layers, uint8_t);
    for (int i = 0; i < draft->model.num_layers; i++) {
        const bool sliding = layer_is_sliding(&rules, i);
        if (sliding && rules.layers && window == 0) {
            JsonNode node = key_find(config, WINDOW_KEYS);
            return json_error(&node, "missing or switched off; layer_types has sliding_attention");
        }
        const LayerKind kind = layer_of(draft, rules.layers ? rules.layers[i] : 0,
                                        layer_is_moe(&rules, i), sliding ? window : 0);
        const int index = kind_index(&draft->model, &kind);
        if (index < 0)
            return json_error(config, "layers of more than %d kinds are not supported yet",
                              MODEL_MAX_LAYER_KINDS);
        layer_kind[i] = (uint8_t)index;
    }
    draft->model.layer_kind = layer_kind;
    return status_ok();
}
