// tests/laws/shrink.h - a small document that fails as a large one does.
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

// Removes keys and entries, and makes numbers smaller, as long as the document still fails.
//   fails      whether a document breaks the law; one that is no legal scenario does not
//   max_tries  documents that are tried
//   returns    a copy, the caller's
cJSON *document_shrink(const cJSON *document, bool (*fails)(const cJSON *document, void *context),
                       void *context, int max_tries);
