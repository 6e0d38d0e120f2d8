// profiler/gpu/gpu_session.h - what the files of the GPU plugin share: the session, its work, and
// errors of CUDA and cuBLASLt as sentences.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "backend/backend.h"
#include "profiler/activity.h"
#include "profiler/gpu_plugin.h"
#include "profiler/memory_ops.h"

enum {
    GPU_ALIGNMENT = 256,
    // Arrays are rotated among copies that together hold this many times the L2 cache, so that
    // every call finds its inputs in memory, as a step does that read other data in between.
    GPU_CACHE_TIMES = 3,
};
// As PyTorch has it on Hopper (c10 of 2.4 and later: 32 MiB from compute capability 9.0).
#define GPU_WORKSPACE_BYTES ((size_t)32 << 20)

typedef struct GpuTeam GpuTeam; // profiler/gpu/gpu_team.h

struct GpuSession {
    int device, num_sms;
    size_t l2_bytes;
    cudaStream_t stream; // the backend's where there is one
    Backend *backend;    // NULL until gpu_backend_open
    GpuTeam *team;       // NULL until gpu_team_open; of this GPU and others
    cudaEvent_t begin, end;
    cublasLtHandle_t lt;
    void *workspace; // [GPU_WORKSPACE_BYTES]
    float *one;      // on the device: the scale of fp8 tensors
    void *pool;      // all arrays of the present work
    size_t pool_bytes;
    volatile unsigned *gate; // host memory that the GPU sees: [0] last ticket let through, [1]
                             // tickets that waited too long
    unsigned *gate_device;
    unsigned ticket;
    ActivityLog *log; // NULL: events only
    uint64_t tag;
};

struct GpuWork {
    GpuSession *session;
    GpuRequest request;
    int num_copies, next_copy; // of the arrays
    char *base;                // of copy 0
    size_t copy_bytes;
    // One call on the next copy.
    Status (*call)(GpuWork *work);
    // Or a measurement of its own (launches, teams); NULL: calls between events.
    Status (*measure)(GpuWork *work, int num_calls, bool queued, GpuBatch *out);
    // What is queued before the first event and behind the last, and what is told once all is done;
    // NULL: nothing.
    Status (*before)(GpuWork *work);
    Status (*behind)(GpuWork *work);
    Status (*finish)(GpuWork *work, GpuBatch *out);
    void (*free_own)(GpuWork *work); // may be NULL
    void *own;
};

Status gpu_cuda_error(cudaError_t error, const char *what);
Status gpu_cublas_error(cublasStatus_t error, const char *what);

#define CUDA_TRY(expression)                                                                       \
    do {                                                                                           \
        cudaError_t cuda_error_ = (expression);                                                    \
        if (cuda_error_ != cudaSuccess) return gpu_cuda_error(cuda_error_, #expression);           \
    } while (0)
#define CUBLAS_TRY(expression)                                                                     \
    do {                                                                                           \
        cublasStatus_t cublas_error_ = (expression);                                               \
        if (cublas_error_ != CUBLAS_STATUS_SUCCESS)                                                \
            return gpu_cublas_error(cublas_error_, #expression);                                   \
    } while (0)

// bytes rounded up to the alignment of arrays.
size_t gpu_aligned(size_t bytes);

// Makes the pool at least so large; what was in it is lost.
Status gpu_pool(GpuSession *session, size_t bytes);

// How many copies of arrays that touch so many bytes a call outlast the cache; at most what fits
// in most_bytes with copies of copy_bytes.
int gpu_num_copies(const GpuSession *session, double touched_bytes, size_t copy_bytes,
                   double most_bytes);

// The number of the copy for the next call.
int gpu_next_copy(GpuWork *work);

Status gpu_session_open(int device, GpuTimer *timer, GpuSession **out, char *note,
                        size_t note_size);
void gpu_session_close(GpuSession *session); // accepts NULL

// The backend of the session's GPU, whose compute stream becomes the session's; stays open.
// STATUS_NO where libmeshwright-cuda.so cannot be loaded.
Status gpu_backend_open(GpuSession *session);
void gpu_backend_close(GpuSession *session); // accepts one without

// Work of a request; num_copies 0: as many as the cache calls for.
Status gpu_work_prepare(GpuSession *session, const GpuRequest *request, int num_copies,
                        GpuWork **out);
void gpu_work_release(GpuWork *work); // accepts NULL

// Each fills in the work that plugin.c allocated. num_copies 0: as many as the cache calls for.
Status gpu_gemm_prepare(GpuWork *work, int num_copies);
Status gpu_memory_prepare(GpuWork *work, int num_copies);
Status gpu_host_copy_prepare(GpuWork *work, int num_copies);
Status gpu_launch_prepare(GpuWork *work);
Status gpu_attention_prepare(GpuWork *work, int num_copies);
Status gpu_team_prepare(GpuWork *work);
Status gpu_beside_prepare(GpuWork *work);

// One call on the host's arrays.
Status gpu_memory_apply(GpuWork *work, void *const *buffers);
Status gpu_gemm_apply(GpuWork *work, const void *left, const void *right, void *output);

// profiler/gpu/timing.c: calls between events, with CUPTI's records where there is a log.
Status gpu_batch(GpuWork *work, int num_calls, bool queued, GpuBatch *out);
enum { GPU_MOST_LATE = 5 };

// Of several GPUs all have to measure again where one has to. *late: the launches took longer than
// the gate waits, so that what was measured is no batch of queued calls.
Status gpu_batch_once(GpuWork *work, int num_calls, bool queued, bool *late, GpuBatch *out);
