// profiler/gpu/timing.c - calls between two events, and what CUPTI recorded of each.
#include "profiler/gpu/gpu_kernels.h"
#include "profiler/gpu/gpu_session.h"

#include <stdio.h>

// The gate opens after the launches. Where one of them waits for the stream (what is loaded at
// first use may), the gate gives up and the batch is measured again without; after GPU_MOST_LATE of
// these, all are.
#define GATE_MOST_NS ((uint64_t)200 * 1000 * 1000)

#ifdef MESHWRIGHT_WITH_CUPTI
// The records of one tag, cut into calls: every call launches the same kernels.
static Status batch_records(GpuSession *session, int num_calls, GpuBatch *out) {
    ActivityRecords all;
    TRY(activity_take(session->log, &all));
    out->num_dropped += all.num_dropped;
    size_t num_records = 0;
    for (size_t i = 0; i < all.num_records; i++) num_records += all.records[i].tag == session->tag;
    if (all.num_dropped > 0 || num_records == 0 || num_records % (size_t)num_calls != 0)
        return status_ok(); // not told whose they are: the events stand alone
    size_t per_call = num_records / (size_t)num_calls, at = 0;
    uint64_t start_ns = 0, end_ns = 0, longest_ns = 0;
    for (size_t i = 0; i < all.num_records; i++) {
        const ActivityRecord *record = &all.records[i];
        if (record->tag != session->tag) continue;
        if (at % per_call == 0) start_ns = record->start_ns, end_ns = record->end_ns;
        if (record->end_ns > end_ns) end_ns = record->end_ns;
        if (record->end_ns - record->start_ns > longest_ns) {
            longest_ns = record->end_ns - record->start_ns;
            snprintf(out->kernel, sizeof out->kernel, "%s", record->name ? record->name : "");
        }
        at++;
        if (at % per_call == 0) out->call_s[at / per_call - 1] = 1e-9 * (double)(end_ns - start_ns);
    }
    out->num_call_s = num_calls;
    return status_ok();
}
#endif

static Status calls(GpuWork *work, int num_calls) {
    for (int i = 0; i < num_calls; i++) TRY(work->call(work));
    return status_ok();
}

static Status calls_tagged(GpuWork *work, int num_calls) {
#ifdef MESHWRIGHT_WITH_CUPTI
    GpuSession *session = work->session;
    if (session->log) {
        TRY(activity_tag(session->log, ++session->tag));
        Status status = calls(work, num_calls);
        TRY(activity_untag(session->log));
        return status;
    }
#endif
    return calls(work, num_calls);
}

// Everything between the gate and its opening; the gate is opened whatever happens.
static Status batch_launch(GpuWork *work, int num_calls) {
    GpuSession *session = work->session;
    if (work->before) TRY(work->before(work));
    CUDA_TRY(cudaEventRecord(session->begin, session->stream));
    TRY(calls_tagged(work, num_calls));
    CUDA_TRY(cudaEventRecord(session->end, session->stream));
    return work->behind ? work->behind(work) : status_ok();
}

Status gpu_batch_once(GpuWork *work, int num_calls, bool queued, bool *late, GpuBatch *out) {
    GpuSession *session = work->session;
    unsigned late_before = session->gate[1];
    if (queued) {
        session->ticket++;
        CUDA_TRY(kernel_gate(session->gate_device, session->ticket, GATE_MOST_NS, session->stream));
    }
    Status status = batch_launch(work, num_calls);
    session->gate[0] = session->ticket;
    TRY(status);
    CUDA_TRY(cudaStreamSynchronize(session->stream));
    *late = session->gate[1] != late_before;
    float batch_ms = 0;
    CUDA_TRY(cudaEventElapsedTime(&batch_ms, session->begin, session->end));
    out->batch_s = 1e-3 * (double)batch_ms;
#ifdef MESHWRIGHT_WITH_CUPTI
    if (session->log) TRY(batch_records(session, num_calls, out));
#endif
    return work->finish ? work->finish(work, out) : status_ok();
}

Status gpu_batch(GpuWork *work, int num_calls, bool queued, GpuBatch *out) {
    bool late = false, gated = queued && work->session->gate[1] < GPU_MOST_LATE;
    TRY(gpu_batch_once(work, num_calls, gated, &late, out));
    if (!late) return status_ok();
    out->num_call_s = 0;
    return gpu_batch_once(work, num_calls, false, &late, out);
}
