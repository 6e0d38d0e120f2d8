// profiler/wrap_kernels.h - all work of a wrapped program by name: how often, how long.
#pragma once

#include "profiler/wrap_file.h"

typedef struct {
    ActivityKind kind;
    const char *name; // mangled
    const char *readable;
    bool is_nccl;
    int64_t num_calls;
    double total_s, min_s, max_s;
    double bytes;      // copied or set, in total
    double share_frac; // of the time of all rows
} KernelRow;

typedef struct {
    const KernelRow *rows; // [num_rows], longest total first, then by name
    int num_rows;
    double total_s, nccl_s; // sums of durations: overlapping ones count twice
    int64_t num_kernels, num_copies, num_sets;
} KernelTotals;

KernelTotals kernel_totals(const WrapLog *logs, int num_logs, Arena *arena);

// kernels.csv: kind,name,count,total_s,mean_s,min_s,max_s,share_frac,bytes,nccl,mangled
Status kernel_totals_write(const KernelTotals *totals, const char *path);
