// profiler/gpu/kernels_rows.cu - softmax, cross entropy and the norm of a gradient.
//
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
//         arXiv:1805.02867, 2018 (maximum and sum in one pass).
#include <math_constants.h>

#include "profiler/gpu/pack.cuh"

// --- Softmax of scaled, causally masked scores: the last of the queries sees all columns

template <int PACKS>
__global__ void __launch_bounds__(ROW_MAX_THREADS)
    softmax_forward(const bf16 *scores, bf16 *y, int columns, int queries) {
    __shared__ float shared[32];
    int64_t row = blockIdx.x;
    int last = columns - queries + (int)(row % queries);
    int first = threadIdx.x * PACK, stride = blockDim.x * PACK;
    float v[PACKS][PACK];
    float most = -CUDART_INF_F, sum = 0;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column > last) continue;
        pack_load(scores + row * columns + column, v[p]);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            v[p][j] = column + j <= last ? v[p][j] * MEMORY_SOFTMAX_SCALE : -CUDART_INF_F;
            most = fmaxf(most, v[p][j]);
        }
    }
    most = block_reduce(most, -CUDART_INF_F, shared, Max());
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        if (first + p * stride > last) continue;
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            v[p][j] = __expf(v[p][j] - most);
            sum += v[p][j];
        }
    }
    float scale = 1.0f / block_sum(sum, shared);
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column >= columns) continue;
        bool seen = column <= last;
#pragma unroll
        for (int j = 0; j < PACK; j++) v[p][j] = seen ? v[p][j] * scale : 0.0f;
        pack_store(y + row * columns + column, v[p]);
    }
}

// dscores = scale y (dy - sum(dy y))
template <int PACKS>
__global__ void __launch_bounds__(ROW_MAX_THREADS)
    softmax_backward(const bf16 *dy, const bf16 *y, bf16 *dscores, int columns, int queries) {
    __shared__ float shared[32];
    int64_t row = blockIdx.x;
    int last = columns - queries + (int)(row % queries);
    int first = threadIdx.x * PACK, stride = blockDim.x * PACK;
    float d[PACKS][PACK], v[PACKS][PACK];
    float sum = 0;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column > last) continue;
        pack_load(dy + row * columns + column, d[p]);
        pack_load(y + row * columns + column, v[p]);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            if (column + j > last) v[p][j] = 0.0f;
            sum += d[p][j] * v[p][j];
        }
    }
    sum = block_sum(sum, shared);
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column >= columns) continue;
        bool seen = column <= last;
#pragma unroll
        for (int j = 0; j < PACK; j++)
            v[p][j] = seen ? MEMORY_SOFTMAX_SCALE * v[p][j] * (d[p][j] - sum) : 0.0f;
        pack_store(dscores + row * columns + column, v[p]);
    }
}

cudaError_t kernel_softmax_forward(const KernelCall *call) {
    RowShape shape = row_shape(call->columns);
    unsigned blocks = (unsigned)call->rows;
    const bf16 *scores = (const bf16 *)call->buffers[0];
    bf16 *y = (bf16 *)call->buffers[1];
    int columns = (int)call->columns, queries = (int)memory_op_queries(call->rows, call->columns);
    if (shape.packs == 1)
        softmax_forward<1><<<blocks, shape.threads, 0, call->stream>>>(scores, y, columns, queries);
    else if (shape.packs == 2)
        softmax_forward<2><<<blocks, shape.threads, 0, call->stream>>>(scores, y, columns, queries);
    else
        softmax_forward<4><<<blocks, shape.threads, 0, call->stream>>>(scores, y, columns, queries);
    return cudaGetLastError();
}

cudaError_t kernel_softmax_backward(const KernelCall *call) {
    RowShape shape = row_shape(call->columns);
    unsigned blocks = (unsigned)call->rows;
    const bf16 *dy = (const bf16 *)call->buffers[0], *y = (const bf16 *)call->buffers[1];
    bf16 *dscores = (bf16 *)call->buffers[2];
    int columns = (int)call->columns, queries = (int)memory_op_queries(call->rows, call->columns);
    if (shape.packs == 1)
        softmax_backward<1>
            <<<blocks, shape.threads, 0, call->stream>>>(dy, y, dscores, columns, queries);
    else if (shape.packs == 2)
        softmax_backward<2>
            <<<blocks, shape.threads, 0, call->stream>>>(dy, y, dscores, columns, queries);
    else
        softmax_backward<4>
            <<<blocks, shape.threads, 0, call->stream>>>(dy, y, dscores, columns, queries);
    return cudaGetLastError();
}

