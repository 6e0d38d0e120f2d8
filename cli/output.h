// cli/output.h - folders and files that a command leaves behind, checked before long work.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/scenario.h"

// Refuses (STATUS_INVALID) a folder that cannot be made or written into, and a new one whose name
// is like a file's ("plan.json"); changes nothing.
Status folder_check(const char *path);

// Makes it and its parents where they are missing.
Status folder_make(const char *path);

// The same, noting what was missing, so that it can be removed again.
typedef struct {
    const char *path;
    size_t keep; // so many letters of path were there
} FolderMade;

Status folder_make_noted(const char *path, Arena *arena, FolderMade *out);

// Removes what was made, as far as it is empty. A zeroed FolderMade is accepted.
void folder_unmake(const FolderMade *made);

// The same for a file and the folder in which it will be written (base/output_file.h).
Status output_check(const char *file, Arena *arena);

// Refuses (STATUS_INVALID) to write over an input: an output that is the same file as it.
//   what  the input is, as in "scenario"
Status output_check_input(const char *output, const char *input, const char *what);

// The same for all files that a scenario is made of.
Status output_check_scenario(const char *output, const Scenario *scenario, Arena *arena);

// All of that for a folder and the files that will be written there.
//   names  ends with NULL
Status folder_check_files(const char *folder, const char *const *names, const Scenario *scenario,
                          Arena *arena);
