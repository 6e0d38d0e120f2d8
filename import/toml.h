// import/toml.h - a TOML document as a tree.
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Parses a whole document. Dates become texts.
//   returns  the tree, which the caller frees; NULL where the text is not TOML: then message says
//            "line L, column C: ..."
cJSON *toml_parse_text(const char *text, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif
