// base/json_skip.h - loads a large document without some of its members.
#pragma once

#include "base/json.h"

// As json_load, but the members of the root with these names (ending with NULL) that are objects
// or arrays read as null: they are not parsed, nor are their mistakes seen. Lines and columns in
// messages are those of the file.
Status json_load_without(const char *path, const char *const *names, Arena *arena, JsonNode *root);
