// base/output_file.h - a file that appears whole or not at all, whatever happens to this process.
//
// It is written under no name where the file system can do that, else under a name of its own
// beside its place, and takes that place when it is complete. A symbolic link stays: what it leads
// to is replaced. While it is open SIGINT and SIGTERM are held back, so that the writer can stop in
// between: output_interrupted.
#pragma once

#include "base/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { OUTPUT_PATH_SIZE = 4096 };

// It is not moved in memory while it is open: its stream points to it.
typedef struct {
    FILE *stream;
    const char *path;                 // as given, for messages
    char target[OUTPUT_PATH_SIZE];    // what it leads to
    char temporary[OUTPUT_PATH_SIZE]; // beside target
    int fd;                           // of stream
    int error;                        // errno of the first write that failed; 0: none
    bool named;                       // it has its temporary name already
    sigset_t before;                  // signals blocked by the caller
} OutputFile;

// Where a file of this path is written: behind all symbolic links.
//   target[OUTPUT_PATH_SIZE]
// Refuses (STATUS_INVALID) what exists and is not a regular file: folders, devices, pipes.
Status output_target(const char *path, char *target);

// Whether two paths are one file, or will be: of what does not exist yet by folder and name.
bool output_is(const char *path, const char *other);

// Opens it for everybody to read and write, but for the process's umask; _program also to execute.
Status output_open(const char *path, OutputFile *out);
Status output_open_program(const char *path, OutputFile *out);

// Whether somebody asked this process to stop.
bool output_interrupted(void);

// Holds SIGINT and SIGTERM back, as an open file does, around several files: files that are opened
// meanwhile leave a signal that has come to the one who holds.
void output_hold_signals(sigset_t *before);

// Gives them back; one that has come counts as dealt with.
void output_release_signals(const sigset_t *before);

// Ends it: good, it takes its place; else nothing of it is left and `status` is handed on.
Status output_close(OutputFile *file, Status status);
