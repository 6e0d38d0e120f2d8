// backend/cuda/device.c - opening and closing of a GPU, failures, and the table.
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_plugin.h"
#include "backend/cuda/cudnn_attention.h"

#include <stdio.h>
#include <stdlib.h>

const CudaPlugin *meshwright_cuda_plugin(void);

// --- Failures

Status cuda_error(cudaError_t error, const char *what) {
    cudaGetLastError(); // what is not sticky is forgotten
    return status_error(STATUS_MACHINE, "meshwright: the GPU failed: %.200s: %s: %s", what,
                        cudaGetErrorName(error), cudaGetErrorString(error));
}

Status cublas_error(cublasStatus_t error, const char *what) {
    return status_error(STATUS_MACHINE, "meshwright: cuBLASLt failed: %.200s: %s", what,
                        cublasLtGetStatusString(error));
}

void cuda_fail(Backend *backend, Status failure) {
    if (cuda_well(backend)) backend->failure = failure;
}

void cuda_check(Backend *backend, cudaError_t error, const char *what) {
    if (error != cudaSuccess) cuda_fail(backend, cuda_error(error, what));
}

// --- Calls

bool cuda_begin(Backend *backend, BackendStream *stream, const void *const *arrays,
                int num_arrays) {
    if (!cuda_well(backend)) return false;
    stream->num_queued++;
    if (stream->index == 0) return true;
    CudaBackend *cuda = (CudaBackend *)backend;
    cuda_memory_order(cuda, stream);
    if (!arrays) stream->untracked = stream->num_queued;
    for (int i = 0; arrays && i < num_arrays; i++) cuda_memory_used(cuda, stream, arrays[i]);
    return true;
}

void cuda_end(Backend *backend, BackendStream *stream, cudaError_t error, const char *what) {
    if (error == cudaSuccess && ((CudaBackend *)backend)->sync_each)
        error = cudaStreamSynchronize(stream->handle);
    cuda_check(backend, error, what);
}

// --- Opening and closing

// A device, or the sentence that says what is missing.
static Status device_find(int device) {
    int num_devices = 0;
    cudaError_t error = cudaGetDeviceCount(&num_devices);
    if (error == cudaErrorInsufficientDriver)
        return status_error(STATUS_MACHINE,
                            "meshwright: no NVIDIA driver for this CUDA runtime was "
                            "found (libcuda.so.1): %s",
                            cudaGetErrorString(error));
    if (error == cudaErrorNoDevice || (error == cudaSuccess && num_devices == 0))
        return status_error(STATUS_MACHINE, "meshwright: this machine shows no NVIDIA GPU");
    CUDA_TRY(error);
    if (device >= num_devices)
        return status_error(STATUS_MACHINE, "meshwright: there is no GPU %d; this machine has %d",
                            device, num_devices);
    return status_ok();
}

static void device_close(Backend *backend) {
    if (!backend) return;
    CudaBackend *cuda = (CudaBackend *)backend;
    cudaDeviceSynchronize();
    cudnn_attention_close(cuda);
    cuda_products_close(cuda);
    for (int i = 0; i < CUDA_NUM_STAGES; i++) {
        if (cuda->stages[i].done) cudaEventDestroy(cuda->stages[i].done);
        if (cuda->stages[i].pinned) cudaFreeHost(cuda->stages[i].pinned);
    }
    cuda_memory_close(cuda);
    for (int i = CUDA_MAX_STREAMS - 1; i >= 0; i--)
        if (cuda->streams[i]) cuda_stream_free(backend, cuda->streams[i]);
    free(cuda);
}

