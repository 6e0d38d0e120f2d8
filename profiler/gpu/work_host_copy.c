// profiler/gpu/work_host_copy.c - copies between pinned memory of the host and the GPU, which its
// copy engines make.
#include "profiler/gpu/gpu_session.h"

// Pinned memory is missing elsewhere in the machine.
#define MOST_PINNED_BYTES 1e9

static Status call(GpuWork *work) {
    const HostCopyRequest *request = &work->request.host_copy;
    size_t at = (size_t)gpu_next_copy(work) * work->copy_bytes;
    char *host = (char *)work->own + at, *device = work->base + at;
    CUDA_TRY(cudaMemcpyAsync(request->to_device ? device : host, request->to_device ? host : device,
                             (size_t)request->num_bytes,
                             request->to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                             work->session->stream));
    return status_ok();
}

static void free_own(GpuWork *work) {
    cudaFreeHost(work->own);
}

Status gpu_host_copy_prepare(GpuWork *work, int num_copies) {
    const HostCopyRequest *request = &work->request.host_copy;
    if (request->num_bytes < 1)
        return status_error(STATUS_INVALID, "meshwright: a copy of %lld bytes; expected at least 1",
                            (long long)request->num_bytes);
    work->copy_bytes = gpu_aligned((size_t)request->num_bytes);
    work->num_copies = num_copies > 0 ? num_copies
                                      : gpu_num_copies(work->session, (double)work->copy_bytes,
                                                       work->copy_bytes, MOST_PINNED_BYTES);
    size_t bytes = (size_t)work->num_copies * work->copy_bytes;
    TRY(gpu_pool(work->session, bytes));
    work->base = work->session->pool;
    CUDA_TRY(cudaHostAlloc(&work->own, bytes, cudaHostAllocDefault));
    work->free_own = free_own;
    work->call = call;
    // What is copied to the host has been written once.
    CUDA_TRY(cudaMemsetAsync(work->base, 0, bytes, work->session->stream));
    CUDA_TRY(cudaStreamSynchronize(work->session->stream));
    return status_ok();
}
