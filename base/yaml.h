// base/yaml.h - a YAML document as a tree.
//
// Plain scalars are read as YAML 1.2's core schema has them. True and false are the only truths:
// yes, no, on, off are texts, as YAML 1.2 has it and YAML 1.1 has not. Null, ~ and nothing are
// null. Numbers are decimal, with or without an exponent; .inf and .nan become cJSON_Raw, as
// Infinity does in JSON. All others are texts.
//
// Aliases (*NAME) are copies of what their anchor holds, and << merges a mapping into another; what
// they write out is limited. Refused: keys that are no scalars or stand there twice, an alias
// inside its own anchor, a NUL in a text ("\0"), what is beyond the limits below.
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    YAML_MAX_DEPTH = 100,
    YAML_MAX_VALUES = 200000, // what aliases write out included
    YAML_MAX_KEYS = 2000,     // of one mapping
    YAML_MAX_ANCHORS = 1000,
    YAML_MAX_ALIAS_BYTES = 16 << 20, // of keys and texts that aliases write out
};

typedef struct {
    // What YAML 1.1 and 1.2 read as different numbers (010, 1_000) is refused with both readings,
    // and so is a second document. Else they are as in 1.2, or left out.
    bool strict;
} YamlOptions;

// Parses the first document of text[size], which is UTF-8.
//   returns  the tree, which the caller frees; NULL where the text is not such YAML: then message
//            says "line L, column C: ..." (or "out of memory")
cJSON *yaml_parse_text(const char *text, size_t size, YamlOptions options, char *message,
                       size_t message_size);
