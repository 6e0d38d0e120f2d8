#include "launch/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const KeyRow *key_row_find(const KeyRow *rows, const char *section, const char *key) {
    for (; rows->key; rows++)
        if (strcmp(rows->section, section) == 0 && strcmp(rows->key, key) == 0) return rows;
    return NULL;
}

// Whether one of "a|b|c" is name.
static bool choice_is_legal(const char *choices, const char *name) {
    size_t length = strlen(name);
    for (const char *at = choices; at; at = strchr(at, '|')) {
        if (*at == '|') at++;
        if (strcspn(at, "|") == length && strncmp(at, name, length) == 0) return true;
    }
    return false;
}

static const KeyRow *key_add(KeyList *list, const char *section, const char *key, KeyKind kind,
                             const char *value) {
    const KeyRow *row = key_row_find(list->rows, section, key);
    assert(row && row->kind == kind && list->num_values < KEYS_MAX);
    (void)kind;
    list->values[list->num_values++] = (KeyValue){row, value};
    return row;
}

void key_bool(KeyList *list, const char *section, const char *key, bool value) {
    key_add(list, section, key, KEY_BOOL, value ? "true" : "false");
}

void key_int(KeyList *list, const char *section, const char *key, long long value) {
    const char *text = arena_printf(list->arena, "%lld", value);
    const KeyRow *row = key_add(list, section, key, KEY_INT, text);
    assert(!row->legal || value >= strtoll(row->legal, NULL, 10));
    (void)row;
}

void key_float(KeyList *list, const char *section, const char *key, double value) {
    const char *text = number_text(value, list->arena);
    const size_t digits = strcspn(text, "e"); // YAML 1.1 takes 1e-06 for a text
    if (!memchr(text, '.', digits))
        text = arena_printf(list->arena, "%.*s.0%s", (int)digits, text, text + digits);
    const KeyRow *row = key_add(list, section, key, KEY_FLOAT, text);
    assert(!row->legal || value >= strtod(row->legal, NULL));
    (void)row;
}

void key_text(KeyList *list, const char *section, const char *key, const char *value) {
    const char *text = key_quote(value, list->arena);
    const KeyRow *row = key_add(list, section, key, KEY_TEXT, text);
    assert(!row->legal || choice_is_legal(row->legal, value));
    (void)row;
}

void key_list(KeyList *list, const char *section, const char *key, const char *json) {
    key_add(list, section, key, KEY_LIST, json);
}

const char *key_quote(const char *text, Arena *arena) {
    static const char digits[] = "0123456789abcdef";
    char *out = arena_alloc(arena, 6 * strlen(text) + 3), *at = out;
    *at++ = '"';
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            *at++ = '\\';
            *at++ = (char)c;
        } else if (c < 0x20 || c == 0x7f) {
            memcpy(at, "\\u00", 4);
            at[4] = digits[c >> 4];
            at[5] = digits[c & 15];
            at += 6;
        } else {
            *at++ = (char)c;
        }
    }
    *at++ = '"';
    *at = '\0';
    return out;
}

static const char *value_of(const KeyList *list, const KeyRow *row) {
    for (int i = 0; i < list->num_values; i++)
        if (list->values[i].row == row) return list->values[i].value;
    return NULL;
}

bool key_is_set(const KeyList *list, const char *section, const char *key) {
    const KeyRow *row = key_row_find(list->rows, section, key);
    return row && value_of(list, row) != NULL;
}

void keys_write_toml(Script *script, const KeyList *list) {
    const char *section = "";
    for (const KeyRow *row = list->rows; row->key; row++) {
        const char *value = value_of(list, row);
        if (!value) continue;
        if (strcmp(section, row->section) != 0) script_add(script, "\n[%s]\n", row->section);
        section = row->section;
        script_add(script, "%s = %s\n", row->key, value);
    }
}

void keys_write_json(Script *script, const KeyList *list) {
    const char *section = "", *before = "\n";
    script_add(script, "{");
    for (const KeyRow *row = list->rows; row->key; row++) {
        const char *value = value_of(list, row);
        if (!value) continue;
        if (strcmp(section, row->section) != 0) {
            if (section[0]) {
                script_add(script, "\n  }");
                before = ",\n";
            }
            if (row->section[0]) script_add(script, "%s  \"%s\": {", before, row->section);
            if (row->section[0]) before = "\n";
        }
        section = row->section;
        script_add(script, "%s%s\"%s\": %s", before, section[0] ? "    " : "  ", row->key, value);
        before = ",\n";
    }
    script_add(script, "%s\n}\n", section[0] ? "\n  }" : "");
}

void keys_write_yaml(Script *script, const KeyList *list) {
    const char *section = "";
    for (const KeyRow *row = list->rows; row->key; row++) {
        const char *value = value_of(list, row);
        if (!value) continue;
        if (strcmp(section, row->section) != 0) script_add(script, "%s:\n", row->section);
        section = row->section;
        script_add(script, "  %s: %s\n", row->key, value);
    }
}
