#include "profiler/measure.h"
#include "profiler/sample_stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// A batch takes about so long: far above the resolution of events (0.5 us).
#define BATCH_S 0.5e-3
enum { MOST_CALLS = 64 };

typedef struct {
    double *calls, *batches; // [num_calls], [num_batches]
    double *beside;          // [num_batches], bytes/s of what ran beside
    size_t num_calls, num_batches;
    size_t num_dropped; // records of these batches
    bool by_call;       // CUPTI told of every batch
} Samples;

double measure_clock_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool settled(Samples *samples, double goal_frac) {
    size_t n = samples->by_call ? samples->num_calls : samples->num_batches;
    if (samples->num_batches < STATS_LEAST_SAMPLES) return false;
    SampleStats stats = sample_stats(samples->by_call ? samples->calls : samples->batches, n);
    return stats.high - stats.median <= goal_frac * stats.median &&
           stats.median - stats.low <= goal_frac * stats.median;
}

// Seconds of a call: the shorter of two, after a first that loads and warms.
static Status warm_up(const GpuPlugin *plugin, GpuWork *work, GpuBatch *batch, double *call_s) {
    *call_s = INFINITY;
    for (int i = 0; i < 3; i++) {
        TRY(plugin->run(work, 1, false, batch));
        if (i > 0) *call_s = fmin(*call_s, batch->batch_s);
    }
    return status_ok();
}

static Status repeat(const GpuPlugin *plugin, GpuWork *work, const MeasureLimits *limits,
                     Samples *samples, GpuBatch *batch, char *kernel) {
    double call_s;
    TRY(warm_up(plugin, work, batch, &call_s));
    int num_calls = call_s > 0 ? (int)fmin(fmax(BATCH_S / call_s, 1), MOST_CALLS) : MOST_CALLS;
    double begin_s = measure_clock_s();
    samples->by_call = true;
    while (samples->num_batches < MEASURE_MOST_BATCHES) {
        TRY(plugin->run(work, num_calls, true, batch));
        samples->beside[samples->num_batches] = batch->beside_bytes_per_s;
        samples->batches[samples->num_batches++] = batch->batch_s / num_calls;
        if (batch->num_call_s != num_calls) samples->by_call = false;
        samples->num_dropped += batch->num_dropped;
        for (int i = 0; i < batch->num_call_s; i++)
            samples->calls[samples->num_calls++] = batch->call_s[i];
        if (batch->kernel[0]) memcpy(kernel, batch->kernel, GPU_KERNEL_NAME);
        bool enough = samples->num_batches >= STATS_LEAST_SAMPLES;
        if (enough &&
            (measure_clock_s() - begin_s >= limits->most_s || settled(samples, limits->goal_frac)))
            break;
    }
    return status_ok();
}

static void conclude(Samples *samples, bool cupti, Measured *out) {
    SampleStats batches = sample_stats(samples->batches, samples->num_batches);
    SampleStats stats = batches;
    out->num_samples = (int)samples->num_batches;
    if (samples->by_call) {
        stats = sample_stats(samples->calls, samples->num_calls);
        out->num_samples = (int)samples->num_calls;
    }
    out->timer = samples->by_call && cupti ? GPU_TIMER_CUPTI : GPU_TIMER_EVENTS;
    out->num_dropped = samples->num_dropped;
    out->latency_s = stats.median;
    out->batch_latency_s = batches.median;
    out->beside_bytes_per_s = sample_stats(samples->beside, samples->num_batches).median;
    out->spread_frac = stats.spread_frac;
}

Status measure_shape(const GpuPlugin *plugin, GpuSession *session, const GpuRequest *request,
                     const MeasureLimits *limits, Arena *scratch, Measured *out) {
    *out = (Measured){0};
    GpuWork *work;
    TRY(plugin->prepare(session, request, &work));
    Samples samples = {
        .calls = ARENA_ARRAY(scratch, (size_t)MEASURE_MOST_BATCHES * MOST_CALLS, double),
        .batches = ARENA_ARRAY(scratch, MEASURE_MOST_BATCHES, double),
        .beside = ARENA_ARRAY(scratch, MEASURE_MOST_BATCHES, double),
    };
    GpuBatch *batch = ARENA_NEW(scratch, GpuBatch);
    out->begin_s = measure_clock_s();
    Status status = repeat(plugin, work, limits, &samples, batch, out->kernel);
    out->end_s = measure_clock_s();
    plugin->release(work);
    TRY(status);
    conclude(&samples, request->kind != GPU_WORK_LAUNCH, out);
    if (!(out->latency_s > 0) || !isfinite(out->latency_s))
        return status_error(STATUS_MACHINE, "meshwright: the GPU's timer says %g s for a kernel",
                            out->latency_s);
    return status;
}
