// Memory, failures, streams and events of the CPU.
#include "backend/cpu/cpu_state.h"
#include "backend/cpu_backend.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static Backend *open_cpu(Dtype act, size_t memory_bytes) {
    Backend *backend = NULL;
    CU_ASSERT_EQUAL_FATAL(cpu_backend_open(act, memory_bytes, &backend).code, STATUS_OK);
    return backend;
}

static void device_says_what_it_is(void) {
    Backend *backend = open_cpu(DTYPE_FP32, 0);
    CU_ASSERT_EQUAL(backend->table->abi, BACKEND_ABI);
    CU_ASSERT_EQUAL(backend->act, DTYPE_FP32);
    CU_ASSERT_EQUAL(backend->wide, DTYPE_FP32);
    CU_ASSERT_EQUAL(strncmp(backend->name, "CPU, OpenBLAS ", 14), 0);
    CU_ASSERT(backend->memory_bytes > 0);
    CU_ASSERT_PTR_NOT_NULL(backend->stream);
    backend->table->close(backend);
    cpu_close(NULL);
    Status status = cpu_backend_open(DTYPE_BF16, 0, &backend);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text, "the CPU backend computes in fp64 or fp32, not in bf16");
}

static void memory_is_counted(void) {
    Backend *backend = open_cpu(DTYPE_FP64, 10000);
    void *first = backend->table->alloc(backend, 1000);
    void *second = backend->table->alloc(backend, 3);
    CU_ASSERT_EQUAL(backend->allocated_bytes, 1003);
    CU_ASSERT_EQUAL((uintptr_t)first % 256, 0);
    CU_ASSERT_EQUAL((uintptr_t)second % 256, 0);
    backend->table->release(backend, first, 1000);
    backend->table->release(backend, NULL, 1000);
    CU_ASSERT_EQUAL(backend->allocated_bytes, 3);
    CU_ASSERT_EQUAL(backend->peak_bytes, 1003);
    backend_reset_peak(backend);
    CU_ASSERT_EQUAL(backend->peak_bytes, 3);
    backend->table->release(backend, second, 3);
    void *nothing = backend->table->alloc(backend, 0);
    CU_ASSERT_PTR_NOT_NULL(nothing);
    backend->table->release(backend, nothing, 0);
    backend->table->close(backend);
}

// What was never written shows in whatever is made of it.
static void new_memory_is_poisoned(void) {
    Backend *backend = open_cpu(DTYPE_FP32, 0);
    float *array = backend->table->alloc(backend, 3 * sizeof(float));
    for (int i = 0; i < 3; i++) CU_ASSERT(isnan(array[i]));
    backend->table->zero(backend, array, 3 * sizeof(float), backend->stream);
    for (int i = 0; i < 3; i++) CU_ASSERT_EQUAL(array[i], 0);
    backend->table->release(backend, array, 3 * sizeof(float));
    backend->table->close(backend);
}

// An array given back and asked for again costs no page fault: a step makes and drops thousands.
// The sanitizers keep what is freed to themselves.
static void memory_is_kept(void) {
#if defined(__GLIBC__) && !defined(MESHWRIGHT_SANITIZE)
    enum { TIMES = 20, BYTES = 64 << 20 };
    Backend *backend = open_cpu(DTYPE_FP32, 0);
    struct rusage first, last;
    for (int i = 0; i < TIMES; i++) {
        char *array = backend->table->alloc(backend, BYTES);
        CU_ASSERT_PTR_NOT_NULL_FATAL(array);
        backend->table->zero(backend, array, BYTES, backend->stream);
        backend->table->release(backend, array, BYTES);
        if (i == 0) CU_ASSERT_EQUAL(getrusage(RUSAGE_SELF, &first), 0);
    }
    CU_ASSERT_EQUAL(getrusage(RUSAGE_SELF, &last), 0);
    CU_ASSERT(last.ru_minflt - first.ru_minflt < BYTES / sysconf(_SC_PAGESIZE) / 8);
    backend->table->close(backend);
#endif
}

