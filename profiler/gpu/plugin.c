// profiler/gpu/plugin.c - the table of functions of libmeshwright-gpu.so: devices, sessions, work.
#include "backend/cuda_backend.h"
#include "profiler/gpu/gpu_kernels.h"
#include "profiler/gpu/gpu_session.h"
#include "profiler/gpu/gpu_team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const GpuPlugin *meshwright_gpu_plugin(void);

Status gpu_cuda_error(cudaError_t error, const char *what) {
    cudaGetLastError(); // what is not sticky is forgotten
    return status_error(STATUS_MACHINE, "meshwright: the GPU failed: %.200s: %s: %s", what,
                        cudaGetErrorName(error), cudaGetErrorString(error));
}

Status gpu_cublas_error(cublasStatus_t error, const char *what) {
    return status_error(STATUS_MACHINE, "meshwright: cuBLASLt failed: %.200s: %s", what,
                        cublasLtGetStatusString(error));
}

// --- Memory

size_t gpu_aligned(size_t bytes) {
    return (bytes + GPU_ALIGNMENT - 1) / GPU_ALIGNMENT * GPU_ALIGNMENT;
}

Status gpu_pool(GpuSession *session, size_t bytes) {
    if (bytes <= session->pool_bytes) return status_ok();
    CUDA_TRY(cudaStreamSynchronize(session->stream));
    CUDA_TRY(cudaFree(session->pool));
    session->pool = NULL;
    session->pool_bytes = 0;
    CUDA_TRY(cudaMalloc(&session->pool, bytes));
    session->pool_bytes = bytes;
    return status_ok();
}

int gpu_num_copies(const GpuSession *session, double touched_bytes, size_t copy_bytes,
                   double most_bytes) {
    double copies = GPU_CACHE_TIMES * (double)session->l2_bytes / (touched_bytes + 1) + 1;
    double room = most_bytes / ((double)copy_bytes + 1);
    if (copies > room) copies = room;
    if (copies > 4096) copies = 4096;
    return copies < 1 ? 1 : (int)copies;
}

int gpu_next_copy(GpuWork *work) {
    int copy = work->next_copy;
    work->next_copy = (copy + 1) % work->num_copies;
    return copy;
}

// --- Devices

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

static Status attribute(int device, enum cudaDeviceAttr name, double scale, double *out) {
    int value = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&value, name, device));
    *out = scale * value;
    return status_ok();
}

static Status device_info(int device, GpuInfo *out) {
    TRY(device_find(device));
    struct cudaDeviceProp properties;
    CUDA_TRY(cudaGetDeviceProperties(&properties, device));
    *out = (GpuInfo){
        .compute_major = properties.major,
        .compute_minor = properties.minor,
        .num_sms = properties.multiProcessorCount,
        .memory_bytes = (double)properties.totalGlobalMem,
        .l2_bytes = (double)properties.l2CacheSize,
        .memory_bus_bits = properties.memoryBusWidth,
        .cublaslt_version = (int64_t)cublasLtGetVersion(),
#ifdef MESHWRIGHT_WITH_CUPTI
        .has_cupti = true,
#endif
    };
    snprintf(out->name, sizeof out->name, "%s", properties.name);
    CUDA_TRY(cudaDeviceGetPCIBusId(out->pci_bus_id, sizeof out->pci_bus_id, device));
    TRY(attribute(device, cudaDevAttrClockRate, 1e3, &out->max_sm_clock_hz)); // kHz
    TRY(attribute(device, cudaDevAttrMemoryClockRate, 1e3, &out->max_memory_clock_hz));
    CUDA_TRY(cudaGetDeviceCount(&out->num_devices));
    CUDA_TRY(cudaDriverGetVersion(&out->driver_cuda_version));
    CUDA_TRY(cudaRuntimeGetVersion(&out->runtime_cuda_version));
    return status_ok();
}

// Without the backend's library there are neither.
static Status probe(int device, GpuInfo *out) {
    TRY(device_info(device, out));
    CudaVersions versions = {0};
    if (cuda_versions(&versions).code != STATUS_OK) return status_ok();
    out->cudnn_version = versions.cudnn;
    out->nccl_version = versions.nccl;
    return status_ok();
}

// --- Sessions

void gpu_session_close(GpuSession *session) {
    if (!session) return;
    gpu_team_close(session->team);
    if (session->stream) cudaStreamSynchronize(session->stream);
#ifdef MESHWRIGHT_WITH_CUPTI
    activity_stop(session->log);
#endif
    if (session->lt) cublasLtDestroy(session->lt);
    cudaFree(session->pool);
    cudaFree(session->workspace);
    cudaFree(session->one);
    if (session->gate) cudaFreeHost((void *)session->gate);
    if (session->begin) cudaEventDestroy(session->begin);
    if (session->end) cudaEventDestroy(session->end);
    if (session->backend)
        session->backend->table->close(session->backend); // and its stream
    else if (session->stream)
        cudaStreamDestroy(session->stream);
    free(session);
}

