#include "config/model/model.h"

#include "base/aliases.h"
#include "base/data_dir.h"
#include "config/model/model_import.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The last part of a path, without ".json".
static const char *name_of_path(const char *path, Arena *arena) {
    char *text = arena_strdup(arena, path);
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '/') text[--length] = '\0';
    char *slash = strrchr(text, '/');
    char *name = slash ? slash + 1 : text;
    length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".json") == 0) name[length - 5] = '\0';
    return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 ? name : "model";
}

// The name of the folder that a file lies in.
static const char *folder_name(const char *path, Arena *arena) {
    char *whole = realpath(path, NULL);
    if (!whole) return "model";
    char *slash = strrchr(whole, '/');
    if (slash) *slash = '\0';
    const char *name = name_of_path(whole, arena);
    free(whole);
    return name;
}

// The name of a model in a file: the file's, or where that is config.json, as Hugging Face calls
// all of them, what the document says it was loaded from, or the folder.
static const char *name_of_file(const JsonNode *root, const char *path, Arena *arena) {
    const char *slash = strrchr(path, '/');
    if (strcmp(slash ? slash + 1 : path, "config.json") != 0) return name_of_path(path, arena);
    JsonNode origin = json_get(root, "_name_or_path");
    const char *said = cJSON_IsString(origin.item) ? origin.item->valuestring : "";
    return said[0] ? name_of_path(said, arena) : folder_name(path, arena);
}

// Reads the model of a whole document or of an object in a scenario.
static Status model_read(const JsonNode *config, const char *fallback_name, Arena *arena,
                         Model *out) {
    TRY(model_import(config, arena, out));
    out->name = fallback_name ? fallback_name : out->model_type;
    JsonNode name = json_get(config, "name"), source = json_get(config, "source");
    // In a Hugging Face file these are keys like any other unknown one, unless they fit.
    const bool ours = strcmp(out->model_type, "generic") == 0;
    if (cJSON_IsString(name.item) || (ours && json_is_present(&name)))
        TRY(json_read_string(&name, arena, &out->name));
    if (cJSON_IsString(source.item) || (ours && json_is_present(&source)))
        TRY(json_read_string(&source, arena, &out->source));
    return status_ok();
}

// The sentence for a name that no preset has.
static Status preset_unknown(const char *name, Arena *arena, const char **sentence) {
    const char *const *names;
    int num_names;
    TRY(data_list(arena, "models", &names, &num_names));
    const char *near = names_near(name, names, arena);
    *sentence = near[0] ? arena_printf(arena, "\"%.60s\" is unknown; the nearest known ones are %s",
                                       name, near)
                        : arena_printf(arena,
                                       "\"%.60s\" is unknown; `meshwright models` lists "
                                       "what is known",
                                       name);
    return status_ok();
}

static Status preset_read(const char *name, Arena *arena, JsonNode *root, Model *out) {
    TRY(json_load(data_path(arena, "models", name), arena, root));
    TRY(model_read(root, name, arena, out));
    out->name = arena_strdup(arena, name);
    return status_ok();
}

static bool preset_exists(const char *name, Arena *arena) {
    return !strchr(name, '/') && access(data_path(arena, "models", name), F_OK) == 0;
}

// The preset's name as its file has it, without regard to capitals; NULL where there is none.
static const char *preset_find(const char *name, Arena *arena) {
    const char *const *names;
    int num_names;
    if (preset_exists(name, arena)) return name;
    if (data_list(arena, "models", &names, &num_names).code != STATUS_OK) return NULL;
    int index = name_find(name, names);
    return index >= 0 ? names[index] : NULL;
}

Status model_load_preset(const char *name, Arena *arena, Model *out) {
    JsonNode root;
    const char *sentence, *found = preset_find(name, arena);
    if (found) return preset_read(found, arena, &root, out);
    TRY(preset_unknown(name, arena, &sentence));
    return status_error(STATUS_INVALID, "model: %s", sentence);
}

// A Hugging Face name such as meta-llama/Llama-3.1-70B looks like a path: name the presets too.
static Status file_missing(const Status *reason, const char *path, Arena *arena) {
    const char *const *names;
    int num_names;
    TRY(data_list(arena, "models", &names, &num_names));
    const char *near = names_near(name_of_path(path, arena), names, arena);
    if (!near[0]) return *reason;
    return status_error(reason->code, "%s; presets of a similar name are %s", reason->text, near);
}

static Status model_load_file(const JsonNode *value, const char *path, Arena *arena, Model *out) {
    JsonNode root;
    const char *beside = value->file ? path_beside(arena, value->file, path) : path;
    Status loaded = json_load_named(value, beside, arena, &root);
    if (loaded.code != STATUS_OK && access(beside, F_OK) != 0)
        return file_missing(&loaded, path, arena);
    TRY(loaded);
    return model_read(&root, name_of_file(&root, beside, arena), arena, out);
}

Status model_load(const JsonNode *value, Arena *arena, Model *out) {
    if (cJSON_IsObject(value->item)) return model_read(value, NULL, arena, out);
    if (!cJSON_IsString(value->item))
        return json_error(value, "expected a preset's name, a path or an object, found %s",
                          json_type_name(value));
    const char *name, *sentence;
    TRY(json_read_string(value, arena, &name));
    if (value_is_path(name)) return model_load_file(value, name, arena, out);
    if (preset_find(name, arena)) return model_load_preset(name, arena, out);
    TRY(preset_unknown(name, arena, &sentence));
    return json_error(value, "%s", sentence);
}

// The kind that model_mixer and model_ffn speak of.
static const LayerKind *main_kind(const Model *model) {
    const LayerKind *first = NULL;
    for (int i = 0; i < model->num_kinds; i++) {
        const LayerKind *kind = &model->kinds[i];
        if (kind->front) continue;
        if (kind_is_moe(kind)) return kind;
        if (!first) first = kind;
    }
    return first ? first : &model->kinds[0];
}

const Mixer *model_mixer(const Model *model) {
    const LayerKind *main = main_kind(model), *first = NULL;
    if (mixer_is_attention(&main->mixer)) return &main->mixer;
    for (int i = 0; i < model->num_kinds; i++) {
        const LayerKind *kind = &model->kinds[i];
        if (kind->front || !mixer_is_attention(&kind->mixer)) continue;
        if (!first || (kind_is_moe(kind) && !kind_is_moe(first))) first = kind;
    }
    return first ? &first->mixer : &main->mixer;
}

const FeedForward *model_ffn(const Model *model) {
    return &main_kind(model)->ffn;
}

static Status summary_read(const char *name, Arena *arena, ModelSummary *out) {
    JsonNode root;
    Model model;
    TRY(preset_read(name, arena, &root, &model));
    *out = (ModelSummary){.name = name,
                          .model_type = model.model_type,
                          .num_parameters = model_num_parameters(&model),
                          .active_parameters = model_active_parameters(&model),
                          .source = model.source};
    JsonNode published = json_get(&root, "published_parameters");
    if (json_is_present(&published))
        TRY(json_read_double(&published, 0, 1e15, &out->published_parameters));
    return status_ok();
}

Status model_list(Arena *arena, ModelSummary **out, int *num_models) {
    const char *const *names;
    int num_names;
    TRY(data_list(arena, "models", &names, &num_names));
    ModelSummary *list = ARENA_ARRAY(arena, num_names, ModelSummary);
    for (int i = 0; i < num_names; i++) TRY(summary_read(names[i], arena, &list[i]));
    *out = list;
    *num_models = num_names;
    return status_ok();
}
