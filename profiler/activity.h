// profiler/activity.h - what a GPU did, kernel by kernel: the records of CUPTI's Activity API,
// decoded, with the tag of the measurement each belongs to.
//
// Records arrive in buffers that CUPTI fills and hands back by callback from its own thread.
// Decoding touches no CUDA. So it is tested where there is no GPU, on buffers that are made up
// after the headers' layouts (tests/profiler/made_up_buffer.h). Source: CUPTI 13.0 documentation,
// "CUPTI Activity API" (record kinds CUpti_ActivityKernel10, Memcpy6, Memset4, Overhead3,
// ExternalCorrelation).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum {
    ACTIVITY_KERNEL,
    ACTIVITY_COPY, // between or within memories
    ACTIVITY_SET,  // cudaMemset
} ActivityKind;

typedef struct {
    ActivityKind kind;
    uint64_t start_ns; // of the GPU's clock as CUPTI gives it
    uint64_t end_ns;   // >= start_ns
    uint64_t tag;      // of activity_tag(); 0: outside every tag
    uint32_t correlation_id;
    uint32_t device;
    uint32_t stream;
    double bytes;     // copied or set; 0 for kernels
    const char *name; // of the kernel, mangled as CUPTI gives it; owned by the log
} ActivityRecord;

typedef struct {
    const ActivityRecord *records; // [num_records], by start, then correlation
    size_t num_records;
    size_t num_dropped;   // records that CUPTI had no room for: the log is incomplete if > 0
    uint64_t overhead_ns; // that CUPTI spent on flushing buffers and compiling, all kinds
} ActivityRecords;

typedef struct ActivityLog ActivityLog;

// Begins to record kernels, copies, memory sets, overhead and external correlation in this
// process. One log at a time.
//   fails with STATUS_MACHINE where CUPTI refuses (no GPU, another profiler attached)
Status activity_start(ActivityLog **out);

// Everything launched by the calling thread between the two belongs to this tag (>= 1).
// Tags nest; the innermost counts.
Status activity_tag(ActivityLog *log, uint64_t tag);
Status activity_untag(ActivityLog *log);

// Waits for all records of work that has finished on the GPU and returns them, decoded and sorted;
// valid until the next take or stop. The log goes on, empty.
Status activity_take(ActivityLog *log, ActivityRecords *out);

// Ends recording and frees the log. Accepts NULL.
void activity_stop(ActivityLog *log);
