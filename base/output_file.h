// base/output_file.h - a file that appears whole or not at all, whatever happens to this process.
//
// It is written under no name where the file system can do that, else under a name of its own
// beside the path, and takes the path's place when it is complete. While it is open SIGINT and
// SIGTERM are held back, so that the writer can stop in between: output_interrupted.
#pragma once

#include "base/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
    FILE *stream;
    const char *path;
    char temporary[4096]; // beside path
    bool named;           // it has that name already
    sigset_t before;      // signals blocked by the caller
} OutputFile;

Status output_open(const char *path, OutputFile *out);

// Whether somebody asked this process to stop.
bool output_interrupted(void);

// Ends it: good, it takes the path's place; else nothing of it is left and `status` is handed on.
Status output_close(OutputFile *file, Status status);
