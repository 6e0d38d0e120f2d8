// base/json_document.h - a document of which one list may be longer than memory should hold: its
// elements are made one by one while it is written.
//
// What is written is, byte for byte, what json_write makes of the whole tree.
#pragma once

#include "base/json.h"

typedef struct {
    const cJSON *tree; // an object; the list is an empty array in it
    const char *list;  // the key of that array; NULL: the tree is all
    int64_t num_elements;
    // An element as cJSON prints it unformatted, in this arena or longer lived; NULL: no memory is
    // left. Called in order, once each time that the document is walked.
    const char *(*element)(const void *context, int64_t index, Arena *arena);
    const void *context;
} JsonDocument;

// As json_write and json_save (base/json.h).
Status json_document_write(const JsonDocument *document, FILE *stream);
Status json_document_save(const JsonDocument *document, const char *path);

// The hash (base/file_hash.h) of a member's text without spaces.
Status json_document_hash(const JsonDocument *document, const cJSON *member, Arena *arena,
                          const char **out);
