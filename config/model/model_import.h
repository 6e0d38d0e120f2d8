// config/model/model_import.h - a Hugging Face config.json, or an object of our own `generic` kind,
// as a Model. Unknown keys of a Hugging Face file are ignored; of a generic one they are refused.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/model/model.h"

// Reads everything but the model's name, by its model_type.
Status model_import(const JsonNode *config, Arena *arena, Model *model);

// Reads a model of "model_type": "generic" (CONTRACT.md, section "model").
Status model_import_generic(const JsonNode *config, Arena *arena, Model *model);

// "a, b, c": the up to three of names (ends with NULL) nearest to name; "" where none is near.
const char *names_near(const char *name, const char *const *names, Arena *arena);

// Whether the contract knows this key of a model.
bool model_key_is_known(const char *key);
