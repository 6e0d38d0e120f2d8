#include "profiler/cupti/activity_read.h"

#include <stdbool.h>
#include <stdint.h>

static const char *copy_name(uint8_t kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        return "copy within device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "copy device to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "copy host to host";
    default:
        return "copy";
    }
}

static ActivityRecord kernel_read(const CUpti_ActivityKernel10 *kernel) {
    return (ActivityRecord){
        .kind = ACTIVITY_KERNEL,
        .start_ns = kernel->start,
        .end_ns = kernel->end,
        .correlation_id = kernel->correlationId,
        .device = kernel->deviceId,
        .stream = kernel->streamId,
        .name = kernel->name ? kernel->name : "unnamed kernel",
    };
}

static ActivityRecord copy_read(const CUpti_ActivityMemcpy6 *copy) {
    return (ActivityRecord){
        .kind = ACTIVITY_COPY,
        .start_ns = copy->start,
        .end_ns = copy->end,
        .correlation_id = copy->correlationId,
        .device = copy->deviceId,
        .stream = copy->streamId,
        .bytes = (double)copy->bytes,
        .name = copy_name(copy->copyKind),
    };
}

static ActivityRecord set_read(const CUpti_ActivityMemset4 *set) {
    return (ActivityRecord){
        .kind = ACTIVITY_SET,
        .start_ns = set->start,
        .end_ns = set->end,
        .correlation_id = set->correlationId,
        .device = set->deviceId,
        .stream = set->streamId,
        .bytes = (double)set->bytes,
        .name = "set",
    };
}

ActivityClass activity_read(const CUpti_Activity *activity, ActivityRecord *out) {
    switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        *out = kernel_read((const void *)activity);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        *out = copy_read((const void *)activity);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        *out = set_read((const void *)activity);
        break;
    default:
        return ACTIVITY_OTHER;
    }
    bool whole = out->start_ns > 0 && out->end_ns >= out->start_ns;
    return whole ? ACTIVITY_WORK : ACTIVITY_INCOMPLETE;
}
