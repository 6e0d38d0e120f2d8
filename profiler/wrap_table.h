// profiler/wrap_table.h - the ranges that a program has marked, as tables of measured kernels.
//
// A range "mw:KIND NAME=VALUE ..." is one call of a kernel of that kind and shape: KIND.csv has a
// column per NAME, in the order of the first range of the kind, and a row per different values,
// in the order in which they first came:
//   latency_ms   median over its ranges of the GPU time of the kernels launched inside
//   num_calls    its ranges that launched any
//   spread_frac  distance of the quartiles over the median
// The form is that of `calibrate --kernels`. KIND and NAME are lower-case letters, digits and _;
// a VALUE has no space, comma or quote.
#pragma once

#include "profiler/wrap_match.h"

typedef struct {
    const char *kind;
    const char *const *columns; // [num_columns]
    int num_columns;
    const char *const *values; // [num_rows][num_columns]
    int num_rows;
    const double *latency_s;   // [num_rows]
    const double *spread_frac; // [num_rows]
    const int *num_calls;      // [num_rows]
} RangeTable;

typedef struct {
    const RangeTable *tables; // [num_tables], in order of their kinds
    int num_tables;
    int64_t num_ranges;    // all that begin in mw:
    int64_t num_empty;     // launched no kernel: in no row
    int64_t num_malformed; // or other columns than the first of its kind: in no row
    const char *malformed; // the first such, NULL if none
} RangeTables;

RangeTables range_tables(const WrapLog *logs, int num_logs, Arena *arena);

// Writes KIND.csv.
Status range_table_write(const RangeTable *table, const char *path);
