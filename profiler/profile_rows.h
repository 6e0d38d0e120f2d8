// profiler/profile_rows.h - the columns of each kind's CSV, and a row's cells.
#pragma once

#include "base/arena.h"
#include "profiler/device_monitor.h"
#include "profiler/measure.h"
#include "profiler/sweep.h"

// The header; its first num_keys columns say what was measured.
const char *profile_header(SweepKind kind, int *num_keys);

// The cells of the key columns ("bfloat16,128,4096,4096").
const char *profile_key(SweepKind kind, const GpuRequest *request, Arena *arena);

// The cells behind them, of all kinds but contention and sustained. What is not known is empty.
const char *profile_cells(SweepKind kind, const GpuRequest *request, const Measured *measured,
                          const DeviceWindow *window, Arena *arena);

// Products under load for seconds (SWEEP_SUSTAINED).
typedef struct {
    double span_s;            // of the whole
    double first_s, steady_s; // a call's median in the first 100 ms, and after the first second
    DeviceWindow steady;      // after the first second
} Sustained;
const char *profile_sustained_cells(const Sustained *sustained, Arena *arena);

// A product beside something else (SWEEP_CONTENTION).
typedef struct {
    double alone_s; // a product without it
    double beside_alone_bytes_per_s;
    Measured both;
} Contention;
const char *profile_contention_cells(const GpuRequest *request, const Contention *contention,
                                     const DeviceWindow *window, Arena *arena);

// A name, with what a CSV cell cannot hold replaced.
const char *profile_cell(const char *text, Arena *arena);
