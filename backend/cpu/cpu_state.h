// backend/cpu/cpu_state.h - what the backend of a CPU keeps, and its operations that move bytes.
#pragma once

#include "backend/backend.h"

typedef struct {
    Backend base;         // first: a Backend * is cast to this
    void *scratch;        // of attention; not counted by allocated_bytes
    size_t scratch_bytes; // as large as it was ever asked for
} CpuBackend;

extern const BackendTable CPU_TABLE_FP32, CPU_TABLE_FP64, CPU_TABLE_MIXED;

// Keeps the first failure.
void cpu_fail(Backend *backend, Status status);

// Memory for one operation, aligned to 256 bytes; NULL, and the failure kept, where there is none.
void *cpu_scratch(Backend *backend, size_t bytes);

// As BackendTable has them.
void cpu_close(Backend *backend);
void *cpu_alloc(Backend *backend, size_t bytes);
void cpu_release(Backend *backend, void *array, size_t bytes);
void cpu_upload(Backend *backend, void *to, const void *from_host, size_t bytes,
                BackendStream *stream);
Status cpu_download(Backend *backend, void *to_host, const void *from, size_t bytes,
                    BackendStream *stream);
void cpu_zero(Backend *backend, void *to, size_t bytes, BackendStream *stream);
void cpu_copy_rows(Backend *backend, void *to, int64_t to_stride, const void *from,
                   int64_t from_stride, int64_t rows, int64_t bytes, BackendStream *stream);
BackendStream *cpu_stream_create(Backend *backend);
void cpu_stream_free(Backend *backend, BackendStream *stream);
Status cpu_sync(Backend *backend);
BackendEvent *cpu_event_create(Backend *backend, bool timed);
void cpu_event_free(Backend *backend, BackendEvent *event);
void cpu_event_record(Backend *backend, BackendEvent *event, BackendStream *stream);
void cpu_event_await(Backend *backend, BackendEvent *event, BackendStream *stream);
double cpu_event_interval_s(Backend *backend, BackendEvent *from, BackendEvent *to);
