// base/json.h - reads JSON documents into checked structs, with messages that name the place.
//
// A JsonNode is a value plus the way to it, so that every refusal reads
// "FILE: training.global_batch: SENTENCE". Objects of our own files are read by a table of fields:
// unknown and repeated keys are refused (with the nearest known key), types and ranges are checked.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Documents larger than this are refused before they are parsed.
#define JSON_MAX_BYTES ((size_t)16 << 20)

typedef struct JsonNode {
    const char *file;              // as the user named it; "standard input" for "-"
    const cJSON *item;             // the value; NULL where the key is absent
    const struct JsonNode *parent; // NULL at the root
    const char *key;               // its key in parent, or NULL
    int index;                     // its index in parent where parent is an array
} JsonNode;

// Reads and parses a whole file ("-" is standard input). The tree lives as long as the arena.
// Refusals (STATUS_INVALID): unreadable, empty, too large, too deep, syntax error with line and
// column, trailing text, repeated key, number beyond double, text that is not UTF-8.
Status json_load(const char *path, Arena *arena, JsonNode *root);

// Reads the file itself, where json_load may take its document from a shelf (base/json_shelf.h).
Status json_read_file(const char *path, Arena *arena, JsonNode *root);

// The file that a value names, at `path`; one that cannot be read is refused as the value.
Status json_load_named(const JsonNode *value, const char *path, Arena *arena, JsonNode *root);

// Reads a file without those members of the root, of these names (ending with NULL), that are
// objects or arrays: they read as null, are not parsed, and their mistakes are not seen.
Status json_load_without(const char *path, const char *const *names, Arena *arena, JsonNode *root);

// Parses a text in memory, with a NUL at text[size]; file is the name used in messages.
Status json_parse(const char *text, size_t size, const char *file, Arena *arena, JsonNode *root);

// Parses what an open stream gives, to its end.
Status json_load_stream(FILE *stream, const char *file, Arena *arena, JsonNode *root);

// The documents of a file with one per line (JSON Lines); blank lines are skipped. Their file is
// "FILE:LINE"; a syntax error says "FILE: line L, column C". The same refusals.
Status json_load_lines(const char *path, Arena *arena, JsonNode **roots, int *num_roots);

// A tree that lives as long as the arena from now on; NULL is accepted.
void json_own(Arena *arena, cJSON *tree);

// The member or element; item is NULL where absent or null. The result points to parent and key,
// which must outlive it.
JsonNode json_get(const JsonNode *parent, const char *key);
JsonNode json_at(const JsonNode *parent, int index);
JsonNode json_next(const JsonNode *element); // of the same array; walks long ones in linear time
bool json_is_present(const JsonNode *node);  // there and not null
int json_size(const JsonNode *node);         // members or elements

// The dotted path of a node ("parallel.stages[3].layers"; "" for the root).
void json_path(const JsonNode *node, char *path, size_t size);

// A failure at this node.
Status json_error(const JsonNode *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// "a string", "an object", ... of what stands there.
const char *json_type_name(const JsonNode *node);

// Single checked reads. Bounds are inclusive. A number may also be a text with a unit ("80GB"),
// which the end of its key says (base/quantity.h).
Status json_read_double(const JsonNode *node, double min, double max, double *out);
Status json_read_int64(const JsonNode *node, int64_t min, int64_t max, int64_t *out);
Status json_read_int(const JsonNode *node, int min, int max, int *out);
Status json_read_bool(const JsonNode *node, bool *out);
Status json_read_string(const JsonNode *node, Arena *arena, const char **out); // non-empty
// One of a list of names that ends with NULL, in a usual spelling (base/aliases.h); out is its
// index.
Status json_read_name(const JsonNode *node, const char *const *names, int *out);
Status json_expect_object(const JsonNode *node);
Status json_expect_array(const JsonNode *node);
// An array of 1 to max elements, which a refusal calls by their plural.
Status json_expect_items(const JsonNode *node, const char *items, int max, int *num_items);

typedef enum {
    JSON_FIELD_DOUBLE, // double
    JSON_FIELD_INT,    // int
    JSON_FIELD_INT64,  // int64_t
    JSON_FIELD_BOOL,   // bool
    JSON_FIELD_TRI,    // signed char: JSON_UNSET, 0, 1
    JSON_FIELD_STRING, // const char *
    JSON_FIELD_NAME,   // int, index into names
    JSON_FIELD_OTHER,  // known key that the caller reads itself
} JsonFieldKind;

enum { JSON_UNSET = -1 };

typedef struct {
    const char *key;
    JsonFieldKind kind;
    size_t offset;            // of the destination in the struct
    double min, max;          // for numbers
    const char *const *names; // for JSON_FIELD_NAME
    bool required;
} JsonField;

// Reads an object into *out by a table; absent optional fields are left as they are.
Status json_read_object(const JsonNode *node, const JsonField *fields, size_t num_fields,
                        Arena *arena, void *out);

// Reads an object of numbers within bounds into out [num_names], one for each name; where they are
// not required, an absent one is left as it is.
Status json_read_numbers(const JsonNode *node, const char *const *names, int num_names, double min,
                         double max, bool required, double *out);

// Refuses keys that are not in the table (json_read_object does this itself).
Status json_refuse_unknown(const JsonNode *node, const JsonField *fields, size_t num_fields);

// Letters that differ (optimal string alignment distance); at least 48 where a name is longer.
int name_distance(const char *a, const char *b);

// The nearest of names (ends with NULL) by edit distance, or NULL where none is near: more than a
// third of the letters differ.
const char *name_nearest(const char *name, const char *const *names);

// Writing: a document with fixed key order; numbers with 15 to 17 digits, as they need.
// Prints the tree, indented, with a newline at the end.
Status json_write(const cJSON *tree, FILE *stream);
// Writes to a new file beside path, then renames it there; "-" is standard output.
Status json_save(const cJSON *tree, const char *path);
void json_add_number(cJSON *object, const char *key, double value); // non-finite becomes null
