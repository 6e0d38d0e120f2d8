// base/folder_lock.h - one writer of answers in a folder at a time.
//
// A lock of the system on FOLDER/.meshwright.lock, which the system gives back when a process dies:
// fcntl, F_SETLK (IEEE Std 1003.1-2017), as whatif/journal.h has on network file systems. The file
// goes with the lock; where a process was killed it stays, and hinders nobody.
#pragma once

#include "base/arena.h"
#include "base/status.h"

typedef struct {
    const char *path;
    int fd;
} FolderLock;

// Waits while another process writes its answer there, which takes moments, at most a minute:
// STATUS_MACHINE after it, and where the folder cannot be written into.
Status folder_lock(const char *folder, Arena *arena, FolderLock *out);

// Gives it back. A zeroed FolderLock is accepted.
void folder_unlock(FolderLock *lock);
