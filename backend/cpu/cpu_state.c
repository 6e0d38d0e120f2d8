#include "backend/cpu/cpu_state.h"

#include "backend/cpu_backend.h"

#include <assert.h>
#include <cblas.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ALIGNMENT_BYTES = 256 };

// Work is done when it is queued: a stream has nothing to remember, but each has its own address.
struct BackendStream {
    char unused;
};

struct BackendEvent {
    struct timespec when;
};

void cpu_fail(Backend *backend, Status status) {
    if (backend->failure.code == STATUS_OK) backend->failure = status;
}

static bool has_failed(const Backend *backend) {
    return backend->failure.code != STATUS_OK;
}

// --- Opening and closing

// "CPU, OpenBLAS 0.3.21": the first two words of what OpenBLAS says of itself.
static void name_device(char *name, size_t size) {
    const char *config = openblas_get_config();
    const char *version = strchr(config, ' ');
    size_t length = version == NULL ? strlen(config)
                                    : (size_t)(version - config) + 1 + strcspn(version + 1, " ");
    snprintf(name, size, "CPU, %.*s", (int)length, config);
}

// The C library is to keep what is given back: by its own choice each array of 128 KiB and more is
// a mapping, or goes back at the heap's end, and the next one like it costs a page fault every 4
// KiB. GPUs keep theirs too (backend/cuda/memory.c).
static void keep_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

#ifdef MESHWRIGHT_SANITIZE // which keeps what is freed, and watches what lies right behind an array
static void *array_new(size_t bytes) {
    if (bytes > SIZE_MAX - ALIGNMENT_BYTES) return NULL;
    size_t rounded = (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    return aligned_alloc(ALIGNMENT_BYTES, rounded == 0 ? ALIGNMENT_BYTES : rounded);
}

static void array_free(void *array) {
    free(array);
}
#else
// Over malloc, which is aligned to 16, with what it gave before the array: aligned_alloc of glibc
// 2.36 leaves a crumb before each array, so that a freed one has no room for the next like it.
static void *array_new(size_t bytes) {
    if (bytes > SIZE_MAX - ALIGNMENT_BYTES) return NULL;
    char *block = malloc(bytes + ALIGNMENT_BYTES);
    if (block == NULL) return NULL;
    char *array = block + ALIGNMENT_BYTES - (uintptr_t)block % ALIGNMENT_BYTES;
    memcpy(array - sizeof block, &block, sizeof block);
    return array;
}

static void array_free(void *array) {
    if (array == NULL) return;
    char *block;
    memcpy(&block, (char *)array - sizeof block, sizeof block);
    free(block);
}
#endif

static const BackendTable *table_of(Dtype act, Dtype wide) {
    if (act == DTYPE_FP64) return &CPU_TABLE_FP64;
    return wide == DTYPE_FP64 ? &CPU_TABLE_MIXED : &CPU_TABLE_FP32;
}

Status cpu_backend_open(Dtype act, size_t memory_bytes, Backend **out) {
    if (act != DTYPE_FP64 && act != DTYPE_FP32) {
        return status_error(STATUS_INVALID, "the CPU backend computes in fp64 or fp32, not in %s",
                            dtype_name(act));
    }
    CpuBackend *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL) return status_error(STATUS_MACHINE, "no memory for the CPU backend");
    Backend *backend = &cpu->base;
    const char *wide = getenv("MESHWRIGHT_CPU_WIDE");
    backend->act = backend->wide = act;
    if (wide && strcmp(wide, "fp64") == 0) backend->wide = DTYPE_FP64;
    backend->table = table_of(act, backend->wide);
    backend->memory_bytes = memory_bytes;
    if (memory_bytes == 0) {
        backend->memory_bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    }
    name_device(backend->name, sizeof backend->name);
    // One thread per rank: several ranks share the machine, and the order of sums stays the same.
    if (getenv("OPENBLAS_NUM_THREADS") == NULL) openblas_set_num_threads(1);
    keep_memory();
    backend->stream = cpu_stream_create(backend);
    if (backend->stream == NULL) {
        free(cpu);
        return status_error(STATUS_MACHINE, "no memory for the CPU backend");
    }
    *out = backend;
    return status_ok();
}

void cpu_close(Backend *backend) {
    if (backend == NULL) return;
    CpuBackend *cpu = (CpuBackend *)backend;
    free(backend->stream);
    array_free(cpu->scratch);
    free(cpu);
}

// --- Memory

