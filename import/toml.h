// import/toml.h - a TOML document as a tree.
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Parses a whole document. Dates become texts. Values may lie 256 deep: parts of dotted keys and
// headers, arrays and inline tables together.
//   returns  the tree, which the caller frees; NULL where the text is not TOML, or deeper: then
//            message says "line L, ..."
cJSON *toml_parse_text(const char *text, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif
