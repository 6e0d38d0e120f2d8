// backend/cuda/cuda_device.h - what the files of the plugin share: the device, its streams and
// memory, how a call begins and ends, and the functions of the table by file.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backend/comm.h"

enum {
    CUDA_MAX_STREAMS = 16,
    CUDA_NUM_STAGES = 4, // of pinned memory, that uploads go through
};
#define CUDA_STAGE_BYTES ((size_t)1 << 20)
// As PyTorch has it on Hopper (c10 of 2.4 and later: 32 MiB from compute capability 9.0).
#define CUDA_WORKSPACE_BYTES ((size_t)32 << 20)

typedef struct CudaBackend CudaBackend;
typedef struct CudaMemory CudaMemory;       // memory.c
typedef struct CudaProducts CudaProducts;   // product.c
typedef struct CudaAttention CudaAttention; // cudnn_attention.c

struct BackendStream {
    cudaStream_t handle;
    int index;                          // in CudaBackend.streams
    uint64_t num_queued;                // calls so far
    uint64_t untracked;                 // num_queued at the last call whose arrays are not known
    uint64_t awaited[CUDA_MAX_STREAMS]; // calls of each stream that this one has waited for
    cudaEvent_t order;                  // where others must wait for this one
    void *workspace; // [CUDA_WORKSPACE_BYTES] of products; NULL until one runs here
};

struct BackendEvent {
    cudaEvent_t handle;
    int stream;          // where it was recorded last; -1: nowhere
    uint64_t num_queued; // calls of that stream then
};

typedef struct {
    void *pinned; // [CUDA_STAGE_BYTES]
    cudaEvent_t done;
} CudaStage;

struct CudaBackend {
    Backend base;
    int device, num_sms;
    bool sync_each; // MESHWRIGHT_CUDA_SYNC: wait after each call, so that a failure names its own
    BackendStream *streams[CUDA_MAX_STREAMS]; // [0]: base.stream; NULL: free
    CudaStage stages[CUDA_NUM_STAGES];
    int next_stage;
    bool has_ways; // messages may be under way for which the device would wait (nccl_ways.c)
    CudaMemory *memory;
    CudaProducts *products;
    CudaAttention *attention; // NULL until one is asked for
};

// --- Failures: the first is kept in backend->failure

// True where nothing has failed.
static inline bool cuda_well(const Backend *backend) {
    return backend->failure.code == STATUS_OK;
}

void cuda_fail(Backend *backend, Status failure);
// Nothing where error is cudaSuccess.
void cuda_check(Backend *backend, cudaError_t error, const char *what);

Status cuda_error(cudaError_t error, const char *what);
Status cublas_error(cublasStatus_t error, const char *what);

