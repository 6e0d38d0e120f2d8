#include "whatif/change.h"

#include "base/data_dir.h"
#include "config/model/model_keys.h"

#include <stdlib.h>
#include <string.h>

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

// --- What is only named, written out

static void member_replace(cJSON *object, const char *key, cJSON *value) {
    if (cJSON_GetObjectItemCaseSensitive(object, key))
        cJSON_ReplaceItemInObjectCaseSensitive(object, key, value);
    else
        cJSON_AddItemToObject(object, key, value);
}

// A preset's file without what only files have.
static Status file_object(const char *path, Arena *arena, cJSON **out) {
    static const char *const FILE_KEYS[] = {"schema", "name", "title", "sources"};
    JsonNode root;
    TRY(json_load(path, arena, &root));
    *out = cJSON_Duplicate(root.item, true);
    for (size_t i = 0; i < sizeof FILE_KEYS / sizeof *FILE_KEYS; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(*out, FILE_KEYS[i]);
    return status_ok();
}

// A path in an object of a file, from any folder.
static void path_make_absolute(cJSON *object, const char *key, const char *file, Arena *arena) {
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    if (!path || !value_is_path(path)) return;
    char *whole = realpath(path_beside(arena, file, path), NULL);
    if (whole) member_replace(object, key, cJSON_CreateString(whole));
    free(whole);
}

// A cluster's file as the object of the contract. The scenario was read, so the file is there.
static Status cluster_file_object(const Scenario *scenario, const char *path, Arena *arena,
                                  cJSON **out) {
    const char *file = path_beside(arena, scenario->file, path);
    TRY(file_object(file, arena, out));
    path_make_absolute(*out, "gpu", file, arena);
    path_make_absolute(*out, "bandwidth_matrix", file, arena);
    path_make_absolute(cJSON_GetObjectItemCaseSensitive(*out, "scale_up"), "link", file, arena);
    return status_ok();
}

// "PRESET:NODES" as the object of the contract. The scenario was read, so the preset is there.
static Status cluster_object(const Scenario *scenario, const char *preset, Arena *arena,
                             cJSON **out) {
    if (value_is_json_path(preset)) return cluster_file_object(scenario, preset, arena, out);
    char *name = arena_strdup(arena, preset);
    name[strcspn(name, ":")] = '\0';
    TRY(file_object(data_path(arena, "hw-profiles/clusters", name), arena, out));
    member_replace(*out, "num_gpus", cJSON_CreateNumber(cluster_total_gpus(&scenario->cluster)));
    return status_ok();
}

// The model as an object with its name.
static Status model_object(const Scenario *scenario, Arena *arena, cJSON **out) {
    const cJSON *document = scenario->model_document;
    if (cJSON_IsString(document)) {
        JsonNode root;
        TRY(json_load(data_path(arena, "models", document->valuestring), arena, &root));
        document = root.item;
    }
    *out = cJSON_Duplicate(document, true);
    return status_ok();
}

Status change_base(const Scenario *scenario, const char *const *paths, int num_paths, bool replan,
                   Arena *arena, const cJSON **out) {
    cJSON *copy = cJSON_Duplicate(scenario->document, true);
    json_own(arena, copy);
    for (int i = 0; i < num_paths; i++) {
        cJSON *model = cJSON_GetObjectItemCaseSensitive(copy, "model");
        cJSON *cluster = cJSON_GetObjectItemCaseSensitive(copy, "cluster");
        if (starts_with(paths[i], "model.") && cJSON_IsString(model)) {
            cJSON *object;
            TRY(model_object(scenario, arena, &object));
            member_replace(copy, "model", object);
        }
        if (starts_with(paths[i], "cluster.") && cJSON_IsString(cluster)) {
            cJSON *object;
            TRY(cluster_object(scenario, cluster->valuestring, arena, &object));
            member_replace(copy, "cluster", object);
        }
    }
    bool is_plan = cJSON_GetObjectItemCaseSensitive(copy, "provenance") != NULL;
    if (replan && is_plan) cJSON_DeleteItemFromObjectCaseSensitive(copy, "parallel");
    *out = copy;
    return status_ok();
}

Status change_replan(const Scenario *scenario, Arena *arena, Scenario *out) {
    *out = *scenario;
    if (!cJSON_GetObjectItemCaseSensitive(scenario->document, "provenance")) return status_ok();
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = scenario->file};
    TRY(change_base(scenario, NULL, 0, true, arena, &root->item));
    return scenario_read(root, arena, out);
}

