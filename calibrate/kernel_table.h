// calibrate/kernel_table.h - a CSV file of kernel shapes, with or without measured latencies.
//
// A file is KIND.csv, KIND.csv.gz (zlib reads both) or "-"; quotes as in RFC 4180
// (calibrate/csv.h). The first line names the columns. Every refusal names file, row (the line of
// the file on which it begins, the header is line 1) and column.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

// How far times may be off, by the worst rows of the public tables (six GPUs, seven kinds):
//   faster than the hardware  1.28 times (2 of 51,595 prompts, H100; 1 of 121,500 products of
//                             experts, GB200, by 1.5 %)
//   beside the fit to all     215 times (H200) and over 10 times in 9 of 2,896 (H100), generation
//                             with latent attention
//   one shape again           none has one; the same collective as half and as int8 differs 2.3
//   times
//   of a clock                1.04 times (1 of 1,760 prompts with latent attention, B300): boost
//                             clocks pass those that datasheets count with, by 6 to 9 % (1,965
//                             over 1,850 MHz, B200)
#define KERNEL_SLIP 1.3
#define KERNEL_BOOST 1.1
#define KERNEL_ROWS_A_SLIP 10000.0
#define KERNEL_IDLE_S 4e-3
#define KERNEL_MOST_WORK 100.0
#define KERNEL_ODD_ERROR 10.0
#define KERNEL_ROWS_AN_ODD 250.0
#define KERNEL_MOST_ERROR 250.0
#define KERNEL_MOST_REPEAT 4.0

// A sweep has some ten thousand rows; what is far larger is a mistake.
enum {
    KERNEL_TABLE_MAX_BYTES = 64 << 20, // unpacked
    KERNEL_TABLE_MAX_COLUMNS = 64,
    KERNEL_TABLE_MAX_ROWS = 1000000, // beside the header; blank ones too
};

typedef struct {
    const char *file;
    int num_rows, num_columns;
    const char *header;       // the first line as it stands
    const char *const *names; // [num_columns]
    const char *const *lines; // [num_rows], as they stand, without the newline
    const char *const *cells; // [num_rows][num_columns], trimmed, without quotes
    const int *line_numbers;  // [num_rows], from 2 (blank lines count)
    const char *const *files; // [num_rows], where rows of another file were added; or NULL
} KernelTable;

Status kernel_table_load(const char *path, Arena *arena, KernelTable *out);

// The column of a name, or -1.
int kernel_table_column(const KernelTable *table, const char *name);

// Refuses a table in which some of names (ends with NULL) are missing, with all that are.
Status kernel_table_require(const KernelTable *table, const char *const *names);

// A whole column [num_rows]: text, numbers within bounds, or whole numbers within bounds. The
// column must be there.
const char **kernel_table_texts(const KernelTable *table, const char *name, Arena *arena);
Status kernel_table_numbers(const KernelTable *table, const char *name, double min, double max,
                            Arena *arena, double **out);
Status kernel_table_counts(const KernelTable *table, const char *name, double min, double max,
                           Arena *arena, double **out);

// A column of names [num_rows]: the index in names (ends with NULL), or -1 where it is none of
// them; and the refusal of those.
int *kernel_table_choices(const KernelTable *table, const char *column, const char *const *names,
                          Arena *arena);
Status kernel_table_check_choices(const KernelTable *table, const char *column, const int *choices,
                                  const char *const *names);

// Column latency_ms in seconds [num_rows]. Refuses what no kernel takes: not a number, zero,
// negative, under 0.1 us or over 10 minutes.
Status kernel_table_latency_s(const KernelTable *table, Arena *arena, double **out);

// How many rows differ in one of these columns (names end with NULL).
int kernel_table_num_shapes(const KernelTable *table, const char *const *names);

// Refuses rows that agree in these columns (names end with NULL) and whose times differ by more
// than KERNEL_MOST_REPEAT times.
Status kernel_table_check_repeats(const KernelTable *table, const char *const *names,
                                  const double *latency_s);

// A refusal at a row.
Status kernel_table_error(const KernelTable *table, int row, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// What the hardware allows for a row; without units that bind it, 0.
typedef struct {
    double *least_s; // [num_rows], nothing is faster
    double *work_s;  // [num_rows], its work at the GPU's peak rates
} KernelLimits;

KernelLimits kernel_limits_new(const KernelTable *table, Arena *arena);

// Refuses times beyond the hardware, which is what a wrong unit or GPU looks like:
//   shorter than least_s, where the row is by KERNEL_SLIP or more than one in KERNEL_ROWS_A_SLIP
//           rows is by KERNEL_BOOST (a timer's slip); what names the limit, as in "the GPU's peak
//           rate"
//   longer  than KERNEL_IDLE_S and KERNEL_MOST_WORK times work_s together
Status kernel_table_check_limits(const KernelTable *table, const double *latency_s,
                                 const KernelLimits *limits, const char *what);

// Refuses a table where a row is KERNEL_MOST_ERROR times the time of the fit to all, or a part of
// it. Also refuses one where more than one in KERNEL_ROWS_AN_ODD rows is KERNEL_ODD_ERROR times.
// That is what mixed units look like.
Status kernel_table_check_fit(const KernelTable *table, const double *latency_s,
                              const double *fitted_s);
