#include "base/json.h"
#include "base/aliases.h"
#include "base/key_names.h"
#include "base/quantity.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *node_file(const JsonNode *node) {
    return node->file ? node->file : "input";
}

JsonNode json_get(const JsonNode *parent, const char *key) {
    const cJSON *item =
        cJSON_IsObject(parent->item) ? cJSON_GetObjectItemCaseSensitive(parent->item, key) : NULL;
    if (cJSON_IsNull(item)) item = NULL;
    return (JsonNode){.file = parent->file, .item = item, .parent = parent, .key = key};
}

JsonNode json_at(const JsonNode *parent, int index) {
    const cJSON *item =
        cJSON_IsArray(parent->item) ? cJSON_GetArrayItem(parent->item, index) : NULL;
    return (JsonNode){.file = parent->file, .item = item, .parent = parent, .index = index};
}

JsonNode json_next(const JsonNode *element) {
    JsonNode next = *element;
    next.item = element->item ? element->item->next : NULL;
    next.index++;
    return next;
}

bool json_is_present(const JsonNode *node) {
    return node->item && !cJSON_IsNull(node->item);
}

int json_size(const JsonNode *node) {
    return node->item ? cJSON_GetArraySize(node->item) : 0;
}

void json_path(const JsonNode *node, char *path, size_t size) {
    path[0] = '\0';
    if (!node->parent) return;
    json_path(node->parent, path, size);
    size_t used = strlen(path);
    if (!node->key)
        snprintf(path + used, size - used, "[%d]", node->index);
    else
        snprintf(path + used, size - used, "%s%.80s", used ? "." : "", node->key);
}

Status json_error(const JsonNode *node, const char *format, ...) {
    char path[256], text[512];
    json_path(node, path, sizeof path);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return status_at(STATUS_INVALID, node_file(node), path, "%s", text);
}

const char *json_type_name(const JsonNode *node) {
    if (!node->item) return "nothing";
    if (cJSON_IsString(node->item)) return "a string";
    if (cJSON_IsNumber(node->item)) return "a number";
    if (cJSON_IsBool(node->item)) return "true or false";
    if (cJSON_IsObject(node->item)) return "an object";
    if (cJSON_IsArray(node->item)) return "a list";
    if (cJSON_IsRaw(node->item)) return node->item->valuestring; // Infinity, NaN
    return "null";
}

static Status json_missing_or(const JsonNode *node, const char *expected) {
    if (!node->item) return json_error(node, "missing; expected %s", expected);
    return json_error(node, "expected %s, found %s", expected, json_type_name(node));
}

// The key that says what a value is: its own, or that of the list it stands in.
static const char *node_key(const JsonNode *node) {
    while (node && !node->key) node = node->parent;
    return node ? node->key : "";
}

// A number, or a text of a number with a unit.
static Status json_number(const JsonNode *node, const char *expected, double *out) {
    char why[300];
    if (cJSON_IsNumber(node->item)) {
        *out = node->item->valuedouble;
        return status_ok();
    }
    if (!cJSON_IsString(node->item)) return json_missing_or(node, expected);
    const QuantityKind kind = quantity_of_key(node_key(node));
    if (quantity_parse(node->item->valuestring, kind, out, why, sizeof why)) return status_ok();
    return why[0] ? json_error(node, "%s", why) : json_missing_or(node, expected);
}

static Status range_check(const JsonNode *node, double value, double min, double max) {
    if (value >= min && value <= max) return status_ok(); // also refuses NaN
    if (isinf(value)) return json_error(node, "the number is beyond what a double holds");
    const bool small_rate = quantity_of_key(node_key(node)) == QUANTITY_BYTES_PER_S && value < min;
    return json_error(node, "%.15g is out of range; expected %.15g to %.15g%s", value, min, max,
                      small_rate ? " bytes per second, as in 50e9 or \"400Gb/s\"" : "");
}

Status json_read_double(const JsonNode *node, double min, double max, double *out) {
    double value;
    TRY(json_number(node, "a number", &value));
    TRY(range_check(node, value, min, max));
    *out = value;
    return status_ok();
}