// --- Cross entropy: one pass over the logits of a row, statistics in float

__global__ void __launch_bounds__(512)
    cross_entropy_forward(const bf16 *logits, const int *targets, float *loss, float *logsumexp,
                          int columns) {
    __shared__ float shared[32];
    int64_t row = blockIdx.x;
    const bf16 *x = logits + row * columns;
    float most = -CUDART_INF_F, sum = 0;
    for (int column = threadIdx.x * PACK; column < columns; column += blockDim.x * PACK) {
        float v[PACK];
        pack_load(x + column, v);
        float top = v[0];
#pragma unroll
        for (int j = 1; j < PACK; j++) top = fmaxf(top, v[j]);
        if (top > most) {
            sum *= __expf(most - top);
            most = top;
        }
#pragma unroll
        for (int j = 0; j < PACK; j++) sum += __expf(v[j] - most);
    }
    float top = block_reduce(most, -CUDART_INF_F, shared, Max());
    sum = block_sum(most > -CUDART_INF_F ? sum * __expf(most - top) : 0.0f, shared);
    if (threadIdx.x != 0) return;
    float total = top + logf(sum);
    logsumexp[row] = total;
    loss[row] = total - __bfloat162float(x[targets[row]]);
}

__global__ void __launch_bounds__(512)
    cross_entropy_backward(const bf16 *logits, const int *targets, const float *logsumexp,
                           const float *dloss, bf16 *dlogits, int columns) {
    int64_t row = blockIdx.x;
    int target = targets[row];
    float total = logsumexp[row], scale = dloss[row];
    for (int column = threadIdx.x * PACK; column < columns; column += blockDim.x * PACK) {
        float v[PACK];
        pack_load(logits + row * columns + column, v);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            v[j] = scale * (__expf(v[j] - total) - (column + j == target ? 1.0f : 0.0f));
        pack_store(dlogits + row * columns + column, v);
    }
}

cudaError_t kernel_cross_entropy_forward(const KernelCall *call) {
    cross_entropy_forward<<<(unsigned)call->rows, 512, 0, call->stream>>>(
        (const bf16 *)call->buffers[0], (const int *)call->buffers[1], (float *)call->buffers[2],
        (float *)call->buffers[3], (int)call->columns);
    return cudaGetLastError();
}

cudaError_t kernel_cross_entropy_backward(const KernelCall *call) {
    cross_entropy_backward<<<(unsigned)call->rows, 512, 0, call->stream>>>(
        (const bf16 *)call->buffers[0], (const int *)call->buffers[1],
        (const float *)call->buffers[2], (const float *)call->buffers[3], (bf16 *)call->buffers[4],
        (int)call->columns);
    return cudaGetLastError();
}

// --- Sum of squares: adds to what is there

__global__ void __launch_bounds__(512)
    sum_of_squares(const float *gradient, int64_t num_packs, float *sum) {
    __shared__ float shared[32];
    float squares = 0;
    int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < num_packs; i += stride) {
        float v[PACK];
        pack_load(gradient + i * PACK, v);
#pragma unroll
        for (int j = 0; j < PACK; j++) squares += v[j] * v[j];
    }
    squares = block_sum(squares, shared);
    if (threadIdx.x == 0) atomicAdd(sum, squares);
}

cudaError_t kernel_gradient_norm(const KernelCall *call) {
    int64_t packs = call->rows * call->columns / PACK;
    int64_t blocks = (packs + 511) / 512, most = 4 * (int64_t)call->num_sms;
    sum_of_squares<<<(unsigned)(blocks < most ? blocks : most), 512, 0, call->stream>>>(
        (const float *)call->buffers[0], packs, (float *)call->buffers[1]);
    return cudaGetLastError();
}
