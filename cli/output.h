// cli/output.h - folders and files that a command leaves behind, checked before long work.
#pragma once

#include "base/arena.h"
#include "base/status.h"

// Refuses (STATUS_INVALID) a folder that cannot be made or written into; changes nothing.
Status folder_check(const char *path);

// Makes it and its parents where they are missing.
Status folder_make(const char *path);

// The same check for the folder in which a file will be written.
Status folder_check_of(const char *file, Arena *arena);

// Refuses (STATUS_INVALID) to write over an input: an output that is the same file as it.
//   what  the input is, as in "scenario"
Status output_check_input(const char *output, const char *input, const char *what);