Status json_read_int64(const JsonNode *node, int64_t min, int64_t max, int64_t *out) {
    double value;
    TRY(json_number(node, "a whole number", &value));
    TRY(range_check(node, value, (double)min, (double)max));
    if (value != floor(value)) return json_error(node, "%.15g is not a whole number", value);
    *out = (int64_t)value;
    return status_ok();
}

Status json_read_int(const JsonNode *node, int min, int max, int *out) {
    int64_t value;
    TRY(json_read_int64(node, min, max, &value));
    *out = (int)value;
    return status_ok();
}

// "false" for "no": words that are truths in YAML 1.1 and elsewhere, or NULL.
static const char *truth_of(const char *text) {
    static const char *const YES[] = {"yes", "Yes", "on", "On", "true", "True", "y", NULL};
    static const char *const NO[] = {"no", "No", "off", "Off", "false", "False", "n", NULL};
    for (int i = 0; YES[i]; i++) {
        if (strcmp(text, YES[i]) == 0) return "true";
        if (strcmp(text, NO[i]) == 0) return "false";
    }
    return NULL;
}

Status json_read_bool(const JsonNode *node, bool *out) {
    const char *truth = cJSON_IsString(node->item) ? truth_of(node->item->valuestring) : NULL;
    if (truth)
        return json_error(node, "expected true or false, found the text \"%s\"; write %s",
                          node->item->valuestring, truth);
    if (!cJSON_IsBool(node->item)) return json_missing_or(node, "true or false");
    *out = cJSON_IsTrue(node->item);
    return status_ok();
}

Status json_read_string(const JsonNode *node, Arena *arena, const char **out) {
    if (!cJSON_IsString(node->item)) return json_missing_or(node, "a string");
    if (!node->item->valuestring[0]) return json_error(node, "expected a string that is not empty");
    *out = arena_strdup(arena, node->item->valuestring);
    return status_ok();
}

static void names_join(const char *const *names, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; names[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", names[i]);
}

Status json_read_name(const JsonNode *node, const char *const *names, int *out) {
    if (!cJSON_IsString(node->item)) return json_missing_or(node, "a name");
    const char *value = node->item->valuestring;
    int index = name_find(value, names);
    if (index >= 0) {
        *out = index;
        return status_ok();
    }
    char list[300];
    names_join(names, list, sizeof list);
    return json_error(node, "\"%.60s\" is unknown; expected one of %s", value, list);
}

Status json_expect_object(const JsonNode *node) {
    return cJSON_IsObject(node->item) ? status_ok() : json_missing_or(node, "an object");
}

Status json_expect_array(const JsonNode *node) {
    return cJSON_IsArray(node->item) ? status_ok() : json_missing_or(node, "a list");
}

Status json_expect_items(const JsonNode *node, const char *items, int max, int *num_items) {
    TRY(json_expect_array(node));
    *num_items = json_size(node);
    if (*num_items >= 1 && *num_items <= max) return status_ok();
    return json_error(node, "%d %s; expected 1 to %d", *num_items, items, max);
}

static int min3(int a, int b, int c) {
    int least = a < b ? a : b;
    return least < c ? least : c;
}

int name_distance(const char *a, const char *b) {
    enum { MAX = 48 };
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > MAX || m > MAX) return MAX;
    int row[3][MAX + 1]; // of i - 2, i - 1, i
    for (int j = 0; j <= m; j++) row[0][j] = row[1][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[2];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int cost = a[i - 1] != b[j - 1];
            now[j] = min3(row[1][j] + 1, now[j - 1] + 1, row[1][j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min3(now[j], now[j], row[0][j - 2] + 1);
        }
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[1]);
    }
    return row[1][m];
}