static Status device_make(CudaBackend *cuda) {
    CUDA_TRY(cudaSetDevice(cuda->device));
    struct cudaDeviceProp properties;
    CUDA_TRY(cudaGetDeviceProperties(&properties, cuda->device));
    snprintf(cuda->base.name, sizeof cuda->base.name, "%s", properties.name);
    cuda->base.memory_bytes = properties.totalGlobalMem;
    cuda->num_sms = properties.multiProcessorCount;
    if (properties.major < 8)
        return status_error(STATUS_MACHINE,
                            "meshwright: GPU %d, %s, has compute capability %d.%d; expected 8.0 "
                            "(Ampere) or later",
                            cuda->device, cuda->base.name, properties.major, properties.minor);
    cuda->base.stream = cuda_stream_create(&cuda->base);
    if (!cuda->base.stream) return cuda->base.failure;
    for (int i = 0; i < CUDA_NUM_STAGES; i++) {
        CUDA_TRY(cudaHostAlloc(&cuda->stages[i].pinned, CUDA_STAGE_BYTES, cudaHostAllocDefault));
        CUDA_TRY(cudaEventCreateWithFlags(&cuda->stages[i].done, cudaEventDisableTiming));
    }
    TRY(cuda_memory_open(cuda));
    return cuda_products_open(cuda);
}

static Status device_open(int device, Dtype act, Backend **out);

static void *stream_handle(const BackendStream *stream) {
    return stream->handle;
}

static void versions(CudaVersions *out) {
    *out = (CudaVersions){.cudnn = cudnn_attention_version(), .nccl = cuda_nccl_version()};
}

// --- The table

static const CudaPlugin PLUGIN = {
    .table =
        {
            .abi = BACKEND_ABI,
            .close = device_close,
            .alloc = cuda_alloc,
            .release = cuda_release,
            .upload = cuda_upload,
            .download = cuda_download,
            .copy = cuda_copy,
            .zero = cuda_zero,
            .stream_create = cuda_stream_create,
            .stream_free = cuda_stream_free,
            .sync = cuda_sync,
            .event_create = cuda_event_create,
            .event_free = cuda_event_free,
            .event_record = cuda_event_record,
            .event_await = cuda_event_await,
            .event_interval_s = cuda_event_interval_s,
            .product = cuda_product,
            .norm_forward = cuda_norm_forward,
            .norm_backward = cuda_norm_backward,
            .activation_forward = cuda_activation_forward,
            .activation_backward = cuda_activation_backward,
            .rope = cuda_rope,
            .attention_forward = cuda_attention_forward,
            .attention_backward = cuda_attention_backward,
            .attention_merge = cuda_attention_merge,
            .embedding_forward = cuda_embedding_forward,
            .embedding_backward = cuda_embedding_backward,
            .cross_entropy = cuda_cross_entropy,
            .row_max = cuda_row_max,
            .row_sums = cuda_row_sums,
            .cross_entropy_shared = cuda_cross_entropy_shared,
            .adamw = cuda_adamw,
            .sgd = cuda_sgd,
            .router_forward = cuda_router_forward,
            .router_backward = cuda_router_backward,
            .row_dots = cuda_row_dots,
            .gather_rows = cuda_gather_rows,
            .combine_forward = cuda_combine_forward,
            .combine_backward = cuda_combine_backward,
            .add = cuda_add,
            .scale = cuda_scale,
            .cast = cuda_cast,
            .sum_squares = cuda_sum_squares,
            .sum_rows = cuda_sum_rows,
            .copy_rows = cuda_copy_rows,
        },
    .open = device_open,
    .versions = versions,
    .stream_handle = stream_handle,
    .comm_id = cuda_nccl_id,
    .comm_create = cuda_nccl_create,
};

static Status device_open(int device, Dtype act, Backend **out) {
    TRY(device_find(device));
    CudaBackend *cuda = calloc(1, sizeof *cuda);
    if (!cuda) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    cuda->base.table = &PLUGIN.table;
    cuda->base.act = act;
    cuda->base.wide = DTYPE_FP32;
    cuda->device = device;
    const char *sync_each = getenv("MESHWRIGHT_CUDA_SYNC");
    cuda->sync_each = sync_each && sync_each[0] && sync_each[0] != '0';
    Status status = device_make(cuda);
    if (status.code != STATUS_OK) {
        device_close(&cuda->base);
        return status;
    }
    *out = &cuda->base;
    return status;
}

__attribute__((visibility("default"))) const CudaPlugin *meshwright_cuda_plugin(void) {
    return &PLUGIN;
}
