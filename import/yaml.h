// import/yaml.h - a YAML document as a tree.
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

// Parses the first document. Plain scalars become null, truths and numbers as YAML 1.1's core types
// have them, and exponents without a point, which people write; all others texts. A document with
// aliases, keys that are no scalars or a key twice is refused.
//   returns  the tree, which the caller frees; NULL where the text is not such YAML: then message
//            says "line L, column C: ..."
cJSON *yaml_parse_text(const char *text, char *message, size_t message_size);