#define CUDA_TRY(expression)                                                                       \
    do {                                                                                           \
        cudaError_t cuda_error_ = (expression);                                                    \
        if (cuda_error_ != cudaSuccess) return cuda_error(cuda_error_, #expression);               \
    } while (0)
#define CUBLAS_TRY(expression)                                                                     \
    do {                                                                                           \
        cublasStatus_t cublas_error_ = (expression);                                               \
        if (cublas_error_ != CUBLAS_STATUS_SUCCESS)                                                \
            return cublas_error(cublas_error_, #expression);                                       \
    } while (0)

// --- Calls

// Begins a call that uses `arrays` (NULL: not known which) on a stream; false after a failure.
bool cuda_begin(Backend *backend, BackendStream *stream, const void *const *arrays, int num_arrays);
// Keeps what the call said; what: its name.
void cuda_end(Backend *backend, BackendStream *stream, cudaError_t error, const char *what);

// Memory of one call: free to others on the same stream once that call is through. NULL after a
// failure.
void *cuda_scratch(Backend *backend, BackendStream *stream, size_t bytes);
// NULL without a failure where there is too little left.
void *cuda_scratch_try(Backend *backend, BackendStream *stream, size_t bytes);
void cuda_scratch_free(Backend *backend, BackendStream *stream, void *scratch);

// --- memory.c

Status cuda_memory_open(CudaBackend *backend);
void cuda_memory_close(CudaBackend *backend);
// Notes that the newest call of a stream uses the allocation that array lies in.
void cuda_memory_used(CudaBackend *backend, const BackendStream *stream, const void *array);
// A stream's next call comes after the compute stream's newest allocation.
void cuda_memory_order(CudaBackend *backend, BackendStream *stream);

// Forgets a stream whose work is over.
void cuda_memory_forget(CudaBackend *backend, const BackendStream *stream);

void *cuda_alloc(Backend *backend, size_t bytes);
void cuda_release(Backend *backend, void *array, size_t bytes);
void cuda_upload(Backend *, void *to, const void *from_host, size_t bytes, BackendStream *);
Status cuda_download(Backend *, void *to_host, const void *from, size_t bytes, BackendStream *);
void cuda_copy(Backend *, void *to, const void *from, size_t bytes, BackendStream *);
void cuda_zero(Backend *, void *to, size_t bytes, BackendStream *);

// --- streams.c

BackendStream *cuda_stream_create(Backend *backend);
void cuda_stream_free(Backend *backend, BackendStream *stream);
// What `waiting` does next comes after all that was queued on `first`.
void cuda_stream_await(CudaBackend *backend, BackendStream *waiting, BackendStream *first);
Status cuda_sync(Backend *backend);
BackendEvent *cuda_event_create(Backend *backend, bool timed);
void cuda_event_free(Backend *backend, BackendEvent *event);
void cuda_event_record(Backend *, BackendEvent *event, BackendStream *stream);
void cuda_event_await(Backend *, BackendEvent *event, BackendStream *stream);
double cuda_event_interval_s(Backend *, BackendEvent *from, BackendEvent *to);

// --- product.c

Status cuda_products_open(CudaBackend *backend);
void cuda_products_close(CudaBackend *backend);
void cuda_product(Backend *, const Product *call, BackendStream *);

// --- Kernels

// kernels_norm.cu
void cuda_norm_forward(Backend *, const NormForward *call, BackendStream *);
void cuda_norm_backward(Backend *, const NormBackward *call, BackendStream *);
// kernels_activation.cu
void cuda_activation_forward(Backend *, const Activation *call, BackendStream *);
void cuda_activation_backward(Backend *, const Activation *call, BackendStream *);
// kernels_embedding.cu
void cuda_rope(Backend *, const Rope *call, BackendStream *);
void cuda_embedding_forward(Backend *, const Embedding *call, BackendStream *);
void cuda_embedding_backward(Backend *, const Embedding *call, BackendStream *);
// attention.cu
void cuda_attention_forward(Backend *, const Attention *call, BackendStream *);
void cuda_attention_backward(Backend *, const Attention *call, BackendStream *);
void cuda_attention_merge(Backend *, const AttentionMerge *call, BackendStream *);
// kernels_entropy.cu
void cuda_cross_entropy(Backend *, const CrossEntropy *call, BackendStream *);
void cuda_row_max(Backend *, const CrossEntropy *call, BackendStream *);
void cuda_row_sums(Backend *, const CrossEntropy *call, BackendStream *);
void cuda_cross_entropy_shared(Backend *, const CrossEntropy *call, BackendStream *);
// kernels_optimizer.cu
void cuda_adamw(Backend *, const AdamW *call, BackendStream *);
void cuda_sgd(Backend *, const Sgd *call, BackendStream *);
// kernels_router.cu
void cuda_router_forward(Backend *, const Router *call, BackendStream *);
void cuda_router_backward(Backend *, const Router *call, BackendStream *);
void cuda_row_dots(Backend *, const RowDots *call, BackendStream *);
void cuda_gather_rows(Backend *, const GatherRows *call, BackendStream *);
void cuda_combine_forward(Backend *, const CombineRows *call, BackendStream *);
void cuda_combine_backward(Backend *, const CombineRows *call, BackendStream *);
// kernels_map.cu
void cuda_add(Backend *, void *y, const void *a, const void *b, int64_t count, BackendStream *);
void cuda_scale(Backend *, void *y, double scale, Dtype dtype, int64_t count, BackendStream *);
void cuda_cast(Backend *, void *to, Dtype to_dtype, const void *from, Dtype from_dtype,
               bool accumulate, int64_t count, BackendStream *);
void cuda_copy_rows(Backend *, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                    int64_t rows, int64_t bytes, BackendStream *);
// bias act [columns] is added to each row of out, act or wide.
cudaError_t cuda_add_bias(Backend *, void *out, bool out_wide, const void *bias, int64_t rows,
                          int64_t columns, BackendStream *);
// kernels_sums.cu
void cuda_sum_squares(Backend *, void *sum, const void *x, int64_t count, BackendStream *);
void cuda_sum_rows(Backend *, void *sums, const void *x, int64_t rows, int64_t columns,
                   BackendStream *);

// --- comm_nccl.c

int64_t cuda_nccl_version(void); // 0: NCCL cannot be loaded
Status cuda_nccl_id(unsigned char *id);
Status cuda_nccl_create(Backend *backend, const unsigned char *id, int rank, int size, Comm **out);

#ifdef __cplusplus
}
#endif
