// profiler/wrap_gaps.h - how long the GPUs of a wrapped program worked, and how long they waited.
//
// Per device of a process: the union of all its records in time is busy, the rest between the first
// start and the last end is idle; and the same for each stream alone.
#pragma once

#include "profiler/wrap_file.h"

typedef struct {
    int64_t process;
    uint32_t device; // as the process numbers them
    bool is_union;   // over all streams of the device
    uint32_t stream;
    int64_t num_records;
    double span_s, busy_s, idle_s; // span_s = busy_s + idle_s
    double longest_gap_s;
} GapRow;

typedef struct {
    const GapRow *rows; // [num_rows]: per process and device the union, then its streams
    int num_rows;
    int num_devices;
    double span_s, busy_s; // summed over devices
} Gaps;

Gaps gaps_find(const WrapLog *logs, int num_logs, Arena *arena);

// gaps.csv: process,device,stream,num_records,span_s,busy_s,idle_s,busy_frac,longest_gap_s
// where stream is "all" for a union.
Status gaps_write(const Gaps *gaps, const char *path);
