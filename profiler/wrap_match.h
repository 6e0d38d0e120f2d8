// profiler/wrap_match.h - which kernels were launched inside which marked range.
//
// A kernel belongs to every range that was open, in its thread or in all threads, when the call
// that launched it began. The way from call to range is by time and thread, that from call to
// kernel by correlation id. Ranges nest, so a kernel counts in the inner and in the outer ones.
#pragma once

#include "profiler/wrap_file.h"

typedef struct {
    double kernel_s; // sum of the kernels' durations: overlapping ones count twice
    int64_t num_kernels;
} RangeTime;

// For each range of the log, in its order: [num_ranges].
const RangeTime *wrap_match(const WrapLog *log, Arena *arena);
