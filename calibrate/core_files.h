// calibrate/core_files.h - what was fitted to this computer as files that a scenario names:
// cpu.json (a GPU file), link.json (a link file) and cluster.json.
#pragma once

#include "calibrate/core_fit.h"

typedef struct {
    const char *cpu;     // "AMD EPYC 9654 96-Core Processor"
    const char *blas;    // "OpenBLAS 0.3.21"
    const char *command; // that measured
    const char *date;
    int num_ranks;
    double memory_bytes, memory_available_bytes; // of the computer
    double cache_bytes;                          // of one core, its own
} CoreMachine;

// Writes the three into a folder.
Status core_files_write(const char *folder, const CoreMachine *machine, const CoreFit *fit);
