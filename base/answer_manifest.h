// base/answer_manifest.h - the list of what a folder holds of an answer: FOLDER/.meshwright.json.
//
// Only files that it lists are ever removed or replaced; size and hash say whether somebody has
// changed one since it was written.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

// A file by what it holds.
typedef struct {
    bool there, regular; // regular: itself, not what a symbolic link leads to
    double file_bytes;   // of a regular one
    const char *hash;    // base/file_hash.h, of a regular one
    bool program;        // its owner may execute it; no part of what it holds
} FileState;

typedef struct {
    const char *name;   // within the folder, without a slash
    const char *part;   // which command's kind of file it is: "plan", "launch"
    const char *answer; // names the answer of that part
    const char *root;   // names what the answer is of: a plan's, for launch files of that plan
    FileState state;    // as it was written
} AnswerEntry;

typedef struct {
    AnswerEntry *entries; // [num_entries] by name
    int num_entries;
} AnswerManifest;

// STATUS_MACHINE for a file that is there and cannot be read.
Status file_state(const char *path, Arena *arena, FileState *out);

bool file_state_same(const FileState *a, const FileState *b);

// Whether it is a name that a manifest may list: of a file in the folder, and none of those that
// the folder's own bookkeeping has (they begin with ".meshwright").
bool manifest_name_is_legal(const char *name);

// A missing file lists nothing. STATUS_INVALID: it is no such list, or lists what is outside.
Status manifest_read(const char *path, Arena *arena, AnswerManifest *out);

// Its bytes follow from the entries alone.
Status manifest_save(const AnswerManifest *manifest, const char *path);

// NULL where it is not listed.
const AnswerEntry *manifest_find(const AnswerManifest *manifest, const char *name);