// --- Paths

// One step of a path: a key, or an index where key is empty.
typedef struct {
    char key[64];
    int index;
} Step;

// Reads the next step and moves *path behind it. Returns false where the path is malformed.
static bool step_next(const char **path, Step *out) {
    const char *at = *path;
    *out = (Step){.index = -1};
    if (*at == '[') {
        char *end;
        long index = strtol(at + 1, &end, 10);
        if (end == at + 1 || *end != ']' || index < 0 || index > 1 << 20) return false;
        out->index = (int)index;
        at = end + 1;
    } else {
        size_t length = strcspn(at, ".[");
        if (length == 0 || length >= sizeof out->key) return false;
        memcpy(out->key, at, length);
        at += length;
    }
    if (*at == '.' && at[1] == '\0') return false;
    if (*at == '.') at++;
    *path = at;
    return true;
}

static cJSON *step_into(cJSON *node, const Step *step) {
    if (step->key[0]) return cJSON_GetObjectItemCaseSensitive(node, step->key);
    return cJSON_IsArray(node) ? cJSON_GetArrayItem(node, step->index) : NULL;
}

static Status path_error(const Scenario *scenario, const char *path, const char *what) {
    return status_at(STATUS_INVALID, scenario->file, path, "%s", what);
}

Status change_set(const Scenario *scenario, cJSON *document, const char *path, const cJSON *value) {
    cJSON *node = document;
    const char *rest = path;
    Step step;
    for (;;) {
        if (!step_next(&rest, &step))
            return path_error(scenario, path, "not a path; expected keys joined by dots");
        if (*rest == '\0') break;
        cJSON *next = step_into(node, &step);
        // An absent object is one with nothing in it; a name in its place gives way to it.
        bool replaceable = !next || cJSON_IsNull(next) || cJSON_IsString(next);
        if (cJSON_IsObject(node) && step.key[0] && *rest != '[' && replaceable) {
            next = cJSON_CreateObject();
            member_replace(node, step.key, next);
        }
        if (!cJSON_IsObject(next) && !cJSON_IsArray(next))
            return path_error(scenario, path, "leads into something that is no object or list");
        node = next;
    }
    cJSON *copy = cJSON_Duplicate(value, true);
    if (step.key[0] && cJSON_IsObject(node)) {
        member_replace(node, step.key, copy);
        return status_ok();
    }
    if (cJSON_IsArray(node) && !step.key[0] && step.index < cJSON_GetArraySize(node)) {
        cJSON_ReplaceItemInArray(node, step.index, copy);
        return status_ok();
    }
    cJSON_Delete(copy);
    return path_error(scenario, path, "leads beyond the end of a list, or into no list");
}

// --- What follows from a varied key

static bool varied(const char *const *paths, int num_paths, const char *path) {
    for (int i = 0; i < num_paths; i++)
        if (strcmp(paths[i], path) == 0) return true;
    return false;
}

