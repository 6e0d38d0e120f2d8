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
    const bool *sliding;   // [num_layers] where the file has layer_types, else NULL
} LayerRules;

static bool layer_is_moe(const LayerRules *rules, int layer) {
    return rules->has_experts && layer >= rules->first_k_dense && !rules->mlp_only[layer] &&
           (layer + 1) % rules->sparse_step == 0 && layer % rules->moe_freq == 0;
}

static bool layer_is_sliding(const LayerRules *rules, int layer) {
    if (rules->sliding) return rules->sliding[layer];
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

static Status read_layer_type(const JsonNode *node, bool *sliding) {
    static const char *const NAMES[] = {"full_attention", "sliding_attention", "chunked_attention",
                                        "linear_attention", NULL};
    int kind;
    TRY(json_read_name(node, NAMES, &kind));
    if (kind > 1) return json_error(node, "\"%s\" is not supported yet", NAMES[kind]);
    *sliding = kind == 1;
    return status_ok();
}

static Status read_layer_types(const JsonNode *config, Arena *arena, LayerRules *rules) {
    JsonNode list = json_get(config, "layer_types");
    if (!json_is_present(&list)) return status_ok();
    TRY(json_expect_array(&list));
    if (json_size(&list) != rules->num_layers)
        return json_error(&list, "has %d entries; expected one for each of the %d layers",
                          json_size(&list), rules->num_layers);
    bool *sliding = ARENA_ARRAY(arena, rules->num_layers, bool);
    int layer = 0;
    const cJSON *item; // json_at() walks the list from its start
    cJSON_ArrayForEach(item, list.item) {
        JsonNode node = {.file = list.file, .item = item, .parent = &list, .index = layer};
        TRY(read_layer_type(&node, &sliding[layer]));
        layer++;
    }
    rules->sliding = sliding;
    return status_ok();
}

static Status read_rules(const JsonNode *config, const LayerDefaults *defaults, Arena *arena,
                         LayerRules *rules) {
    static const char *const FIRST_K[] = {"first_k_dense_replace", "moe_layer_start_index", NULL};
    static const char *const STEP[] = {"decoder_sparse_step", NULL};
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
    TRY(read_mlp_only(config, arena, rules));
    return read_layer_types(config, arena, rules);
}

FeedForward model_dense_ffn(const FeedForward *ffn) {
    return (FeedForward){
        .intermediate_size = ffn->intermediate_size, .gated = ffn->gated, .bias = ffn->bias};
}

// The kind of the layers with this window, with experts or without; a new one where there is none.
static int kind_index(ModelDraft *draft, bool moe, int window) {
    Model *model = &draft->model;
    for (int i = 0; i < model->num_kinds; i++)
        if (kind_is_moe(&model->kinds[i]) == moe && model->kinds[i].mixer.window == window)
            return i;
    LayerKind *kind = &model->kinds[model->num_kinds]; // two choices of each: they are few enough
    *kind = (LayerKind){.mixer = draft->mixer, .ffn = draft->ffn};
    kind->mixer.window = window;
    if (!moe) kind->ffn = model_dense_ffn(&draft->ffn);
    return model->num_kinds++;
}

Status model_read_layers(const JsonNode *config, const LayerDefaults *defaults, Arena *arena,
                         ModelDraft *draft) {
    const int window = defaults->window;
    LayerRules rules = {.num_layers = draft->model.num_layers,
                        .has_experts = draft->ffn.num_experts > 0,
                        .rule = defaults->rule};
    TRY(read_rules(config, defaults, arena, &rules));
    uint8_t *layer_kind = ARENA_ARRAY(arena, draft->model.num_layers, uint8_t);
    for (int i = 0; i < draft->model.num_layers; i++) {
        const bool sliding = layer_is_sliding(&rules, i);
        if (sliding && rules.sliding && window == 0) {
            JsonNode node = key_find(config, WINDOW_KEYS);
            return json_error(&node, "missing or switched off; layer_types has sliding_attention");
        }
        layer_kind[i] = (uint8_t)kind_index(draft, layer_is_moe(&rules, i), sliding ? window : 0);
    }
    draft->model.layer_kind = layer_kind;
    return status_ok();
}
