// config/model/model_keys.h - looks sizes and switches up in a Hugging Face config.json.
//
// Families spell the same size differently (n_embd, d_model, hidden_size), and an absent key and
// a key that is null may mean different things (Mistral's sliding_window: 4096 and none).
#pragma once

#include "base/json.h"

#include <stdbool.h>

enum { KEY_REQUIRED = -1 }; // as a default: the key must be there

// A size in the file: its spellings (ends with NULL), bounds, and what it is where not written.
typedef struct {
    const char *const *keys;
    int min, max;
    int absent; // where no spelling is there, or KEY_REQUIRED
    int null;   // where it is written as null, or KEY_REQUIRED
} SizeKey;

// The first spelling that is there and not null; the first spelling where none is.
JsonNode key_find(const JsonNode *config, const char *const *keys);

// True where a spelling is there, with null as its value, and no other spelling has a value.
bool key_is_null(const JsonNode *config, const char *const *keys);

// Reads a size. Two spellings that say different things are refused.
Status key_read_size(const JsonNode *config, const SizeKey *size, int *out);

// Reads a size of at least 1. Absent and null both mean `otherwise`, or are refused where that is
// KEY_REQUIRED.
Status key_read_size_or(const JsonNode *config, const char *const *keys, int max, int otherwise,
                        int *out);

// Reads true or false; leaves *out where the key is absent or null, or where key is NULL.
Status key_read_bool(const JsonNode *config, const char *key, bool *out);

// The keys that are read of a model's text, of encoders with decoders (T5) and of a vision_config;
// each ends with NULL. A Hugging Face file may hold others, which are ignored.
extern const char *const MODEL_TEXT_KEYS[];
extern const char *const MODEL_T5_KEYS[];
extern const char *const MODEL_VISION_KEYS[];
