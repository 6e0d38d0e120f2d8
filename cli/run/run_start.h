// cli/run/run_start.h - starts meshwright-run, by mpirun where a plan has several processes; mpirun
// has a folder of its own (base/mpi_folder.h).
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

typedef struct {
    const char *plan; // the file
    int num_ranks;    // processes: one for each GPU of the plan
    int num_steps;
    const char *device;             // "cpu" or "cuda"
    const char *data, *dtype, *log; // NULL: not given
    const char *routing;            // "learned" or "balanced"; NULL: learned
    const char *times;              // of instructions (base/times_file.h); NULL: not written
    bool quiet;                     // what it prints goes to standard error
} RunStart;

// Runs it to its end; its exit code is the Status's (1: the training diverged). STATUS_MACHINE
// where meshwright-run (MESHWRIGHT_RUN, beside this program, or on the PATH) or mpirun is missing.
Status run_start(const RunStart *start, Arena *arena);
