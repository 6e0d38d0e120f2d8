// base/answer_commit.h - puts the files of an answer into their folder, all or none, also where the
// process is killed on the way.
//
// They are written aside, into FOLDER/.meshwright.next/new, and synced. Then the list of moves, and
// as the last file the folder's new manifest appear there: from that moment on the answer is given.
// All earlier files that go are moved aside (to .../old), then the new ones to their places, then
// the manifest to its own. So what a process that is killed leaves is part of one answer or of the
// other, never a mixture. The next process that writes into the folder finishes the moves, or,
// where the manifest had not appeared, removes what was written aside.
#pragma once

#include "base/answer_manifest.h"

// One file of the folder that goes, comes, or both.
typedef struct {
    const char *name;
    bool comes;       // it is written aside
    FileState before; // what is in its place now; not there: nothing
} AnswerMove;

// Removes what was written aside, unless it is decided that it takes its place. Harmless where
// there is nothing.
void commit_discard(const char *folder, Arena *arena);

// Finishes what a killed process left half done, or discards it. The folder's lock is held.
// STATUS_INVALID where a file has been changed since, unless force.
Status commit_settle(const char *folder, bool force, Arena *arena);

// Makes the empty place for files that are written aside.
Status commit_begin(const char *folder, Arena *arena);

// Where a file is written aside.
const char *commit_path(const char *folder, const char *name, Arena *arena);

// Text of a failure without the place aside, as if the file were written to its own.
void commit_clean_text(char *text);

// Puts the files into their places, with this manifest. Where it fails all is as it was before; the
// sentence says so where even that could not be done.
Status commit_run(const char *folder, const AnswerMove *moves, int num_moves,
                  const AnswerManifest *manifest, Arena *arena);
