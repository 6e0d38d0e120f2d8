// sim/client_process.h - runs a program between three files, and no longer than it may.
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    char *const *argv;             // argv[0] is the path; ends with NULL
    FILE *input, *output, *errors; // its standard streams; files, so that nobody ever waits
    FILE *extra;                   // its file descriptor 3; NULL for none
    double timeout_s;              // 0: none
    double grace_s;                // between SIGTERM and SIGKILL where it is to end; 0: none
} ProcessSpec;

typedef struct {
    bool timed_out;   // and was killed
    bool interrupted; // by SIGINT, SIGTERM or SIGHUP to this process, and was killed
    int exit_code;    // where it ended by itself
    int signal;       // that ended it; 0 for none
    double wall_s;
} ProcessEnd;

// Runs it to its end. Fails (STATUS_MACHINE) where no process can be made.
Status process_run(const ProcessSpec *spec, ProcessEnd *out);
