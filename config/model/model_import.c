#include "config/model/model_import.h"

#include "config/model/model_family.h"
#include "config/model/model_keys.h"
#include "config/model/model_limits.h"
#include "config/model/model_read.h"

#include <ctype.h>
#include <string.h>

static const char *lower_case(const char *text, Arena *arena) {
    char *copy = arena_strdup(arena, text);
    for (char *c = copy; *c; c++) *c = (char)tolower((unsigned char)*c);
    return copy;
}

const char *names_near(const char *name, const char *const *names, Arena *arena) {
    enum { MOST = 3 };
    int num_names = 0;
    while (names[num_names]) num_names++;
    const char **left = ARENA_ARRAY(arena, num_names + 1, const char *); // ends with NULL
    memcpy(left, names, (size_t)num_names * sizeof *left);
    const char *lower = lower_case(name, arena), *list = "";
    for (int found = 0; found < MOST; found++) {
        const char *nearest = name_nearest(lower, left);
        if (!nearest) break;
        list = arena_printf(arena, "%s%s%s", list, found ? ", " : "", nearest);
        int at = 0;
        while (left[at] != nearest) at++;
        for (; left[at]; at++) left[at] = left[at + 1];
    }
    return list;
}

// What of a wrapper of a text nothing here models; NULL where there is none.
static const char *unknown_tower(const JsonNode *config, VisionKind vision, const char **key) {
    static const char *const TOWERS[][2] = {{"vision_config", "tower for images"},
                                            {"audio_config", "tower for sound"}};
    for (size_t i = 0; i < sizeof TOWERS / sizeof *TOWERS; i++) {
        const JsonNode node = json_get(config, TOWERS[i][0]);
        if (!json_is_present(&node) || (i == 0 && vision != VISION_NONE)) continue;
        *key = TOWERS[i][0];
        return TOWERS[i][1];
    }
    return NULL;
}

// A model with a text that is known.
static Status refuse_wrapper(const JsonNode *config, const char *model_type, const char *text_type,
                             VisionKind vision) {
    static const char HINT[] = "for the text alone put what `meshwright models FILE --text-only "
                               "--json` prints in the place of the model";
    const char *key = "model_type", *tower = unknown_tower(config, vision, &key);
    const JsonNode node = json_get(config, key);
    if (tower)
        return json_error(&node,
                          "the %s of \"%.60s\" is not modelled yet; its text_config is "
                          "\"%.60s\", which is known: %s",
                          tower, model_type, text_type, HINT);
    return json_error(&node,
                      "\"%.60s\" is unknown, but its text_config is \"%.60s\", which is known; %s",
                      model_type, text_type, HINT);
}

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), least = strlen(end);
    return length >= least && strcmp(text + length - least, end) == 0;
}

// Of wrappers and their texts the list has the wrappers.
static Status refuse_model_type(const JsonNode *config, const JsonNode *node,
                                const char *model_type, Arena *arena) {
    const JsonNode text = json_get(config, "text_config"), inner = json_get(&text, "model_type");
    const char *text_type = cJSON_GetStringValue(inner.item);
    if (text_type && model_family_find(text_type))
        return refuse_wrapper(config, model_type, text_type, VISION_NONE);
    TRY(model_refuse_unsupported(json_is_present(&text) ? &text : config, NULL, arena));
    const char *const *names = model_family_names(arena);
    const char *near = names_near(model_type, names, arena);
    if (near[0])
        return json_error(node, "\"%.60s\" is unknown; the nearest known ones are %s", model_type,
                          near);
    const char *all = names[0];
    for (int i = 1; names[i]; i++)
        if (!ends_with(names[i], "_text")) all = arena_printf(arena, "%s, %s", all, names[i]);
    return json_error(node, "\"%.60s\" is unknown; known are %s", model_type, all);
}

static Status read_mlp(const ModelFamily *family, const JsonNode *config, ModelDraft *draft) {
    int otherwise = draft->ffn.intermediate_size > 0 ? draft->ffn.intermediate_size : KEY_REQUIRED;
    if (otherwise == KEY_REQUIRED && family->intermediate_unsaid) otherwise = 0;
    if (family->intermediate_ratio > 0)
        otherwise = family->intermediate_ratio * draft->model.hidden_size;
    draft->ffn.intermediate_size = otherwise;
    if (family->intermediate_fixed) return status_ok();
    return key_read_size(
        config, &(SizeKey){INTERMEDIATE_KEYS, 1, MODEL_MAX_INTERMEDIATE, otherwise, otherwise},
        &draft->ffn.intermediate_size);
}

