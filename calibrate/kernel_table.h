// calibrate/kernel_table.h - a CSV file of kernel shapes, with or without measured latencies.
//
// A file is KIND.csv, KIND.csv.gz (zlib reads both) or "-". The first line names the columns. Every
// refusal names file, row (the line of the file, the header is line 1) and column.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

typedef struct {
    const char *file;
    int num_rows, num_columns;
    const char *header;       // the first line as it stands
    const char *const *names; // [num_columns]
    const char *const *lines; // [num_rows], as they stand, without the newline
    const char *const *cells; // [num_rows][num_columns], trimmed
    const int *line_numbers;  // [num_rows], from 2 (blank lines count)
} KernelTable;

Status kernel_table_load(const char *path, Arena *arena, KernelTable *out);

// The column of a name, or -1.
int kernel_table_column(const KernelTable *table, const char *name);

// Refuses a table in which one of names (ends with NULL) is missing.
Status kernel_table_require(const KernelTable *table, const char *const *names);

// A whole column: text [num_rows], or numbers within bounds [num_rows]. The column must be there.
const char **kernel_table_texts(const KernelTable *table, const char *name, Arena *arena);
Status kernel_table_numbers(const KernelTable *table, const char *name, double min, double max,
                            Arena *arena, double **out);

// Column latency_ms in seconds [num_rows]. Refuses what no kernel takes: not a number, zero,
// negative, under 0.1 us or over 10 minutes.
Status kernel_table_latency_s(const KernelTable *table, Arena *arena, double **out);

// A refusal at a row.
Status kernel_table_error(const KernelTable *table, int row, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Refuses the table where a latency is below the least possible time least_s[row] of the hardware:
// one row in a thousand may be (a timer's slip), more means another unit. what names the limit, as
// in "the peak of 989 TFLOP/s".
Status kernel_table_check_least(const KernelTable *table, const double *latency_s,
                                const double *least_s, const char *what);
