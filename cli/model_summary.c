#include "cli/model_summary.h"

#include "base/data_dir.h"
#include "cli/command.h"
#include "config/model/mixer.h"
#include "config/model/model_family.h"
#include "config/model/model_front.h"
#include "report/units.h"

#include <stdio.h>
#include <string.h>

enum { CACHE_BYTES = 2 }; // of a number in the cache: 16 bits

// The model, and the document it was read from.
typedef struct {
    Model model;
    JsonNode document;
    double published_parameters; // 0 where the document states none
} Shown;

// The text of a document with towers, as a document of its own; the document where it has none.
// Its family is that of the wrapper where its own model_type is no family's.
static JsonNode text_of(const JsonNode *document, const char *name, Arena *arena) {
    const JsonNode text = json_get(document, "text_config");
    if (!cJSON_IsObject(text.item)) return *document;
    cJSON *own = cJSON_Duplicate(text.item, true);
    json_own(arena, own);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(own, "model_type"));
    const cJSON *outer = cJSON_GetObjectItem(document->item, "model_type");
    if (outer && (!type || !model_family_find(type))) {
        cJSON_DeleteItemFromObject(own, "model_type");
        cJSON_AddItemToObject(own, "model_type", cJSON_Duplicate(outer, true));
    }
    const cJSON *tied = cJSON_GetObjectItem(document->item, "tie_word_embeddings");
    if (tied) {
        cJSON_DeleteItemFromObject(own, "tie_word_embeddings");
        cJSON_AddItemToObject(own, "tie_word_embeddings", cJSON_Duplicate(tied, true));
    }
    cJSON_DeleteItemFromObject(own, "name");
    cJSON_AddStringToObject(own, "name", name);
    return (JsonNode){.file = document->file, .item = own};
}

static const char *file_stem(const char *path, Arena *arena) {
    const char *slash = strrchr(path, '/');
    char *stem = arena_strdup(arena, slash ? slash + 1 : path);
    char *dot = strrchr(stem, '.');
    if (dot && strcmp(dot, ".json") == 0) *dot = '\0';
    return stem;
}

static Status shown_load(const char *name, bool text_only, Arena *arena, Shown *out) {
    const bool is_path = value_is_path(name);
    const char *path = is_path ? name : data_path(arena, "models", name);
    TRY(json_load(path, arena, &out->document));
    cJSON *text = cJSON_CreateString(name);
    json_own(arena, text);
    JsonNode value = {.item = text, .key = "model"};
    if (text_only) value = out->document = text_of(&out->document, file_stem(path, arena), arena);
    TRY(model_load(&value, arena, &out->model));
    const JsonNode published = json_get(&out->document, "published_parameters");
    if (json_is_present(&published))
        TRY(json_read_double(&published, 0, 1e15, &out->published_parameters));
    return status_ok();
}

// Bytes that a token of each layer of the kind leaves in the cache, in 16 bits.
static double cache_bytes(const Mixer *mixer) {
    return CACHE_BYTES * mixer_row(mixer->kind)->cache_values(mixer);
}

// Bytes that a sequence leaves there however long it is.
static double state_bytes(const Mixer *mixer) {
    return mixer_row(mixer->kind)->state_bytes(mixer, CACHE_BYTES);
}

// Of a tower that the model has beside its text; 0 where there is none.
static double tower_parameters(const Model *model) {
    if (!model->front || model->num_front_layers > 0) return 0;
    const Model *own = model->front->model;
    double sum = model_front_parameters(model);
    for (int l = 0; l < own->num_layers; l++)
        sum += model_layer_parameters(own, &own->kinds[own->layer_kind[l]]);
    return sum;
}

static int layers_of_kind(const Model *model, int kind) {
    int num = 0;
    for (int l = 0; l < model->num_layers; l++) num += model->layer_kind[l] == kind;
    return num;
}

static double sum_over_layers(const Model *model, double (*bytes)(const Mixer *)) {
    double sum = 0;
    for (int l = 0; l < model->num_layers; l++) {
        const LayerKind *kind = &model->kinds[model->layer_kind[l]];
        if (!kind->front) sum += bytes(&kind->mixer);
    }
    return sum;
}

// --- As JSON

static cJSON *mixer_to_json(const Mixer *mixer) {
    cJSON *object = cJSON_CreateObject();
    const MixerRow *row = mixer_row(mixer->kind);
    cJSON_AddStringToObject(object, "kind", row->name);
    row->add_json(mixer, object);
    return object;
}

static cJSON *ffn_to_json(const FeedForward *ffn) {
    cJSON *object = cJSON_CreateObject();
    if (ffn->none) {
        cJSON_AddStringToObject(object, "kind", "none");
        return object;
    }
    cJSON_AddStringToObject(object, "kind", ffn->num_experts > 0 ? "experts" : "dense");
    cJSON_AddBoolToObject(object, "gated", ffn->gated);
    if (ffn->num_experts == 0) {
        cJSON_AddNumberToObject(object, "intermediate_size", ffn->intermediate_size);
        return object;
    }
    cJSON_AddNumberToObject(object, "num_experts", ffn->num_experts);
    cJSON_AddNumberToObject(object, "num_experts_per_tok", ffn->num_experts_per_tok);
    cJSON_AddNumberToObject(object, "moe_intermediate_size", ffn->moe_intermediate_size);
    if (ffn->shared_intermediate_size > 0)
        cJSON_AddNumberToObject(object, "shared_intermediate_size", ffn->shared_intermediate_size);
    return object;
}

