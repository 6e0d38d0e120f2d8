// Models and machines of a random scenario.
#include "tests/laws/scenarios.h"

#include "base/data_dir.h"
#include "base/json.h"

#include <string.h>

static void add_int(cJSON *object, const char *key, int value) {
    cJSON_AddNumberToObject(object, key, value);
}

static void member_set(cJSON *object, const char *key, cJSON *value) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    cJSON_AddItemToObject(object, key, value);
}

// GQA, MHA, MQA, or latents.
static void draw_attention(cJSON *model, Draw *draw, int hidden) {
    static const int HEAD_DIMS[] = {32, 64, 80, 96, 128, 128, 192, 256, 0};
    const int heads = 4 * draw_int(draw, 1, 16);
    add_int(model, "num_attention_heads", heads);
    if (draw_chance(draw, 0.2)) {
        if (draw_chance(draw, 0.6)) add_int(model, "q_lora_rank", 128 * draw_int(draw, 1, 12));
        add_int(model, "kv_lora_rank", 128 * draw_int(draw, 1, 6));
        add_int(model, "qk_nope_head_dim", 32 * draw_int(draw, 1, 5));
        add_int(model, "qk_rope_head_dim", 32 * draw_int(draw, 1, 3));
        add_int(model, "v_head_dim", 32 * draw_int(draw, 1, 5));
        return;
    }
    if (draw_chance(draw, 0.7)) add_int(model, "num_key_value_heads", draw_divisor(draw, heads));
    if (hidden % heads || draw_chance(draw, 0.6))
        add_int(model, "head_dim", draw_of(draw, HEAD_DIMS));
    if (draw_chance(draw, 0.2)) cJSON_AddBoolToObject(model, "qk_norm", draw_chance(draw, 0.8));
}

// Some layers with a window, or all.
static void draw_windows(cJSON *model, Draw *draw, int layers) {
    if (!draw_chance(draw, 0.15)) return;
    add_int(model, "sliding_window", draw_int(draw, 1, 64) * draw_of(draw, (int[]){64, 100, 0}));
    if (draw_chance(draw, 0.3)) return;
    cJSON *types = cJSON_AddArrayToObject(model, "layer_types");
    const int every = draw_int(draw, 2, 5);
    for (int l = 0; l < layers; l++)
        cJSON_AddItemToArray(
            types, cJSON_CreateString(l % every == 0 ? "full_attention" : "sliding_attention"));
}

static void draw_router(cJSON *model, Draw *draw, int experts, int topk) {
    static const char *const SCORES[] = {"softmax", "sigmoid", NULL};
    static const char *const METHODS[] = {"greedy", "noaux_tc", "group_limited_greedy", NULL};
    if (draw_chance(draw, 0.4))
        cJSON_AddStringToObject(model, "scoring_func", draw_text(draw, SCORES));
    if (draw_chance(draw, 0.3))
        cJSON_AddStringToObject(model, "topk_method", draw_text(draw, METHODS));
    if (draw_chance(draw, 0.4))
        cJSON_AddBoolToObject(model, "norm_topk_prob", draw_chance(draw, 0.5));
    if (draw_chance(draw, 0.2)) cJSON_AddNumberToObject(model, "routed_scaling_factor", 2.5);
    if (!draw_chance(draw, 0.25)) return;
    const int groups = draw_divisor(draw, experts), chosen = draw_int(draw, 1, groups);
    if (experts / groups * chosen < topk) return;
    add_int(model, "n_group", groups);
    add_int(model, "topk_group", chosen);
}

static void draw_experts(cJSON *model, Draw *draw, int layers) {
    const int experts = 4 * draw_int(draw, 1, 32), topk = draw_int(draw, 1, 8);
    const int size = 64 * draw_int(draw, 1, 40);
    add_int(model, "num_experts", experts);
    add_int(model, "num_experts_per_tok", topk < experts ? topk : experts);
    add_int(model, "moe_intermediate_size", size);
    if (draw_chance(draw, 0.3)) add_int(model, "n_shared_experts", draw_int(draw, 1, 3));
    if (draw_chance(draw, 0.3)) {
        add_int(model, "first_k_dense_replace", draw_int(draw, 0, layers < 3 ? layers : 3));
    } else if (draw_chance(draw, 0.2)) {
        add_int(model, "decoder_sparse_step", draw_int(draw, 1, 3));
    } else if (draw_chance(draw, 0.2)) {
        cJSON *dense = cJSON_AddArrayToObject(model, "mlp_only_layers");
        for (int l = 0; l < layers; l++)
            if (draw_chance(draw, 0.3)) cJSON_AddItemToArray(dense, cJSON_CreateNumber(l));
    }
    draw_router(model, draw, experts, topk);
}

