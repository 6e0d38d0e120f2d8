// profiler/gpu/gpu_backend.c - the backend that plans run on, for what is measured by its
// functions: attention and what GPUs do together.
#include "backend/cuda_backend.h"
#include "profiler/gpu/gpu_session.h"

Status gpu_backend_open(GpuSession *session) {
    if (session->backend) return status_ok();
    Backend *backend = NULL;
    CudaVersions versions;
    const Status found = cuda_versions(&versions); // whether the library is there
    if (found.code != STATUS_OK) return status_error(STATUS_NO, "%s", found.text);
    TRY(cuda_backend_open(session->device, DTYPE_BF16, &backend));
    CUDA_TRY(cudaStreamSynchronize(session->stream));
    CUDA_TRY(cudaStreamDestroy(session->stream));
    session->backend = backend;
    session->stream = cuda_stream_handle(backend, backend->stream);
    return status_ok();
}

void gpu_backend_close(GpuSession *session) {
    if (!session->backend) return;
    session->backend->table->close(session->backend);
    session->backend = NULL;
    session->stream = NULL;
    if (cudaStreamCreateWithFlags(&session->stream, cudaStreamNonBlocking) != cudaSuccess)
        cudaGetLastError(); // whatever needs the stream next says that there is none
}
