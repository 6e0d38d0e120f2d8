// backend/cuda/kernels_entropy.cu - cross entropy over the vocabulary, one block a row: the row is
// read once for its maximum and sum, and again, then from the cache, for its gradient.
#include <math_constants.h>

#include "backend/cuda/call.cuh"

constexpr int THREADS = 1024;

template <class T> struct EntropyArgs {
    T *logits; // [rows][stride]
    const int32_t *targets;
    float *max, *sums, *losses; // losses [rows]: of this call
    int64_t rows, num_columns, stride, first_column;
    float scale;
};

// The maximum of a row and the sum of exp(x - maximum), each taken along as the row is read.
struct MaxSum {
    float max, sum;
};

template <class T, int N>
__device__ __forceinline__ MaxSum row_max_sum(const T *x, int64_t num_columns, float *shared) {
    float most = -CUDART_INF_F, sum = 0;
    for (int64_t column = threadIdx.x * N; column < num_columns; column += THREADS * N) {
        float v[N];
        pack_load(x + column, v);
        float top = -CUDART_INF_F;
#pragma unroll
        for (int j = 0; j < N; j++) {
            if (column + j >= num_columns) v[j] = -CUDART_INF_F;
            top = fmaxf(top, v[j]);
        }
        if (top > most) {
            sum *= exp_of<T>(most - top);
            most = top;
        }
        if (most == -CUDART_INF_F) continue;
#pragma unroll
        for (int j = 0; j < N; j++) sum += exp_of<T>(v[j] - most);
    }
    float top = block_reduce(most, -CUDART_INF_F, shared, Max());
    sum = block_sum(most > -CUDART_INF_F ? sum * exp_of<T>(most - top) : 0.0f, shared);
    return {top, sum};
}

// logits become (exp(x - max) inverse_sum - [column is target]) scale, from the end of the row,
// which was read last; padding becomes 0.
template <class T, int N>
__device__ __forceinline__ void row_gradient(T *x, const EntropyArgs<T> &a, float max,
                                             float inverse_sum, int64_t target, float scale) {
    int64_t last = (a.stride - 1) / (THREADS * N) * (THREADS * N);
    for (int64_t column = last + threadIdx.x * N; column >= 0; column -= THREADS * N) {
        if (column >= a.stride) continue;
        float v[N];
        pack_load(x + column, v);
#pragma unroll
        for (int j = 0; j < N; j++) {
            float p = exp_of<T>(v[j] - max) * inverse_sum;
            v[j] = scale * (p - (column + j == target ? 1.0f : 0.0f));
            if (column + j >= a.num_columns || scale == 0.0f) v[j] = 0.0f;
        }
        pack_store(x + column, v);
    }
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS) entropy_kernel(EntropyArgs<T> a) {
    __shared__ float shared[32];
    int64_t row = blockIdx.x;
    T *x = a.logits + row * a.stride;
    int64_t target = a.targets[row] - a.first_column;
    bool counts = a.targets[row] >= 0;
    MaxSum of = {0, 1};
    if (counts) of = row_max_sum<T, N>(x, a.num_columns, shared);
    if (threadIdx.x == 0) {
        float v[1] = {0};
        if (counts && target >= 0 && target < a.num_columns) pack_load(x + target, v);
        a.losses[row] = counts ? logf(of.sum) + of.max - v[0] : 0.0f;
    }
    __syncthreads(); // the target's logit is read before the gradient takes its place
    row_gradient<T, N>(x, a, of.max, 1.0f / of.sum, target, counts ? a.scale : 0.0f);
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS) entropy_shared_kernel(EntropyArgs<T> a) {
    int64_t row = blockIdx.x;
    bool counts = a.targets[row] >= 0;
    float max = a.max[row], sum = a.sums[row];
    if (threadIdx.x == 0) a.losses[row] = counts ? logf(sum) + max - a.sums[a.rows + row] : 0.0f;
    row_gradient<T, N>(a.logits + row * a.stride, a, max, 1.0f / sum,
                       a.targets[row] - a.first_column, counts ? a.scale : 0.0f);
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS) row_max_kernel(EntropyArgs<T> a) {
    __shared__ float shared[32];
    const T *x = a.logits + blockIdx.x * a.stride;
    float most = -CUDART_INF_F;
    for (int64_t column = threadIdx.x * N; column < a.num_columns; column += THREADS * N) {
        float v[N];
        pack_load(x + column, v);
#pragma unroll
        for (int j = 0; j < N; j++)
            if (column + j < a.num_columns) most = fmaxf(most, v[j]);
    }
    most = block_reduce(most, -CUDART_INF_F, shared, Max());
    if (threadIdx.x == 0) a.max[blockIdx.x] = most;
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS) row_sums_kernel(EntropyArgs<T> a) {
    __shared__ float shared[32];
    int64_t row = blockIdx.x, target = a.targets[row] - a.first_column;
    const T *x = a.logits + row * a.stride;
    float max = a.max[row], sum = 0;
    for (int64_t column = threadIdx.x * N; column < a.num_columns; column += THREADS * N) {
        float v[N];
        pack_load(x + column, v);
#pragma unroll
        for (int j = 0; j < N; j++)
            if (column + j < a.num_columns) sum += exp_of<T>(v[j] - max);
    }
    sum = block_sum(sum, shared);
    if (threadIdx.x != 0) return;
    float v[1] = {0};
    if (a.targets[row] >= 0 && target >= 0 && target < a.num_columns) pack_load(x + target, v);
    a.sums[row] = sum;
    a.sums[a.rows + row] = v[0];
}