static void draw_scaling(cJSON *model, Draw *draw) {
    static const char *const TYPES[] = {"llama3", "linear", "yarn", "default", NULL};
    if (draw_chance(draw, 0.5))
        add_int(model, "rope_theta", 10000 * draw_of(draw, (int[]){1, 5, 50, 100, 0}));
    if (draw_chance(draw, 0.15)) cJSON_AddNumberToObject(model, "partial_rotary_factor", 0.5);
    if (!draw_chance(draw, 0.25)) return;
    cJSON *scaling = cJSON_AddObjectToObject(model, "rope_scaling");
    const char *type = draw_text(draw, TYPES);
    cJSON_AddStringToObject(scaling, "rope_type", type);
    if (strcmp(type, "default") == 0) return;
    cJSON_AddNumberToObject(scaling, "factor", draw_chance(draw, 0.3) ? 2.5 : 8);
    if (draw_chance(draw, 0.4))
        add_int(scaling, "original_max_position_embeddings", 1024 << draw_int(draw, 0, 4));
    if (strcmp(type, "llama3") == 0 && draw_chance(draw, 0.4)) {
        cJSON_AddNumberToObject(scaling, "low_freq_factor", draw_chance(draw, 0.5) ? 1 : 2);
        cJSON_AddNumberToObject(scaling, "high_freq_factor", draw_chance(draw, 0.5) ? 4 : 8);
    }
}

// Positions, norms, biases, MLP: what the software calls by switches.
static void draw_kinds(cJSON *model, Draw *draw) {
    static const char *const POSITIONS[] = {"rope", "rope",  "rope", "learned",
                                            "none", "alibi", NULL};
    static const char *const NORMS[] = {"rmsnorm", "layernorm", NULL};
    static const char *const ACTIVATIONS[] = {"silu", "gelu", "gelu_new", "relu2", "relu", NULL};
    const char *position = draw_text(draw, POSITIONS), *norm = draw_text(draw, NORMS);
    const bool gated = draw_chance(draw, 0.6);
    cJSON_AddStringToObject(model, "position", position);
    cJSON_AddStringToObject(model, "norm", norm);
    if (draw_chance(draw, 0.5))
        cJSON_AddNumberToObject(model, norm[0] == 'r' ? "rms_norm_eps" : "layer_norm_eps",
                                draw_chance(draw, 0.5) ? 1e-6 : 1.5e-5);
    cJSON_AddBoolToObject(model, "gated_mlp", gated);
    if (draw_chance(draw, 0.3))
        cJSON_AddStringToObject(model, "hidden_act",
                                gated && draw_chance(draw, 0.7) ? "silu"
                                                                : draw_text(draw, ACTIVATIONS));
    const bool bias = draw_chance(draw, 0.4);
    cJSON_AddBoolToObject(model, "linear_bias", bias);
    if (!bias && draw_chance(draw, 0.2)) cJSON_AddTrueToObject(model, "qkv_bias");
    cJSON_AddBoolToObject(model, "tie_word_embeddings", draw_chance(draw, 0.5));
    if (draw_chance(draw, 0.7))
        add_int(model, "max_position_embeddings", 1 << draw_int(draw, 9, 17));
    if (strcmp(position, "rope") == 0) draw_scaling(model, draw);
}

static cJSON *draw_generic(Draw *draw) {
    cJSON *model = cJSON_CreateObject();
    const int layers = draw_int(draw, 1, 40), hidden = 64 * draw_int(draw, 4, 96);
    cJSON_AddStringToObject(model, "model_type", "generic");
    add_int(model, "num_hidden_layers", layers);
    add_int(model, "hidden_size", hidden);
    add_int(model, "vocab_size",
            draw_chance(draw, 0.5) ? 1024 * draw_int(draw, 8, 150) : draw_int(draw, 1000, 200000));
    draw_attention(model, draw, hidden);
    draw_windows(model, draw, layers);
    const bool experts = draw_chance(draw, 0.35);
    if (!experts || draw_chance(draw, 0.8))
        add_int(model, "intermediate_size", 32 * draw_int(draw, 8, 600));
    if (experts) draw_experts(model, draw, layers);
    draw_kinds(model, draw);
    if (draw_chance(draw, 0.12)) add_int(model, "num_nextn_predict_layers", draw_int(draw, 1, 2));
    return model;
}

static void number_change(cJSON *model, const char *key, int value) {
    if (cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(model, key)))
        member_set(model, key, cJSON_CreateNumber(value));
}