void change_derive(cJSON *document, const char *const *paths, int num_paths) {
    // A changed value of the first makes the second follow again.
    static const char *const FOLLOWS[][2] = {
        {"cluster", "dp"},
        {"cluster", "idle_gpus"},
        {"cluster", "placement"},
        {"cluster", "zero_group"},
        {"cluster.num_gpus", "dp"},
        {"cluster.num_gpus", "idle_gpus"},
        {"cluster.gpus_per_node", "idle_gpus"},
        {"cluster.num_gpus", "placement"},
        {"cluster.gpus_per_node", "placement"},
        {"cluster.num_gpus", "zero_group"},
        {"parallel.tp", "dp"},
        {"parallel.tp", "idle_gpus"},
        {"parallel.cp", "idle_gpus"},
        {"parallel.dp", "idle_gpus"},
        {"parallel.pp", "idle_gpus"},
        {"parallel.tp", "zero_group"},
        {"parallel.pp", "dp"},
        {"parallel.pp", "zero_group"},
        {"parallel.pp", "stages"},
        {"parallel.cp", "dp"},
        {"parallel.cp", "zero_group"},
        {"parallel.dp", "zero_group"},
        {"parallel.vpp", "stages"},
        {"parallel.vpp", "schedule"},
        {"model", "stages"},
        {"model", "layers"},
        {"model.num_hidden_layers", "layers"},
        {"model.num_hidden_layers", "stages"},
        {"model.text_config.num_hidden_layers", "layers"},
        {"model.text_config.num_hidden_layers", "stages"},
        {"model.vision_config.num_hidden_layers", "layers"},
        {"model.vision_config.num_hidden_layers", "stages"},
        {"model.vision_config.depth", "layers"},
        {"model.vision_config.depth", "stages"},
        {"model.num_layers", "layers"},
        {"model.num_layers", "stages"},
        {"model.num_decoder_layers", "layers"},
        {"model.num_decoder_layers", "stages"},
    };
    cJSON *parallel = cJSON_GetObjectItemCaseSensitive(document, "parallel");
    if (!cJSON_IsObject(parallel)) return;
    for (size_t i = 0; i < sizeof FOLLOWS / sizeof *FOLLOWS; i++) {
        char path[64] = "parallel.";
        strcat(path, FOLLOWS[i][1]);
        if (varied(paths, num_paths, FOLLOWS[i][0]) && !varied(paths, num_paths, path))
            cJSON_DeleteItemFromObjectCaseSensitive(parallel, FOLLOWS[i][1]);
    }
}

// --- Known paths

static bool is_known(const char *const *keys, const char *key) {
    while (*keys && strcmp(*keys, key) != 0) keys++;
    return *keys != NULL;
}

static Status model_key_check(const Scenario *scenario, const char *path, const cJSON *object,
                              const char *key, const char *const *keys) {
    if (cJSON_GetObjectItemCaseSensitive(object, key) || is_known(keys, key)) return status_ok();
    const char *nearest = name_nearest(key, keys);
    if (nearest)
        return status_at(STATUS_INVALID, scenario->file, path,
                         "unknown key; the nearest known one is \"%s\"", nearest);
    return status_at(STATUS_INVALID, scenario->file, path, "unknown key of a model");
}

// A model that sees images may have objects for its text and its tower; where the text has one, its
// sizes beside that are not read.
static Status model_path_check(const Scenario *scenario, const cJSON *base, const char *path) {
    static const char TEXT[] = "text_config.", VISION[] = "vision_config.";
    static const char *const BESIDE[] = {"model_type", "name", "tie_word_embeddings", NULL};
    const char *key = path + strlen("model.");
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(base, "model");
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(model, "text_config");
    const cJSON *vision = cJSON_GetObjectItemCaseSensitive(model, "vision_config");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(model, "model_type"));
    if (starts_with(key, TEXT) && cJSON_IsObject(text))
        return model_key_check(scenario, path, text, key + strlen(TEXT), MODEL_TEXT_KEYS);
    if (starts_with(key, VISION) && cJSON_IsObject(vision))
        return model_key_check(scenario, path, vision, key + strlen(VISION), MODEL_VISION_KEYS);
    if (cJSON_IsObject(text) && is_known(MODEL_TEXT_KEYS, key) && !is_known(BESIDE, key))
        return status_at(STATUS_INVALID, scenario->file, path,
                         "not read, as this model's text_config is; expected model.text_config.%s",
                         key);
    const bool is_t5 = type && (strcmp(type, "t5") == 0 || strcmp(type, "mt5") == 0);
    return model_key_check(scenario, path, model, key, is_t5 ? MODEL_T5_KEYS : MODEL_TEXT_KEYS);
}

Status change_check_path(const Scenario *scenario, const cJSON *base, const char *path,
                         const cJSON *value) {
    if (starts_with(path, "model.")) return model_path_check(scenario, base, path);
    Arena scratch = {0};
    cJSON *copy = cJSON_Duplicate(base, true);
    json_own(&scratch, copy);
    Status status = change_set(scenario, copy, path, value);
    if (status.code == STATUS_OK) {
        // The reader knows all keys; any other refusal belongs to the value.
        JsonNode root = {.file = scenario->file, .item = copy};
        Scenario ignored;
        Status read = scenario_read(&root, &scratch, &ignored);
        if (read.code != STATUS_OK && read.reason == REASON_UNKNOWN_KEY) status = read;
    }
    arena_free(&scratch);
    return status;
}
