#include "cli/model_summary.h"

#include "base/data_dir.h"
#include "cli/command.h"
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

static Status shown_load(const char *name, Arena *arena, Shown *out) {
    const bool is_path = value_is_path(name);
    const char *path = is_path ? name : data_path(arena, "models", name);
    TRY(json_load(path, arena, &out->document));
    cJSON *text = cJSON_CreateString(name);
    const JsonNode value = {.item = text, .key = "model"};
    const Status status = model_load(&value, arena, &out->model);
    cJSON_Delete(text);
    TRY(status);
    const JsonNode published = json_get(&out->document, "published_parameters");
    if (json_is_present(&published))
        TRY(json_read_double(&published, 0, 1e15, &out->published_parameters));
    return status_ok();
}

// Bytes that a token of each layer of the kind leaves in the cache, in 16 bits.
static double cache_bytes(const Mixer *mixer) {
    if (mixer->kind == MIXER_LATENT_ATTENTION)
        return CACHE_BYTES * (double)(mixer->kv_lora_rank + mixer->qk_rope_head_dim);
    return CACHE_BYTES * 2.0 * mixer->num_kv_heads * mixer->head_dim;
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

static double all_cache_bytes(const Model *model) {
    double sum = 0;
    for (int l = 0; l < model->num_layers; l++) {
        const LayerKind *kind = &model->kinds[model->layer_kind[l]];
        if (!kind->front) sum += cache_bytes(&kind->mixer);
    }
    return sum;
}

// --- As JSON

static cJSON *mixer_to_json(const Mixer *mixer) {
    cJSON *object = cJSON_CreateObject();
    const bool latent = mixer->kind == MIXER_LATENT_ATTENTION;
    cJSON_AddStringToObject(object, "kind", latent ? "latent_attention" : "attention");
    cJSON_AddNumberToObject(object, "num_heads", mixer->num_heads);
    if (latent) {
        cJSON_AddNumberToObject(object, "q_lora_rank", mixer->q_lora_rank);
        cJSON_AddNumberToObject(object, "kv_lora_rank", mixer->kv_lora_rank);
    } else {
        cJSON_AddNumberToObject(object, "num_kv_heads", mixer->num_kv_heads);
    }
    cJSON_AddNumberToObject(object, "head_dim", mixer->head_dim);
    if (mixer->window > 0) cJSON_AddNumberToObject(object, "window", mixer->window);
    return object;
}

static cJSON *ffn_to_json(const FeedForward *ffn) {
    cJSON *object = cJSON_CreateObject();
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
    json_add_number(object, "cache_bytes_per_token", all_cache_bytes(model));
    cJSON_AddItemToObject(object, "layers", layers_to_json(model));
    return object;
}

// --- As text

static const char *mixer_text(const Mixer *mixer, Arena *arena) {
    const char *text =
        mixer->kind == MIXER_LATENT_ATTENTION
            ? arena_printf(arena, "latent attention, %d heads of %d, rank %d", mixer->num_heads,
                           mixer->head_dim, mixer->kv_lora_rank)
            : arena_printf(arena, "attention, %d heads of %d for %d of keys and values",
                           mixer->num_heads, mixer->head_dim, mixer->num_kv_heads);
    return mixer->window > 0 ? arena_printf(arena, "%s, window %d", text, mixer->window) : text;
}

static const char *ffn_text(const FeedForward *ffn, Arena *arena) {
    const char *gated = ffn->gated ? "gated " : "";
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
               kind->front ? " before the text" : "", mixer_text(&kind->mixer, arena),
               ffn_text(&kind->ffn, arena));
    }
    printf("cache       %s a token in 16 bits\n", units_bytes(all_cache_bytes(model), number));
    if (model->source) printf("source      %s\n", model->source);
    putchar('\n');
}

Status model_summary_print(const char *name, bool json, Arena *arena) {
    Shown shown = {0};
    TRY(shown_load(name, arena, &shown));
    if (!json) {
        text_print(&shown, arena);
        return json_write(shown.document.item, stdout);
    }
    cJSON *answer = cJSON_CreateObject();
    cJSON_AddItemToObject(answer, "model", cJSON_Duplicate(shown.document.item, true));
    cJSON_AddItemToObject(answer, "summary", summary_to_json(&shown));
    return answer_json(answer);
}