const char *name_nearest(const char *name, const char *const *names) {
    const char *best = NULL;
    int best_distance = 1 + ((int)strlen(name) + 1) / 3;
    for (int i = 0; names[i]; i++) {
        int distance = name_distance(name, names[i]);
        // A name that begins like this one is near, however long its tail.
        if (strlen(name) >= 4 && strncmp(name, names[i], strlen(name)) == 0 && distance > 1)
            distance = 1;
        if (distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}

static Status unknown_key_refuse(const JsonNode *node, const char *key, const JsonField *fields,
                                 size_t num_fields) {
    const char *known[128];
    size_t n = num_fields < 127 ? num_fields : 127;
    for (size_t i = 0; i < n; i++) known[i] = fields[i].key;
    known[n] = NULL;
    JsonNode child = {.file = node->file, .parent = node, .key = key};
    const char *meant = key_meant(key, known), *place = key_place(key);
    if (meant) return json_error(&child, "unknown key; here it is called \"%s\"", meant);
    if (place) return json_error(&child, "unknown key; it stands at \"%s\"", place);
    const char *nearest = name_nearest(key, known);
    if (nearest) return json_error(&child, "unknown key; the nearest known one is \"%s\"", nearest);
    char list[400];
    names_join(known, list, sizeof list);
    return json_error(&child, "unknown key; known are %s", list);
}

static Status json_unknown_key(const JsonNode *node, const char *key, const JsonField *fields,
                               size_t num_fields) {
    return status_because(unknown_key_refuse(node, key, fields, num_fields), REASON_UNKNOWN_KEY);
}

Status json_refuse_unknown(const JsonNode *node, const JsonField *fields, size_t num_fields) {
    const cJSON *child;
    cJSON_ArrayForEach(child, node->item) {
        bool known = false;
        for (size_t i = 0; i < num_fields && !known; i++)
            known = strcmp(fields[i].key, child->string) == 0;
        if (!known) return json_unknown_key(node, child->string, fields, num_fields);
    }
    return status_ok();
}

static Status json_read_field(const JsonNode *value, const JsonField *field, Arena *arena,
                              char *at) {
    const double int_max = 2147483647.0, int64_max = 9.0e15; // beyond it a double is not exact
    switch (field->kind) {
    case JSON_FIELD_DOUBLE:
        return json_read_double(value, field->min, field->max, (double *)(void *)at);
    case JSON_FIELD_INT:
        return json_read_int(value, (int)fmax(field->min, -int_max), (int)fmin(field->max, int_max),
                             (int *)(void *)at);
    case JSON_FIELD_INT64:
        return json_read_int64(value, (int64_t)fmax(field->min, -int64_max),
                               (int64_t)fmin(field->max, int64_max), (int64_t *)(void *)at);
    case JSON_FIELD_BOOL:
        return json_read_bool(value, (bool *)(void *)at);
    case JSON_FIELD_TRI: {
        bool flag;
        TRY(json_read_bool(value, &flag));
        *(signed char *)at = (signed char)flag;
        return status_ok();
    }
    case JSON_FIELD_STRING:
        return json_read_string(value, arena, (const char **)(void *)at);
    case JSON_FIELD_NAME:
        return json_read_name(value, field->names, (int *)(void *)at);
    case JSON_FIELD_OTHER:
        break;
    }
    return status_ok();
}

Status json_read_object(const JsonNode *node, const JsonField *fields, size_t num_fields,
                        Arena *arena, void *out) {
    TRY(json_expect_object(node));
    TRY(json_refuse_unknown(node, fields, num_fields));
    for (size_t i = 0; i < num_fields; i++) {
        JsonNode value = json_get(node, fields[i].key);
        if (!json_is_present(&value)) {
            if (fields[i].required) return json_error(&value, "missing");
            continue;
        }
        if (fields[i].kind == JSON_FIELD_OTHER) continue; // out may be NULL where all are
        TRY(json_read_field(&value, &fields[i], arena, (char *)out + fields[i].offset));
    }
    return status_ok();
}

Status json_read_numbers(const JsonNode *node, const char *const *names, int num_names, double min,
                         double max, bool required, double *out) {
    Arena scratch = {0};
    JsonField *fields = ARENA_ARRAY(&scratch, num_names, JsonField);
    for (int i = 0; i < num_names; i++)
        fields[i] = (JsonField){names[i], JSON_FIELD_DOUBLE, (size_t)i * sizeof *out, min, max,
                                NULL,     required};
    Status status = json_read_object(node, fields, (size_t)num_names, &scratch, out);
    arena_free(&scratch);
    return status;
}
