// base/answer_folder.h - the files of an answer appear in their folder together, or what was there
// stays.
//
// A folder holds one answer, and its manifest (base/answer_manifest.h) says which file is of which.
// Files of an earlier answer that the new one does not have are removed with the same step; only
// listed files ever are. What a user has put there, or has changed, is neither replaced nor
// removed: the answer is refused, unless forced.
//
//   AnswerFolder folder;
//   TRY(answer_folder_open(&spec, arena, &folder));
//   Status status = json_save(tree, answer_folder_path(&folder, "plan.json", "plan"));
//   return answer_folder_close(&folder, status);
//
// While it is open SIGINT and SIGTERM are held back (output_interrupted) and other processes that
// answer in the folder wait. How it holds where the process is killed: base/answer_commit.h.
#pragma once

#include "base/answer_commit.h"
#include "base/answer_manifest.h"
#include "base/folder.h"
#include "base/folder_lock.h"

#include <signal.h>

enum { ANSWER_MAX_PARTS = 2 };

// One kind of files that a command writes. What an earlier answer has of the same kind goes.
typedef struct {
    const char *name; // "plan", "launch"
    const char *id;   // names the answer; NULL: it is not known yet, for a check
    bool adds;        // files of the same answer stay: launch files of another scheduler
} AnswerPart;

typedef struct {
    const char *folder;
    AnswerPart parts[ANSWER_MAX_PARTS]; // with what is of the first goes what is of its answer
    int num_parts;
    // Names what all this is of: a plan's answer for its launch files; the first part's id for what
    // stands alone. An input that is a file of the folder's answer makes it of that one, too. Parts
    // of one such answer stand beside each other.
    const char *of;
    const char *const *inputs; // [num_inputs] what was read: never removed
    int num_inputs;
    bool keeps; // an earlier answer's files are not replaced unless force
    bool force; // what is not of an earlier answer, or was changed, is replaced all the same
} AnswerSpec;

typedef struct {
    const char *name, *part;
    FileState next; // as written aside; not there: it was left out
    bool unchanged; // the folder has exactly this file
} AnswerFile;

// It is not moved in memory while it is open.
typedef struct {
    AnswerSpec spec;
    Arena *arena;
    FolderMade made;
    FolderLock lock;
    sigset_t before;   // signals blocked by the caller
    AnswerFile *files; // [num_files]
    int num_files, capacity;
    const char *const *removed; // [num_removed] names of an earlier answer, once it is closed
    int num_removed;
} AnswerFolder;

// Refuses before long work what a close would: clashes with these names (ending with NULL), files
// of another answer. Changes nothing, but for finishing what a killed process left half done.
Status answer_folder_check(const AnswerSpec *spec, const char *const *names, Arena *arena);

// Makes the folder where it is missing. It is closed only where this succeeds.
Status answer_folder_open(const AnswerSpec *spec, Arena *arena, AnswerFolder *out);

// Where to write the file of this name (base/output_file.h). One that is not written in the end is
// left out.
const char *answer_folder_path(AnswerFolder *folder, const char *name, const char *part);

// Ends it: good, all files are in their places; else the folder is as it was, and `status`, or why,
// is handed on.
Status answer_folder_close(AnswerFolder *folder, Status status);

// Whether the folder had exactly this file.
bool answer_folder_unchanged(const AnswerFolder *folder, const char *name);

// Tells that a command has written this file by itself, as its user wanted: where it is one of an
// answer it stays so.
void answer_folder_rewrote(const char *path);