// A preset of other sizes, by whatever names its family has.
static void preset_vary(cJSON *model, Draw *draw) {
    static const char *const KEYS[] = {"source", "published_parameters", "parameters_source", NULL};
    for (int i = 0; KEYS[i]; i++) cJSON_DeleteItemFromObjectCaseSensitive(model, KEYS[i]);
    member_set(model, "name", cJSON_CreateString("varied"));
    if (draw_chance(draw, 0.7)) {
        static const char *const LAYERS[] = {"num_hidden_layers", "n_layer", "n_layers", NULL};
        const int layers = draw_int(draw, 2, 40);
        if (!cJSON_GetObjectItemCaseSensitive(model, "layer_types"))
            for (int i = 0; LAYERS[i]; i++) number_change(model, LAYERS[i], layers);
    }
    if (draw_chance(draw, 0.5)) number_change(model, "vocab_size", draw_int(draw, 1000, 200000));
    if (draw_chance(draw, 0.3))
        member_set(model, "tie_word_embeddings", cJSON_CreateBool(draw_chance(draw, 0.5)));
    if (draw_chance(draw, 0.3)) {
        const cJSON *heads = cJSON_GetObjectItemCaseSensitive(model, "num_attention_heads");
        if (cJSON_IsNumber(heads) && heads->valueint > 0)
            number_change(model, "num_key_value_heads", draw_divisor(draw, heads->valueint));
    }
    if (draw_chance(draw, 0.3)) {
        static const char *const ROWS[] = {"n_positions", "max_position_embeddings", NULL};
        for (int i = 0; ROWS[i]; i++) number_change(model, ROWS[i], 1 << draw_int(draw, 9, 15));
    }
}

cJSON *draw_model(const ScenarioSpace *space, Draw *draw) {
    Arena arena = {0};
    const char *const *names = space->models;
    int num;
    JsonNode root;
    cJSON *model = NULL;
    if (!space->only_presets && draw_chance(draw, 0.4)) return draw_generic(draw);
    if (!names && data_list(&arena, "models", &names, &num).code != STATUS_OK) names = NULL;
    const char *name = names ? draw_text(draw, names) : "llama-3.1-8b";
    if (!space->only_presets && draw_chance(draw, 0.3) &&
        json_load(data_path(&arena, "models", name), &arena, &root).code == STATUS_OK) {
        model = cJSON_Duplicate(root.item, true);
        preset_vary(model, draw);
    }
    if (!model) model = cJSON_CreateString(name);
    arena_free(&arena);
    return model;
}

// A machine of one's own: nodes of any size, switches of any kind, some of its GPUs.
static cJSON *draw_own_cluster(const ScenarioSpace *space, Draw *draw) {
    static const char *const GPUS[] = {
        "a100-sxm-80g",  "h100-sxm-80g",  "h100-sxm-80g",  "h200-sxm-141g", "b200-sxm-180g",
        "h100-pcie-80g", "a100-pcie-80g", "mi300x-192g",   "rtx4090-24g",   "gb200-186g",
        "l40s-48g",      "v100-sxm2-32g", "b300-sxm-288g", "h20-96g",       NULL};
    static const char *const LINKS[] = {"nvlink3", "nvlink4", "pcie4", "pcie5", NULL};
    static const char *const TOPOLOGIES[] = {"rail-fat-tree", "fat-tree", "rail-only", "dragonfly",
                                             NULL};
    const int per_node = draw_of(draw, (int[]){1, 2, 4, 4, 6, 8, 8, 8, 16, 0});
    const int most = space->max_gpus / per_node;
    const int nodes = most > 1 ? draw_int(draw, 1, most) : 1;
    cJSON *cluster = cJSON_CreateObject();
    cJSON_AddStringToObject(cluster, "gpu", draw_text(draw, GPUS));
    add_int(cluster, "num_gpus",
            draw_chance(draw, 0.8) ? nodes * per_node : draw_int(draw, 1, nodes * per_node));
    add_int(cluster, "gpus_per_node", per_node);
    cJSON *up = cJSON_AddObjectToObject(cluster, "scale_up");
    cJSON_AddStringToObject(up, "link", draw_text(draw, LINKS));
    if (draw_chance(draw, 0.4)) add_int(up, "domain_gpus", draw_divisor(draw, per_node));
    cJSON *out = cJSON_AddObjectToObject(cluster, "scale_out");
    add_int(out, "nics_per_node", draw_divisor(draw, per_node));
    cJSON_AddNumberToObject(out, "nic_bytes_per_s", draw_chance(draw, 0.5) ? 50e9 : 12.5e9);
    cJSON_AddStringToObject(out, "topology", draw_text(draw, TOPOLOGIES));
    if (draw_chance(draw, 0.3)) cJSON_AddNumberToObject(out, "oversubscription", 2);
    return cluster;
}

cJSON *draw_cluster(const ScenarioSpace *space, Draw *draw) {
    Arena arena = {0};
    const char *const *names;
    int num;
    cJSON *cluster = NULL;
    if (draw_chance(draw, 0.7) &&
        data_list(&arena, "hw-profiles/clusters", &names, &num).code == STATUS_OK) {
        const char *name = draw_text(draw, names);
        const int per_node = strstr(name, "nvl72") ? 72 : 8, most = space->max_gpus / per_node;
        const int nodes = most < 1                 ? 1
                          : draw_chance(draw, 0.6) ? draw_power(draw, most)
                                                   : draw_int(draw, 1, most);
        cluster = cJSON_CreateString(arena_printf(&arena, "%s:%d", name, nodes));
    }
    if (!cluster) cluster = draw_own_cluster(space, draw);
    arena_free(&arena);
    return cluster;
}
