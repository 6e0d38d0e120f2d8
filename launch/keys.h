// launch/keys.h - a configuration file in the making: sections of keys, as TOML, JSON or YAML.
#pragma once

#include "base/arena.h"
#include "launch/script.h"

#include <stdbool.h>

typedef enum { KEY_BOOL, KEY_INT, KEY_FLOAT, KEY_TEXT, KEY_LIST } KeyKind;

// One key a target understands.
typedef struct {
    const char *section; // "parallelism"; "" at the top
    const char *key;
    KeyKind kind;
    const char *legal;   // texts: "always|never", NULL for any; numbers: the least, "1" or "-1"
    const char *meaning; // one sentence
} KeyRow;

typedef struct {
    const KeyRow *row;
    const char *value; // as JSON spells it
} KeyValue;

enum { KEYS_MAX = 112 };

typedef struct {
    Arena *arena;
    const KeyRow *rows; // all that the target understands; ends with a zero row
    KeyValue values[KEYS_MAX];
    int num_values;
} KeyList;

// The row of a key; NULL where there is none.
const KeyRow *key_row_find(const KeyRow *rows, const char *section, const char *key);

// Each names a key of rows with a value that is legal there; any other is our mistake (assert).
void key_bool(KeyList *list, const char *section, const char *key, bool value);
void key_int(KeyList *list, const char *section, const char *key, long long value);
void key_float(KeyList *list, const char *section, const char *key, double value);
void key_text(KeyList *list, const char *section, const char *key, const char *value);
void key_list(KeyList *list, const char *section, const char *key, const char *json); // an array

// Whether the key has a value by now.
bool key_is_set(const KeyList *list, const char *section, const char *key);

// text between double quotes, with the escapes that JSON, TOML and YAML share.
const char *key_quote(const char *text, Arena *arena);

// The lists as a document: keys of one section stand together, in the order of the rows.
void keys_write_toml(Script *script, const KeyList *list);
void keys_write_json(Script *script, const KeyList *list);
void keys_write_yaml(Script *script, const KeyList *list);
