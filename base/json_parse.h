// base/json_parse.h - the grammar of our documents: JSON, and what people write into it by hand.
//
// Beyond RFC 8259: comments (// to the end of the line, and /* */), a comma behind the last member
// or element, and the words Infinity, -Infinity and NaN, which Python's json module writes. Such a
// word becomes a node of type cJSON_Raw: it is no number, so that only a key that nobody reads may
// have it (json_type_name names it).
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum { JSON_MAX_DEPTH = 64, JSON_MAX_VALUES = 1000000 };
enum { JSON_MAX_LINES = 100000 }; // documents of a file with one a line

// Why there is no tree.
typedef struct {
    size_t at;          // the byte of the text where it went wrong
    char sentence[240]; // what was expected there and what was found
    bool out_of_memory; // nothing is wrong with the text
} JsonMistake;

// The tree of the one document in text [size], which is UTF-8 with a NUL at its end and none
// before. The caller frees it; NULL where *mistake says why.
//   num_values  read before, of at most JSON_MAX_VALUES; those of this text are added
cJSON *json_parse_tree(const char *text, size_t size, size_t *num_values, JsonMistake *mistake);

// The first byte at or behind `at` that is neither white space nor in a comment; where a comment
// is not closed, its beginning, with *unclosed set.
const char *json_space_end(const char *at, bool *unclosed);
