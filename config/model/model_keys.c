#include "config/model/model_keys.h"

#include "config/model/model_import.h"

JsonNode key_find(const JsonNode *config, const char *const *keys) {
    for (int i = 0; keys[i]; i++) {
        JsonNode node = json_get(config, keys[i]);
        if (json_is_present(&node)) return node;
    }
    return json_get(config, keys[0]);
}

bool key_is_null(const JsonNode *config, const char *const *keys) {
    JsonNode node = key_find(config, keys);
    if (json_is_present(&node)) return false;
    for (int i = 0; keys[i]; i++)
        if (cJSON_GetObjectItemCaseSensitive(config->item, keys[i])) return true;
    return false;
}

static Status refuse_contradiction(const JsonNode *config, const SizeKey *size,
                                   const JsonNode *first, int value) {
    for (int i = 0; size->keys[i]; i++) {
        JsonNode other = json_get(config, size->keys[i]);
        if (!json_is_present(&other) || other.item == first->item) continue;
        int other_value;
        TRY(json_read_int(&other, size->min, size->max, &other_value));
        if (other_value != value)
            return json_error(&other, "%d contradicts %s %d", other_value, first->key, value);
    }
    return status_ok();
}

// A required key that is not there; points at one of the file that looks like it.
static Status refuse_missing(const JsonNode *config, const char *const *keys) {
    JsonNode node = json_get(config, keys[0]);
    const cJSON *child;
    cJSON_ArrayForEach(child, config->item) {
        if (!model_key_is_known(child->string) && name_nearest(child->string, keys))
            return json_error(&node, "missing; the file has \"%.60s\"", child->string);
    }
    return json_error(&node, "missing; expected a whole number");
}

Status key_read_size(const JsonNode *config, const SizeKey *size, int *out) {
    JsonNode node = key_find(config, size->keys);
    if (!json_is_present(&node)) {
        int value = key_is_null(config, size->keys) ? size->null : size->absent;
        if (value == KEY_REQUIRED) return refuse_missing(config, size->keys);
        *out = value;
        return status_ok();
    }
    TRY(json_read_int(&node, size->min, size->max, out));
    return refuse_contradiction(config, size, &node, *out);
}

Status key_read_size_or(const JsonNode *config, const char *const *keys, int max, int otherwise,
                        int *out) {
    return key_read_size(config, &(SizeKey){keys, 1, max, otherwise, otherwise}, out);
}

Status key_read_bool(const JsonNode *config, const char *key, bool *out) {
    if (!key) return status_ok();
    JsonNode node = json_get(config, key);
    return json_is_present(&node) ? json_read_bool(&node, out) : status_ok();
}