void *cpu_alloc(Backend *backend, size_t bytes) {
    if (has_failed(backend)) return NULL;
    if (bytes > backend->memory_bytes || backend->allocated_bytes > backend->memory_bytes - bytes) {
        cpu_fail(backend, status_error(STATUS_MACHINE,
                                       "out of memory: %zu bytes were asked of a CPU backend that "
                                       "may use %zu, of which %zu are in use",
                                       bytes, backend->memory_bytes, backend->allocated_bytes));
        return NULL;
    }
    void *array = array_new(bytes);
    if (array == NULL) {
        cpu_fail(backend, status_error(STATUS_MACHINE,
                                       "out of memory: the machine refused %zu bytes; %zu are in "
                                       "use",
                                       bytes, backend->allocated_bytes));
        return NULL;
    }
#ifndef NDEBUG
    memset(array, 0xff, bytes); // NaN in every format: what is read before it is written shows
#endif
    backend->allocated_bytes += bytes;
    if (backend->allocated_bytes > backend->peak_bytes) {
        backend->peak_bytes = backend->allocated_bytes;
    }
    return array;
}

void cpu_release(Backend *backend, void *array, size_t bytes) {
    if (array == NULL) return;
    assert(bytes <= backend->allocated_bytes);
    backend->allocated_bytes -= bytes;
    array_free(array);
}

void *cpu_scratch(Backend *backend, size_t bytes) {
    CpuBackend *cpu = (CpuBackend *)backend;
    if (bytes <= cpu->scratch_bytes) return cpu->scratch;
    array_free(cpu->scratch);
    cpu->scratch = array_new(bytes);
    cpu->scratch_bytes = cpu->scratch == NULL ? 0 : bytes;
    if (cpu->scratch == NULL) {
        cpu_fail(backend,
                 status_error(STATUS_MACHINE,
                              "out of memory: the machine refused %zu bytes of scratch", bytes));
    }
    return cpu->scratch;
}

// --- Copies

void cpu_upload(Backend *backend, void *to, const void *from_host, size_t bytes,
                BackendStream *stream) {
    (void)stream;
    if (!has_failed(backend) && bytes > 0) memcpy(to, from_host, bytes);
}

Status cpu_download(Backend *backend, void *to_host, const void *from, size_t bytes,
                    BackendStream *stream) {
    cpu_upload(backend, to_host, from, bytes, stream);
    return backend->failure;
}

void cpu_zero(Backend *backend, void *to, size_t bytes, BackendStream *stream) {
    (void)stream;
    if (!has_failed(backend) && bytes > 0) memset(to, 0, bytes);
}

void cpu_copy_rows(Backend *backend, void *to, int64_t to_stride, const void *from,
                   int64_t from_stride, int64_t rows, int64_t bytes, BackendStream *stream) {
    (void)stream;
    if (has_failed(backend)) return;
    for (int64_t r = 0; r < rows; r++) {
        memcpy((char *)to + r * to_stride, (const char *)from + r * from_stride, (size_t)bytes);
    }
}

// --- Streams and events

BackendStream *cpu_stream_create(Backend *backend) {
    if (has_failed(backend)) return NULL;
    BackendStream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) cpu_fail(backend, status_error(STATUS_MACHINE, "no memory for a stream"));
    return stream;
}

void cpu_stream_free(Backend *backend, BackendStream *stream) {
    (void)backend;
    free(stream);
}

Status cpu_sync(Backend *backend) {
    return backend->failure;
}

BackendEvent *cpu_event_create(Backend *backend, bool timed) {
    (void)timed;
    if (has_failed(backend)) return NULL;
    BackendEvent *event = calloc(1, sizeof *event);
    if (event == NULL) cpu_fail(backend, status_error(STATUS_MACHINE, "no memory for an event"));
    return event;
}

void cpu_event_free(Backend *backend, BackendEvent *event) {
    (void)backend;
    free(event);
}

void cpu_event_record(Backend *backend, BackendEvent *event, BackendStream *stream) {
    (void)stream;
    if (!has_failed(backend)) clock_gettime(CLOCK_MONOTONIC, &event->when);
}

void cpu_event_await(Backend *backend, BackendEvent *event, BackendStream *stream) {
    (void)backend, (void)event, (void)stream; // what was recorded is done
}

double cpu_event_interval_s(Backend *backend, BackendEvent *from, BackendEvent *to) {
    (void)backend;
    return (double)(to->when.tv_sec - from->when.tv_sec) +
           (double)(to->when.tv_nsec - from->when.tv_nsec) * 1e-9;
}
