// profiler/measure.h - one shape: warm up, repeat until the median is known, say how sure it is.
#pragma once

#include "base/arena.h"
#include "profiler/gpu_plugin.h"

// Stops where the 95 % interval of the median lies within goal_frac of it, or where most_s have
// passed; but not below the fewest samples.
typedef struct {
    double most_s;
    double goal_frac;
} MeasureLimits;

enum { MEASURE_MOST_BATCHES = 400 };

typedef struct {
    double latency_s; // median of calls, or of batches where only events tell
    double
        batch_latency_s; // median of batches per call, back to back: with the gaps between kernels
    double spread_frac;
    int num_samples;
    double beside_bytes_per_s;    // median of batches; 0: nothing ran beside
    GpuTimer timer;               // what latency_s is from
    size_t num_dropped;           // records that CUPTI had no room for; timer is then events
    double begin_s, end_s;        // of the repetitions, by measure_clock_s
    char kernel[GPU_KERNEL_NAME]; // the longest; empty without CUPTI
} Measured;

// Seconds of a clock that only goes forward.
double measure_clock_s(void);

// STATUS_NO where the device has no such kernel.
Status measure_shape(const GpuPlugin *plugin, GpuSession *session, const GpuRequest *request,
                     const MeasureLimits *limits, Arena *scratch, Measured *out);