static cJSON *layers_to_json(const Model *model) {
    cJSON *list = cJSON_CreateArray();
    for (int k = 0; k < model->num_kinds; k++) {
        const LayerKind *kind = &model->kinds[k];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddNumberToObject(object, "num_layers", layers_of_kind(model, k));
        if (kind->front) cJSON_AddBoolToObject(object, "front", true);
        cJSON_AddItemToObject(object, "mixer", mixer_to_json(&kind->mixer));
        cJSON_AddItemToObject(object, "feed_forward", ffn_to_json(&kind->ffn));
        json_add_number(object, "parameters", model_layer_parameters(model, kind));
        if (!kind->front)
            json_add_number(object, "cache_bytes_per_token", cache_bytes(&kind->mixer));
        if (state_bytes(&kind->mixer) > 0)
            json_add_number(object, "state_bytes_per_sequence", state_bytes(&kind->mixer));
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

static cJSON *summary_to_json(const Shown *shown) {
    const Model *model = &shown->model;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", model->name);
    cJSON_AddStringToObject(object, "model_type", model->model_type);
    json_add_number(object, "parameters", model_num_parameters(model));
    json_add_number(object, "active_parameters", model_active_parameters(model));
    json_add_number(object, "mtp_parameters", model_mtp_parameters(model));
    if (tower_parameters(model) > 0)
        json_add_number(object, "tower_parameters", tower_parameters(model));
    if (shown->published_parameters > 0)
        json_add_number(object, "published_parameters", shown->published_parameters);
    if (model->source) cJSON_AddStringToObject(object, "source", model->source);
    json_add_number(object, "cache_bytes_per_token", sum_over_layers(model, cache_bytes));
    const double state = sum_over_layers(model, state_bytes);
    if (state > 0) json_add_number(object, "state_bytes_per_sequence", state);
    cJSON_AddItemToObject(object, "layers", layers_to_json(model));
    return object;
}

// --- As text

static const char *ffn_text(const FeedForward *ffn, Arena *arena) {
    const char *gated = ffn->gated ? "gated " : "";
    if (ffn->none) return "no feed-forward";
    if (ffn->num_experts == 0)
        return arena_printf(arena, "%sMLP of %d", gated, ffn->intermediate_size);
    const char *text = arena_printf(arena, "%d of %d %sexperts of %d", ffn->num_experts_per_tok,
                                    ffn->num_experts, gated, ffn->moe_intermediate_size);
    if (ffn->shared_intermediate_size == 0) return text;
    return arena_printf(arena, "%s, shared %d", text, ffn->shared_intermediate_size);
}

static void text_print(const Shown *shown, Arena *arena) {
    const Model *model = &shown->model;
    char number[UNITS_SIZE];
    printf("%s (%s)\n", model->name, model->model_type);
    printf("parameters  %s", units_count(model_num_parameters(model), number));
    printf(", %s of them active for a token", units_count(model_active_parameters(model), number));
    if (model->num_mtp_layers > 0)
        printf("; multi-token prediction %s more",
               units_count(model_mtp_parameters(model), number));
    if (tower_parameters(model) > 0)
        printf("; the tower for images %s more", units_count(tower_parameters(model), number));
    if (shown->published_parameters > 0)
        printf("; published %s", units_count(shown->published_parameters, number));
    putchar('\n');
    for (int k = 0; k < model->num_kinds; k++) {
        const LayerKind *kind = &model->kinds[k];
        printf("%s  %d%s: %s; %s\n", k == 0 ? "layers    " : "          ", layers_of_kind(model, k),
               kind->front ? " before the text" : "",
               mixer_row(kind->mixer.kind)->text(&kind->mixer, arena), ffn_text(&kind->ffn, arena));
    }
    printf("cache       %s a token in 16 bits",
           units_bytes(sum_over_layers(model, cache_bytes), number));
    const double state = sum_over_layers(model, state_bytes);
    if (state > 0) printf(", and %s a sequence in states (fp32)", units_bytes(state, number));
    putchar('\n');
    if (model->source) printf("source      %s\n", model->source);
    putchar('\n');
}

Status model_summary_print(const char *name, bool json, bool text_only, Arena *arena) {
    Shown shown = {0};
    TRY(shown_load(name, text_only, arena, &shown));
    if (!json) {
        text_print(&shown, arena);
        return json_write(shown.document.item, stdout);
    }
    cJSON *answer = cJSON_CreateObject();
    cJSON_AddItemToObject(answer, "model", cJSON_Duplicate(shown.document.item, true));
    cJSON_AddItemToObject(answer, "summary", summary_to_json(&shown));
    return answer_json(answer);
}
