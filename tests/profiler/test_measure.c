#include "profiler/measure.h"
#include "profiler/sample_stats.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>

// A GPU whose calls take call_s, each step_s longer than the one before, and whose batches have a
// gap behind every call.
struct GpuSession {
    double call_s, step_s, gap_s;
    bool told;       // CUPTI tells of calls
    int untold_from; // but not from this batch on; 0: always
    int num_runs, num_open, most_calls;
    Status refused;
};

struct GpuWork {
    struct GpuSession *session;
};

static Status prepare(GpuSession *session, const GpuRequest *request, GpuWork **out) {
    (void)request;
    TRY(session->refused);
    *out = calloc(1, sizeof **out);
    (*out)->session = session;
    session->num_open++;
    return status_ok();
}

static Status run(GpuWork *work, int num_calls, bool queued, GpuBatch *out) {
    (void)queued;
    GpuSession *session = work->session;
    session->num_runs++;
    if (num_calls > session->most_calls) session->most_calls = num_calls;
    bool told =
        session->told && (session->untold_from == 0 || session->num_runs < session->untold_from);
    out->num_call_s = told ? num_calls : 0;
    out->batch_s = num_calls * (session->call_s + session->gap_s);
    out->kernel[0] = '\0';
    for (int i = 0; i < num_calls && told; i++) {
        out->call_s[i] = session->call_s;
        session->call_s += session->step_s;
    }
    return status_ok();
}

static void release(GpuWork *work) {
    work->session->num_open--;
    free(work);
}

static const GpuPlugin PLUGIN = {
    .abi = GPU_PLUGIN_ABI, .prepare = prepare, .run = run, .release = release};

static const MeasureLimits LIMITS = {.most_s = 10, .goal_frac = 0.01};

static Status measured(GpuSession *session, Measured *out) {
    Arena arena = {0};
    GpuRequest request = {.kind = GPU_WORK_GEMM};
    Status status = measure_shape(&PLUGIN, session, &request, &LIMITS, &arena, out);
    arena_free(&arena);
    CU_ASSERT_EQUAL(session->num_open, 0);
    return status;
}

// 10 us a call and 1 us between: 45 calls fill half a millisecond, six batches are enough.
static void records_tell_the_call_and_events_the_gaps(void) {
    GpuSession session = {.call_s = 10e-6, .gap_s = 1e-6, .told = true};
    Measured m;
    CU_ASSERT_EQUAL(measured(&session, &m).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(m.latency_s, 10e-6, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(m.batch_latency_s, 11e-6, 1e-12);
    CU_ASSERT_EQUAL(m.timer, GPU_TIMER_CUPTI);
    CU_ASSERT_EQUAL(session.most_calls, 45);
    CU_ASSERT_EQUAL(session.num_runs, 3 + STATS_LEAST_SAMPLES);
    CU_ASSERT_EQUAL(m.num_samples, 45 * STATS_LEAST_SAMPLES);
}

static void without_records_events_tell_alone(void) {
    GpuSession session = {.call_s = 10e-6, .gap_s = 1e-6};
    Measured m;
    CU_ASSERT_EQUAL(measured(&session, &m).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(m.latency_s, 11e-6, 1e-12);
    CU_ASSERT_EQUAL(m.timer, GPU_TIMER_EVENTS);
    CU_ASSERT_EQUAL(m.num_samples, STATS_LEAST_SAMPLES);
}

// One batch whose records were lost, and the calls of the others are not what is compared.
static void records_of_some_batches_do_not_count(void) {
    GpuSession session = {.call_s = 10e-6, .gap_s = 1e-6, .told = true, .untold_from = 6};
    Measured m;
    CU_ASSERT_EQUAL(measured(&session, &m).code, STATUS_OK);
    CU_ASSERT_EQUAL(m.timer, GPU_TIMER_EVENTS);
    CU_ASSERT_DOUBLE_EQUAL(m.latency_s, 11e-6, 1e-12);
}

// A device that grows slower with every call is repeated for longer.
static void what_changes_is_repeated_longer(void) {
    GpuSession steady = {.call_s = 1e-3, .told = true};
    GpuSession slowing = {.call_s = 1e-3, .step_s = 1e-4, .told = true};
    Measured a, b;
    CU_ASSERT_EQUAL(measured(&steady, &a).code, STATUS_OK);
    CU_ASSERT_EQUAL(measured(&slowing, &b).code, STATUS_OK);
    CU_ASSERT_EQUAL(steady.num_runs, 3 + STATS_LEAST_SAMPLES);
    CU_ASSERT_EQUAL(slowing.num_runs, 3 + MEASURE_MOST_BATCHES);
    CU_ASSERT(a.spread_frac == 0 && b.spread_frac > 0.1);
}

static void a_clock_that_stands_still_is_refused(void) {
    GpuSession session = {.call_s = 0};
    Measured m;
    Status status = measured(&session, &m);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "meshwright: the GPU's timer says 0 s for a kernel");
}

static void a_missing_kernel_is_handed_on(void) {
    GpuSession session = {.refused = status_error(STATUS_NO, "there is no such product")};
    Measured m;
    CU_ASSERT_EQUAL(measured(&session, &m).code, STATUS_NO);
}

CU_TestInfo measure_tests[] = {
    {"records_tell_the_call_and_events_the_gaps", records_tell_the_call_and_events_the_gaps},
    {"without_records_events_tell_alone", without_records_events_tell_alone},
    {"records_of_some_batches_do_not_count", records_of_some_batches_do_not_count},
    {"what_changes_is_repeated_longer", what_changes_is_repeated_longer},
    {"a_clock_that_stands_still_is_refused", a_clock_that_stands_still_is_refused},
    {"a_missing_kernel_is_handed_on", a_missing_kernel_is_handed_on},
    CU_TEST_INFO_NULL,
};
