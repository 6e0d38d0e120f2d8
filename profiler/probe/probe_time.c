#include "profiler/probe/probe_time.h"

#include "profiler/sample_stats.h"

#include <math.h>
#include <stdbool.h>
#include <time.h>

// A batch takes about so long: far above the clock's resolution, below a slice of the scheduler.
#define BATCH_S 1e-3
enum { MOST_CALLS = 2000, MOST_BATCHES = 200, FEWEST_GOOD = 2, PATIENCE = 4 };

// Less of the time that passed, and the process was off its core.
static const double UNDISTURBED_FRAC = 0.97;

typedef struct {
    double wall_s, processor_s;
} Clock;

static Clock clock_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (Clock){measure_clock_s(), (double)time.tv_sec + 1e-9 * (double)time.tv_nsec};
}

// What a rank tells of a batch, per call.
typedef struct {
    double processor_s, wall_s, undisturbed, span_s;
} Told;
enum { TOLD = sizeof(Told) / sizeof(double) };

typedef struct {
    double *wall, *good; // [MOST_BATCHES][ranks]
    size_t num_wall, num_good, num_batches, num_disturbed;
} Samples;

static void barrier(Comm *all) {
    int32_t zero = 0;
    all->table->all_reduce(all, &zero, 1, DTYPE_INT32, REDUCE_MAX, all->backend->stream);
}

static Told batch(Comm *all, Work *work, int num_calls) {
    if (work_is_renewed(work)) work_renew(work);
    barrier(all);
    Clock begin = clock_now();
    for (int i = 0; i < num_calls; i++) work_call(work);
    Clock end = clock_now();
    double wall_s = end.wall_s - begin.wall_s;
    double processor_s = end.processor_s - begin.processor_s;
    return (Told){.processor_s = processor_s / num_calls,
                  .wall_s = wall_s / num_calls,
                  .undisturbed = processor_s >= UNDISTURBED_FRAC * wall_s - 2e-6};
}

// How many calls a batch has: of the shorter of two calls, after a first that warms; of the rank
// that is slowest, so that all have the same.
static int calls_of_batch(Comm *all, Work *work) {
    double call_s = INFINITY;
    for (int i = 0; i < 3; i++) {
        Told told = batch(all, work, 1);
        if (i > 0) call_s = fmin(call_s, told.processor_s);
    }
    const double most = work_is_renewed(work) ? work->num_copies : MOST_CALLS;
    double num_calls = call_s > 0 ? fmin(fmax(BATCH_S / call_s, 1), most) : most;
    int32_t calls = -(int32_t)num_calls;
    all->table->all_reduce(all, &calls, 1, DTYPE_INT32, REDUCE_MAX, all->backend->stream);
    return -calls;
}

// Adds a batch of all ranks.
static void samples_add(Samples *samples, const Told *told, int num_ranks, bool together) {
    bool good = true;
    for (int r = 0; r < num_ranks; r++) good = good && told[r].undisturbed > 0;
    for (int r = 0; r < num_ranks; r++) {
        samples->wall[samples->num_wall++] = told[r].wall_s;
        if (!together)
            samples->good[samples->num_good++] = told[r].processor_s;
        else if (good)
            samples->good[samples->num_good++] = told[r].wall_s;
    }
    samples->num_batches++;
    samples->num_disturbed += !good;
}

static bool settled(Samples *samples, size_t least, double goal_frac) {
    if (samples->num_good < least) return false;
    SampleStats stats = sample_stats(samples->good, samples->num_good);
    return stats.high - stats.median <= goal_frac * stats.median &&
           stats.median - stats.low <= goal_frac * stats.median;
}

static void conclude(Samples *samples, size_t num_ranks, ProbeMeasured *out) {
    SampleStats wall = sample_stats(samples->wall, samples->num_wall), stats = wall;
    out->num_samples = (int)samples->num_wall;
    if (samples->num_good >= FEWEST_GOOD * num_ranks) {
        stats = sample_stats(samples->good, samples->num_good);
        out->num_samples = (int)samples->num_good;
    }
    out->latency_s = stats.median;
    out->batch_latency_s = wall.median;
    out->spread_frac = stats.spread_frac;
    out->num_disturbed = (int)samples->num_disturbed;
}

// By what rank 0 says of the time, so that all stop together. Where there are hardly any
// undisturbed batches, they are waited for a while longer.
static bool is_enough(Samples *samples, const MeasureLimits *limits, size_t least, double span_s) {
    if (samples->num_wall < least) return false;
    if (settled(samples, least, limits->goal_frac)) return true;
    if (span_s < limits->most_s) return false;
    return samples->num_good >= least || span_s >= PATIENCE * limits->most_s;
}

static void repeat(Comm *all, Work *work, const MeasureLimits *limits, Told *told,
                   Samples *samples) {
    BackendStream *stream = all->backend->stream;
    size_t least = STATS_LEAST_SAMPLES * (size_t)all->size;
    bool enough = false, together = work->shape->kind == CPU_KIND_COMM;
    int num_calls = calls_of_batch(all, work);
    double begin_s = measure_clock_s();
    while (!enough && samples->num_batches < MOST_BATCHES) {
        Told own = batch(all, work, num_calls);
        own.span_s = measure_clock_s() - begin_s;
        all->table->all_gather(all, told, &own, TOLD, DTYPE_FP64, stream);
        if (backend_sync(all->backend).code != STATUS_OK) return;
        samples_add(samples, told, all->size, together);
        enough = is_enough(samples, limits, least, told[0].span_s);
    }
}

Status probe_measure(Comm *all, Work *work, const MeasureLimits *limits, Arena *scratch,
                     ProbeMeasured *out) {
    size_t num_ranks = (size_t)all->size;
    Samples samples = {.wall = ARENA_ARRAY(scratch, MOST_BATCHES * num_ranks, double),
                       .good = ARENA_ARRAY(scratch, MOST_BATCHES * num_ranks, double)};
    Told *told = ARENA_ARRAY(scratch, num_ranks, Told);
    *out = (ProbeMeasured){0};
    repeat(all, work, limits, told, &samples);
    TRY(backend_sync(all->backend));
    TRY(backend_sync(work->backend));
    conclude(&samples, num_ranks, out);
    if (out->latency_s > 0) return status_ok();
    return status_error(STATUS_MACHINE, "meshwright: the clock says %g s for a call",
                        out->latency_s);
}