static void memory_has_its_limit(void) {
    Backend *backend = open_cpu(DTYPE_FP64, 1000);
    void *array = backend->table->alloc(backend, 600);
    CU_ASSERT_PTR_NOT_NULL(array);
    CU_ASSERT_PTR_NULL(backend->table->alloc(backend, 401));
    Status status = backend_sync(backend);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "out of memory: 401 bytes were asked of a CPU backend that "
                                        "may use 1000, of which 600 are in use");
    CU_ASSERT_EQUAL(backend->allocated_bytes, 600);
    backend->table->release(backend, array, 600);
    backend->table->close(backend);

    backend = open_cpu(DTYPE_FP64, SIZE_MAX); // more than any machine has
    CU_ASSERT_PTR_NULL(backend->table->alloc(backend, SIZE_MAX));
    CU_ASSERT_EQUAL(strncmp(backend_sync(backend).text,
                            "out of memory: the machine refused 18446744073709551615 bytes", 61),
                    0);
    backend->table->close(backend);
}

static void nothing_runs_after_a_failure(void) {
    Backend *backend = open_cpu(DTYPE_FP64, 100);
    const BackendTable *table = backend->table;
    double x[2] = {1, 2}, y[2] = {3, 4};
    CU_ASSERT_PTR_NULL(table->alloc(backend, 101));
    CU_ASSERT_PTR_NULL(table->alloc(backend, 1));
    CU_ASSERT_PTR_NULL(table->stream_create(backend));
    CU_ASSERT_PTR_NULL(table->event_create(backend, true));
    table->add(backend, y, x, x, 2, backend->stream);
    table->scale(backend, y, 5, DTYPE_FP64, 2, backend->stream);
    table->upload(backend, y, x, sizeof x, backend->stream);
    table->zero(backend, y, sizeof y, backend->stream);
    table->copy_rows(backend, y, 8, x, 8, 2, 8, backend->stream);
    Product product = {.m = 1, .n = 1, .k = 2, .a = x, .b = x, .out = y};
    table->product(backend, &product, backend->stream);
    Status status = table->download(backend, y, x, sizeof y, backend->stream);
    CU_ASSERT_EQUAL(y[0], 3);
    CU_ASSERT_EQUAL(y[1], 4);
    const char *sentence =
        "out of memory: 101 bytes were asked of a CPU backend that may use 100, of which 0 are in "
        "use"; // the first failure, not the second
    CU_ASSERT_STRING_EQUAL(status.text, sentence);
    CU_ASSERT_STRING_EQUAL(backend_sync(backend).text, sentence);
    table->close(backend);
}

static void events_tell_the_time_between(void) {
    Backend *backend = open_cpu(DTYPE_FP64, 0);
    const BackendTable *table = backend->table;
    BackendStream *other = table->stream_create(backend);
    BackendEvent *begun = table->event_create(backend, true);
    BackendEvent *done = table->event_create(backend, true);
    CU_ASSERT(other != NULL && other != backend->stream);
    static double x[200 * 200], y[200 * 200];
    Product product = {.m = 200, .n = 200, .k = 200, .a = x, .b = x, .out = y};
    table->event_record(backend, begun, backend->stream);
    table->product(backend, &product, backend->stream);
    table->event_record(backend, done, backend->stream);
    table->event_await(backend, done, other);
    CU_ASSERT(table->event_interval_s(backend, begun, done) > 0);
    CU_ASSERT_EQUAL(table->event_interval_s(backend, begun, done),
                    -table->event_interval_s(backend, done, begun));
    CU_ASSERT_EQUAL(backend_sync(backend).code, STATUS_OK);
    table->event_free(backend, done);
    table->event_free(backend, begun);
    table->stream_free(backend, other);
    table->close(backend);
}

CU_TestInfo cpu_backend_tests[] = {
    {"device_says_what_it_is", device_says_what_it_is},
    {"memory_is_counted", memory_is_counted},
    {"new_memory_is_poisoned", new_memory_is_poisoned},
    {"memory_is_kept", memory_is_kept},
    {"memory_has_its_limit", memory_has_its_limit},
    {"nothing_runs_after_a_failure", nothing_runs_after_a_failure},
    {"events_tell_the_time_between", events_tell_the_time_between},
    CU_TEST_INFO_NULL,
};