// --- The calls

typedef enum { WHOLE, SHARED, MAXIMA, SUMS } EntropyStep;

template <class T, int N>
static void launch(EntropyArgs<T> a, EntropyStep step, cudaStream_t stream) {
    unsigned rows = (unsigned)a.rows;
    if (step == WHOLE) entropy_kernel<T, N><<<rows, THREADS, 0, stream>>>(a);
    if (step == SHARED) entropy_shared_kernel<T, N><<<rows, THREADS, 0, stream>>>(a);
    if (step == MAXIMA) row_max_kernel<T, N><<<rows, THREADS, 0, stream>>>(a);
    if (step == SUMS) row_sums_kernel<T, N><<<rows, THREADS, 0, stream>>>(a);
}

template <class T>
static cudaError_t entropy(Backend *backend, const CrossEntropy *call, EntropyStep step,
                           BackendStream *stream) {
    EntropyArgs<T> a = {};
    a.logits = (T *)call->logits, a.targets = call->targets;
    a.max = (float *)call->max, a.sums = (float *)call->sums;
    a.rows = call->rows, a.num_columns = call->num_columns;
    a.stride = call->stride, a.first_column = call->first_column;
    a.scale = (float)call->scale;
    bool has_loss = step == WHOLE || step == SHARED;
    if (has_loss) {
        a.losses = (float *)cuda_scratch(backend, stream, (size_t)a.rows * sizeof(float));
        if (!a.losses) return cudaSuccess; // the failure is kept
    }
    if (a.stride % PACK == 0 && aligned(a.logits))
        launch<T, PACK>(a, step, stream->handle);
    else
        launch<T, 1>(a, step, stream->handle);
    cudaError_t error = cudaGetLastError();
    if (has_loss && error == cudaSuccess)
        error = sums_add_all(a.losses, a.rows, (float *)call->loss, stream->handle);
    cuda_scratch_free(backend, stream, a.losses);
    return error;
}

static void run(Backend *backend, const CrossEntropy *call, EntropyStep step,
                BackendStream *stream) {
    if (call->rows == 0 || !cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, entropy, backend, call, step, stream),
             "cross_entropy");
}

void cuda_cross_entropy(Backend *backend, const CrossEntropy *call, BackendStream *stream) {
    run(backend, call, WHOLE, stream);
}

void cuda_row_max(Backend *backend, const CrossEntropy *call, BackendStream *stream) {
    run(backend, call, MAXIMA, stream);
}

void cuda_row_sums(Backend *backend, const CrossEntropy *call, BackendStream *stream) {
    run(backend, call, SUMS, stream);
}

void cuda_cross_entropy_shared(Backend *backend, const CrossEntropy *call, BackendStream *stream) {
    run(backend, call, SHARED, stream);
}
