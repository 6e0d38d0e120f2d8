#include "tests/profiler/made_up_buffer.h"

#include <assert.h>

static void *record_new(MadeUpBuffer *buffer, size_t size) {
    assert(buffer->valid_bytes + size <= MADE_UP_BYTES);
    void *record = buffer->bytes + buffer->valid_bytes;
    buffer->valid_bytes += size;
    return record;
}

void made_up_kernel(MadeUpBuffer *buffer, const char *name, uint32_t correlation_id,
                    uint64_t start_ns, uint64_t end_ns) {
    CUpti_ActivityKernel10 *kernel = record_new(buffer, sizeof *kernel);
    kernel->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel->name = name;
    kernel->correlationId = correlation_id;
    kernel->start = start_ns;
    kernel->end = end_ns;
    kernel->deviceId = 1;
    kernel->streamId = 7;
}

void made_up_copy(MadeUpBuffer *buffer, uint32_t correlation_id, uint64_t start_ns, uint64_t end_ns,
                  uint64_t num_bytes) {
    CUpti_ActivityMemcpy6 *copy = record_new(buffer, sizeof *copy);
    copy->kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy->correlationId = correlation_id;
    copy->start = start_ns;
    copy->end = end_ns;
    copy->bytes = num_bytes;
    copy->deviceId = 2;
    copy->streamId = 8;
}

void made_up_set(MadeUpBuffer *buffer, uint32_t correlation_id, uint64_t start_ns, uint64_t end_ns,
                 uint64_t num_bytes) {
    CUpti_ActivityMemset4 *set = record_new(buffer, sizeof *set);
    set->kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set->correlationId = correlation_id;
    set->start = start_ns;
    set->end = end_ns;
    set->bytes = num_bytes;
    set->deviceId = 3;
    set->streamId = 9;
}

void made_up_overhead(MadeUpBuffer *buffer, uint64_t start_ns, uint64_t end_ns) {
    CUpti_ActivityOverhead3 *overhead = record_new(buffer, sizeof *overhead);
    overhead->kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead->overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    overhead->start = start_ns;
    overhead->end = end_ns;
}

void made_up_tag(MadeUpBuffer *buffer, uint32_t correlation_id, uint64_t tag) {
    CUpti_ActivityExternalCorrelation *external = record_new(buffer, sizeof *external);
    external->kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    external->externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    external->externalId = tag;
    external->correlationId = correlation_id;
}

void made_up_call(MadeUpBuffer *buffer, CUpti_ActivityKind kind, uint32_t correlation_id,
                  uint32_t thread, uint64_t start_ns) {
    CUpti_ActivityAPI *call = record_new(buffer, sizeof *call);
    call->kind = kind;
    call->correlationId = correlation_id;
    call->threadId = thread;
    call->start = start_ns;
    call->end = start_ns + 1;
}

void made_up_other(MadeUpBuffer *buffer) {
    CUpti_ActivityName *name = record_new(buffer, sizeof *name);
    name->kind = CUPTI_ACTIVITY_KIND_NAME;
}

static size_t size_of(CUpti_ActivityKind kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_NAME:
        return sizeof(CUpti_ActivityName);
    default:
        return 0;
    }
}

CUptiResult made_up_next(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record) {
    size_t at = 0;
    if (*record) at = (size_t)((uint8_t *)*record - buffer) + size_of((*record)->kind);
    CUpti_Activity *next = (void *)(buffer + at);
    if (at + sizeof *next > valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    size_t size = size_of(next->kind);
    if (size == 0) return CUPTI_ERROR_INVALID_KIND;
    if (at + size > valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = next;
    return CUPTI_SUCCESS;
}
