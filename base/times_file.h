// base/times_file.h - when each instruction of each process ran, step after step, in a file.
//
// The file holds the machine's own numbers. First comes a head: a magic number, how many processes,
// and of each how many instructions. Then come, for each step and in it for each process, begin and
// end of its instructions, in seconds from the step's begin. Programs of one build on one machine
// exchange it.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    FILE *stream;
    const char *path;
    int num_rows;      // processes
    const int *counts; // [num_rows] instructions
    int64_t num_steps; // whole ones; of a file that is read
    int64_t head_bytes, step_bytes;
} TimesFile;

//   counts  [num_rows]; kept
Status times_file_create(const char *path, int num_rows, const int *counts, TimesFile *out);

// The next row; pairs: [2 x counts] begin and end in turn.
Status times_file_add(const TimesFile *file, int row, const double *pairs);

// Refuses (STATUS_MACHINE) what is no such file.
Status times_file_open(const char *path, Arena *arena, TimesFile *out);

//   step  from 0
//   start_s, end_s  [counts[row]]
Status times_file_read(const TimesFile *file, int64_t step, int row, double *start_s,
                       double *end_s);

Status times_file_close(TimesFile *file); // accepts a zeroed one
