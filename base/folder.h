// base/folder.h - folders that a command writes into: checked before long work, made, and made
// undone.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>

// Refuses a folder that cannot be made or written into, and a new one whose name is like a file's
// ("plan.json"); changes nothing. STATUS_MACHINE where the machine is the reason: a read-only or
// full file system, rights; else STATUS_INVALID.
Status folder_check(const char *path);

// Refuses an existing folder that cannot be written into; `wanted` is the path of the message.
Status folder_check_existing(const char *path, const char *wanted);

// The code of a failure to write that has this errno: the name's fault, or the machine's.
StatusCode folder_write_failure(int error);

// What was missing and is made: to remove it again.
typedef struct {
    const char *path;
    size_t keep; // so many letters of path were there
} FolderMade;

// Makes it and its parents where they are missing.
Status folder_make(const char *path, Arena *arena, FolderMade *out);

// Removes what was made, as far as it is empty. A zeroed FolderMade is accepted.
void folder_unmake(const FolderMade *made);