static Status session_make(GpuSession *session) {
    GpuInfo info;
    TRY(device_info(session->device, &info));
    session->num_sms = info.num_sms;
    session->l2_bytes = (size_t)info.l2_bytes;
    CUDA_TRY(cudaSetDevice(session->device));
    CUDA_TRY(cudaStreamCreateWithFlags(&session->stream, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreate(&session->begin));
    CUDA_TRY(cudaEventCreate(&session->end));
    void *gate;
    CUDA_TRY(cudaHostAlloc(&gate, 2 * sizeof(unsigned), cudaHostAllocMapped));
    memset(gate, 0, 2 * sizeof(unsigned));
    session->gate = gate;
    void *gate_device;
    CUDA_TRY(cudaHostGetDevicePointer(&gate_device, gate, 0));
    session->gate_device = gate_device;
    CUDA_TRY(cudaMalloc(&session->workspace, GPU_WORKSPACE_BYTES));
    void *one;
    CUDA_TRY(cudaMalloc(&one, sizeof(float)));
    session->one = one;
    float value = 1;
    CUDA_TRY(cudaMemcpy(session->one, &value, sizeof value, cudaMemcpyHostToDevice));
    CUBLAS_TRY(cublasLtCreate(&session->lt));
    return status_ok();
}

// Begins to record where it can; else *timer becomes events and note says why.
static void session_record(GpuSession *session, GpuTimer *timer, char *note, size_t note_size) {
    note[0] = '\0';
    if (*timer != GPU_TIMER_CUPTI) return;
#ifdef MESHWRIGHT_WITH_CUPTI
    Status status = activity_start(&session->log);
    if (status.code == STATUS_OK) return;
    session->log = NULL;
    snprintf(note, note_size, "%s", status.text);
#else
    (void)session;
    snprintf(note, note_size, "the GPU plugin was built without CUPTI");
#endif
    *timer = GPU_TIMER_EVENTS;
}

Status gpu_session_open(int device, GpuTimer *timer, GpuSession **out, char *note,
                        size_t note_size) {
    TRY(device_find(device));
    GpuSession *session = calloc(1, sizeof *session);
    if (!session) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    session->device = device;
    // CUPTI sees everything where it begins before the context.
    session_record(session, timer, note, note_size);
    Status status = session_make(session);
    if (status.code != STATUS_OK) {
        gpu_session_close(session);
        return status;
    }
    *out = session;
    return status;
}

// --- Work

void gpu_work_release(GpuWork *work) {
    if (!work) return;
    cudaStreamSynchronize(work->session->stream);
    if (work->free_own) work->free_own(work);
    free(work);
}

static Status work_fill(GpuWork *work, int num_copies) {
    switch (work->request.kind) {
    case GPU_WORK_GEMM:
        return gpu_gemm_prepare(work, num_copies);
    case GPU_WORK_MEMORY:
        return gpu_memory_prepare(work, num_copies);
    case GPU_WORK_HOST_COPY:
        return gpu_host_copy_prepare(work, num_copies);
    case GPU_WORK_LAUNCH:
        return gpu_launch_prepare(work);
    case GPU_WORK_ATTENTION:
        return gpu_attention_prepare(work, num_copies);
    case GPU_WORK_TEAM:
        return gpu_team_prepare(work);
    default:
        return gpu_beside_prepare(work);
    }
}

Status gpu_work_prepare(GpuSession *session, const GpuRequest *request, int num_copies,
                        GpuWork **out) {
    GpuWork *work = calloc(1, sizeof *work);
    if (!work) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    work->session = session;
    work->request = *request;
    Status status = work_fill(work, num_copies);
    if (status.code != STATUS_OK) {
        gpu_work_release(work);
        return status;
    }
    *out = work;
    return status;
}

static Status prepare(GpuSession *session, const GpuRequest *request, GpuWork **out) {
    return gpu_work_prepare(session, request, 0, out);
}

static Status run(GpuWork *work, int num_calls, bool queued, GpuBatch *out) {
    out->num_call_s = 0;
    out->num_dropped = 0;
    out->beside_bytes_per_s = 0;
    out->kernel[0] = '\0';
    if (num_calls < 1 || num_calls > GPU_MAX_CALLS)
        return status_error(STATUS_INVALID, "meshwright: %d calls; expected 1 to %d", num_calls,
                            GPU_MAX_CALLS);
    return work->measure ? work->measure(work, num_calls, queued, out)
                         : gpu_batch(work, num_calls, queued, out);
}

static Status apply_memory(GpuSession *session, const MemoryRequest *request,
                           void *const *buffers) {
    GpuRequest whole = {.kind = GPU_WORK_MEMORY, .memory = *request};
    GpuWork *work;
    TRY(gpu_work_prepare(session, &whole, 1, &work));
    Status status = gpu_memory_apply(work, buffers);
    gpu_work_release(work);
    return status;
}

static Status apply_gemm(GpuSession *session, const GemmRequest *request, const void *left,
                         const void *right, void *output) {
    GpuRequest whole = {.kind = GPU_WORK_GEMM, .gemm = *request};
    GpuWork *work;
    TRY(gpu_work_prepare(session, &whole, 1, &work));
    Status status = gpu_gemm_apply(work, left, right, output);
    gpu_work_release(work);
    return status;
}

__attribute__((visibility("default"))) const GpuPlugin *meshwright_gpu_plugin(void) {
    static const GpuPlugin PLUGIN = {
        .abi = GPU_PLUGIN_ABI,
        .probe = probe,
        .open = gpu_session_open,
        .close = gpu_session_close,
        .prepare = prepare,
        .run = run,
        .release = gpu_work_release,
        .apply_memory = apply_memory,
        .apply_gemm = apply_gemm,
    };
    return &PLUGIN;
}
