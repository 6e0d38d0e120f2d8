// One product back to back for seconds: what clocks and power settle at.
#include "profiler/profile_run.h"
#include "profiler/sample_stats.h"

#include <math.h>

#define FIRST_S 0.1
#define SETTLED_S 1.0
#define BATCH_S 0.02
enum { MOST_BATCHES = 4096 };

typedef struct {
    double first[MOST_BATCHES], steady[MOST_BATCHES]; // seconds of a call
    size_t num_first, num_steady;
} SustainedSamples;

// The first batch always counts as the first.
static Status sustain(const GpuPlugin *plugin, GpuWork *work, double begin_s,
                      SustainedSamples *samples, GpuBatch *batch) {
    int num_calls = 1;
    while (measure_clock_s() - begin_s < SUSTAINED_S && samples->num_steady < MOST_BATCHES) {
        double at_s = measure_clock_s() - begin_s;
        TRY(plugin->run(work, num_calls, false, batch));
        double call_s = batch->batch_s / num_calls;
        if (call_s > 0) num_calls = (int)fmin(fmax(BATCH_S / call_s, 1), GPU_MAX_CALLS);
        if (samples->num_first == 0 || at_s < FIRST_S) {
            if (samples->num_first < MOST_BATCHES) samples->first[samples->num_first++] = call_s;
        } else if (at_s >= SETTLED_S) {
            samples->steady[samples->num_steady++] = call_s;
        }
    }
    return status_ok();
}

Status profile_sustain(const GpuPlugin *plugin, GpuSession *session, const GpuRequest *request,
                       DeviceMonitor *monitor, Arena *scratch, Sustained *out) {
    GpuWork *work;
    TRY(plugin->prepare(session, request, &work));
    SustainedSamples *samples = ARENA_NEW(scratch, SustainedSamples);
    GpuBatch *batch = ARENA_NEW(scratch, GpuBatch);
    Status status = plugin->run(work, 1, false, batch); // loads the kernel
    double begin_s = measure_clock_s();
    if (status.code == STATUS_OK) status = sustain(plugin, work, begin_s, samples, batch);
    double end_s = measure_clock_s();
    plugin->release(work);
    TRY(status);
    if (samples->num_steady == 0)
        return status_error(STATUS_MACHINE,
                            "meshwright: a product of m %d, n %d, k %d took longer "
                            "than %g s",
                            request->gemm.m, request->gemm.n, request->gemm.k,
                            SUSTAINED_S - SETTLED_S);
    *out = (Sustained){
        .span_s = end_s - begin_s,
        .first_s = sample_stats(samples->first, samples->num_first).median,
        .steady_s = sample_stats(samples->steady, samples->num_steady).median,
        .steady = monitor_window(monitor, begin_s + SETTLED_S, end_s),
    };
    return status;
}