static Status read_moe(const ModelFamily *family, const JsonNode *config, ModelDraft *draft) {
    if (family->traits.ffn.num_experts == 0) return status_ok();
    const int experts = family->traits.ffn.num_experts;
    TRY(key_read_size(config, &(SizeKey){EXPERTS_KEYS, 0, MODEL_MAX_EXPERTS, experts, 0},
                      &draft->ffn.num_experts));
    if (draft->ffn.num_experts == 0) { // DeepSeek's n_routed_experts null: every layer is dense
        draft->ffn.num_experts_per_tok = draft->ffn.moe_intermediate_size = 0;
        draft->ffn.shared_intermediate_size = 0;
        draft->ffn.router_bias = draft->ffn.expert_bias = draft->ffn.shared_expert_gate = false;
        return status_ok();
    }
    if (family->moe_size_is_dense) {
        draft->ffn.moe_intermediate_size = draft->ffn.intermediate_size;
        TRY(key_read_size(config,
                          &(SizeKey){EXPERTS_PER_TOKEN_KEYS, 1, MODEL_MAX_EXPERTS,
                                     draft->ffn.num_experts_per_tok, KEY_REQUIRED},
                          &draft->ffn.num_experts_per_tok));
        return status_ok();
    }
    return model_read_experts(config, draft->ffn.moe_intermediate_size, family->num_shared_experts,
                              draft);
}

static Status read_switches(const ModelFamily *family, const JsonNode *config, ModelDraft *draft) {
    TRY(key_read_bool(config, "tie_word_embeddings", &draft->model.tie_word_embeddings));
    TRY(key_read_bool(config, family->qkv_bias_key, &draft->mixer.qkv_bias));
    TRY(key_read_bool(config, family->out_bias_key, &draft->mixer.out_bias));
    return key_read_bool(config, family->mlp_bias_key, &draft->ffn.bias);
}

// Rows of the table of learned positions; 0 for every other kind of position.
static Status read_positions(const ModelFamily *family, const JsonNode *config, ModelDraft *draft) {
    if (family->traits.model.position != POSITION_LEARNED) return status_ok();
    const int rows = family->traits.model.max_position_embeddings;
    TRY(key_read_size(config, &(SizeKey){POSITIONS_KEYS, 1, MODEL_MAX_POSITIONS, rows, rows},
                      &draft->model.max_position_embeddings));
    draft->model.max_position_embeddings += family->position_extra_rows;
    return status_ok();
}

static Status read_window(const ModelFamily *family, const JsonNode *config, int *window) {
    bool used = !family->window_needs_switch;
    if (family->window_needs_switch) TRY(key_read_bool(config, "use_sliding_window", &used));
    TRY(key_read_size(config, &(SizeKey){WINDOW_KEYS, 0, MODEL_MAX_POSITIONS, family->window, 0},
                      window));
    if (!used) *window = 0;
    return status_ok();
}

static Status family_read(const ModelFamily *family, const JsonNode *config, Arena *arena,
                          ModelDraft *draft) {
    *draft = family->traits;
    draft->arena = arena;
    TRY(model_refuse_unsupported(config, family->reads_key, arena));
    TRY(model_read_sizes(config, draft));
    TRY(model_read_attention(config, draft));
    TRY(read_mlp(family, config, draft));
    TRY(read_moe(family, config, draft));
    TRY(model_read_expert_groups(config, draft));
    TRY(read_switches(family, config, draft));
    TRY(read_positions(family, config, draft));
    TRY(model_read_mtp(config, draft));
    ModelFunctions *functions = &draft->model.functions;
    TRY(family->rope_name ? model_read_stated(config, arena, functions)
                          : model_read_functions(config, arena, functions));
    if (draft->model.functions.swiglu_limit <= 0)
        draft->model.functions.swiglu_limit = family->traits.model.functions.swiglu_limit;
    if (family->rope_name) {
        draft->model.functions.rope = ROPE_OTHER;
        draft->model.functions.rope_name = family->rope_name;
    }
    if (family->adjust) TRY(family->adjust(config, draft));
    int window;
    TRY(read_window(family, config, &window));
    const LayerDefaults layers = {.first_k_dense = family->first_k_dense,
                                  .rule = family->window_rule,
                                  .window = window,
                                  .pattern = family->window_pattern};
    TRY(model_read_layers(config, &layers, arena, draft));
    return model_check(config, &draft->model);
}

Status model_import(const JsonNode *config, Arena *arena, Model *model) {
    TRY(json_expect_object(config));
    JsonNode type = json_get(config, "model_type");
    const char *model_type;
    TRY(json_read_string(&type, arena, &model_type));
    if (strcmp(model_type, "generic") == 0) {
        TRY(model_import_generic(config, arena, model));
        model->model_type = model_type;
        return status_ok();
    }
    if (strcmp(model_type, "t5") == 0 || strcmp(model_type, "mt5") == 0) {
        TRY(model_import_t5(config, model_type, arena, model));
        model->model_type = model_type;
        return status_ok();
    }
    const ModelFamily *family = model_family_find(model_type);
    if (!family) return refuse_model_type(config, &type, model_type, arena);

    ModelDraft draft;
    // A model that also sees images may keep its language model in text_config.
    JsonNode text = json_get(config, "text_config");
    if (json_is_present(&text)) TRY(json_expect_object(&text));
    const char *key;
    if (json_is_present(&text) && unknown_tower(config, family->vision, &key))
        return refuse_wrapper(config, model_type, model_type, family->vision);
    TRY(family_read(family, json_is_present(&text) ? &text : config, arena, &draft));
    *model = draft.model;
    if (json_is_present(&text))
        TRY(key_read_bool(config, "tie_word_embeddings", &model->tie_word_embeddings));
    TRY(model_read_vision(config, family->vision, arena, model));
    model->model_type = model_type;
    return status_ok();
}
