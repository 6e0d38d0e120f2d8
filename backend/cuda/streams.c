// backend/cuda/streams.c - streams and events; each stream counts its calls, so that it is known
// on the host which of them another stream has waited for.
#include "backend/cuda/cuda_device.h"

#include <stdlib.h>

static Status stream_make(BackendStream *stream) {
    CUDA_TRY(cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreateWithFlags(&stream->order, cudaEventDisableTiming));
    return status_ok();
}

BackendStream *cuda_stream_create(Backend *backend) {
    if (!cuda_well(backend)) return NULL;
    CudaBackend *cuda = (CudaBackend *)backend;
    int index = 0;
    while (index < CUDA_MAX_STREAMS && cuda->streams[index]) index++;
    BackendStream *stream = index < CUDA_MAX_STREAMS ? calloc(1, sizeof *stream) : NULL;
    if (!stream) {
        cuda_fail(backend, status_error(STATUS_MACHINE,
                                        "meshwright: no stream of the GPU is left; there are %d",
                                        CUDA_MAX_STREAMS));
        return NULL;
    }
    stream->index = index;
    cuda->streams[index] = stream;
    Status status = stream_make(stream);
    if (status.code == STATUS_OK) return stream;
    cuda_fail(backend, status);
    cuda_stream_free(backend, stream);
    return NULL;
}

void cuda_stream_free(Backend *backend, BackendStream *stream) {
    if (!stream) return;
    CudaBackend *cuda = (CudaBackend *)backend;
    if (stream->workspace) cudaFreeAsync(stream->workspace, stream->handle);
    // All that was queued here is done, so nobody has to wait for this index any more.
    if (stream->handle) cudaStreamSynchronize(stream->handle);
    for (int i = 0; i < CUDA_MAX_STREAMS; i++)
        if (cuda->streams[i]) cuda->streams[i]->awaited[stream->index] = 0;
    cuda_memory_forget(cuda, stream);
    if (stream->order) cudaEventDestroy(stream->order);
    if (stream->handle) cudaStreamDestroy(stream->handle);
    cuda->streams[stream->index] = NULL;
    free(stream);
}

void cuda_stream_await(CudaBackend *cuda, BackendStream *waiting, BackendStream *first) {
    cuda_check(&cuda->base, cudaEventRecord(first->order, first->handle), "cudaEventRecord");
    cuda_check(&cuda->base, cudaStreamWaitEvent(waiting->handle, first->order, 0),
               "cudaStreamWaitEvent");
    waiting->awaited[first->index] = first->num_queued;
}

Status cuda_sync(Backend *backend) {
    cuda_check(backend, cudaDeviceSynchronize(), "waiting for the streams");
    return backend->failure;
}

// --- Events

BackendEvent *cuda_event_create(Backend *backend, bool timed) {
    if (!cuda_well(backend)) return NULL;
    BackendEvent *event = calloc(1, sizeof *event);
    if (!event) {
        cuda_fail(backend, status_error(STATUS_MACHINE, "meshwright: out of memory"));
        return NULL;
    }
    event->stream = -1;
    cudaError_t error =
        cudaEventCreateWithFlags(&event->handle, timed ? 0 : cudaEventDisableTiming);
    if (error == cudaSuccess) return event;
    cuda_check(backend, error, "cudaEventCreate");
    free(event);
    return NULL;
}

void cuda_event_free(Backend *backend, BackendEvent *event) {
    (void)backend;
    if (!event) return;
    cudaEventDestroy(event->handle);
    free(event);
}

void cuda_event_record(Backend *backend, BackendEvent *event, BackendStream *stream) {
    if (!cuda_well(backend)) return;
    event->stream = stream->index;
    event->num_queued = stream->num_queued;
    cuda_check(backend, cudaEventRecord(event->handle, stream->handle), "cudaEventRecord");
}

void cuda_event_await(Backend *backend, BackendEvent *event, BackendStream *stream) {
    if (!cuda_well(backend) || event->stream < 0 || event->stream == stream->index) return;
    uint64_t *awaited = &stream->awaited[event->stream];
    if (*awaited < event->num_queued) *awaited = event->num_queued;
    cuda_check(backend, cudaStreamWaitEvent(stream->handle, event->handle, 0),
               "cudaStreamWaitEvent");
}

double cuda_event_interval_s(Backend *backend, BackendEvent *from, BackendEvent *to) {
    if (!cuda_well(backend)) return 0;
    float interval_ms = 0;
    cudaError_t error = cudaEventSynchronize(to->handle);
    if (error == cudaSuccess) error = cudaEventElapsedTime(&interval_ms, from->handle, to->handle);
    cuda_check(backend, error, "cudaEventElapsedTime");
    return 1e-3 * (double)interval_ms;
}
