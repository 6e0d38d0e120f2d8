// profiler/gpu/kernels_norm.cu - RMSNorm and LayerNorm: a block has a row in its registers.
//
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019; Ba, Kiros,
//         Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
#include "profiler/gpu/pack.cuh"

// One of both, by whether there is a mean.
struct NormForward {
    const bf16 *x, *weight, *bias; // bias: LayerNorm only
    bf16 *y;
    float *mean, *rstd;
    int columns;
};

template <int PACKS, bool CENTRED>
__global__ void __launch_bounds__(ROW_MAX_THREADS) norm_forward(NormForward a) {
    __shared__ float shared[32];
    int64_t row = blockIdx.x;
    const bf16 *x = a.x + row * a.columns;
    int first = threadIdx.x * PACK, stride = blockDim.x * PACK;
    float v[PACKS][PACK];
    float sum = 0, squares = 0, mean = 0;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column >= a.columns) continue;
        pack_load(x + column, v[p]);
#pragma unroll
        for (int j = 0; j < PACK; j++) sum += v[p][j];
    }
    if (CENTRED) mean = block_sum(sum, shared) / a.columns;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        if (first + p * stride >= a.columns) continue;
#pragma unroll
        for (int j = 0; j < PACK; j++) squares += (v[p][j] - mean) * (v[p][j] - mean);
    }
    float rstd = rsqrtf(block_sum(squares, shared) / a.columns + MEMORY_EPSILON);
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column >= a.columns) continue;
        float w[PACK], b[PACK];
        pack_load(a.weight + column, w);
        if (CENTRED) pack_load(a.bias + column, b);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            w[j] = (v[p][j] - mean) * rstd * w[j] + (CENTRED ? b[j] : 0.0f);
        pack_store(a.y + row * a.columns + column, w);
    }
    if (threadIdx.x == 0) {
        a.rstd[row] = rstd;
        if (CENTRED) a.mean[row] = mean;
    }
}

struct NormBackward {
    const bf16 *dy, *x, *weight;
    const float *mean, *rstd;
    bf16 *dx;
    float *parts; // [blocks][1 or 2][columns]
    int64_t rows;
    int columns;
};

// With h = (x - mean) rstd and g = weight dy:
//   dx = rstd (g - h mean(g h) - mean(g)), the last only where centred
//   dweight = sum over rows of dy h, dbias = sum of dy
// A block takes every gridDim.x-th row and keeps its part of the sums over rows in registers.
template <int PACKS, bool CENTRED>
__global__ void __launch_bounds__(ROW_MAX_THREADS) norm_backward(NormBackward a) {
    __shared__ float shared[2][32];
    int first = threadIdx.x * PACK, stride = blockDim.x * PACK;
    float dweight[PACKS][PACK] = {}, dbias[CENTRED ? PACKS : 1][PACK] = {};
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        float mean = CENTRED ? a.mean[row] : 0.0f, rstd = a.rstd[row];
        float h[PACKS][PACK], g[PACKS][PACK];
        float sum_gh = 0, sum_g = 0;
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            int column = first + p * stride;
            if (column >= a.columns) continue;
            float w[PACK];
            pack_load(a.x + row * a.columns + column, h[p]);
            pack_load(a.dy + row * a.columns + column, g[p]);
            pack_load(a.weight + column, w);
#pragma unroll
            for (int j = 0; j < PACK; j++) {
                h[p][j] = (h[p][j] - mean) * rstd;
                dweight[p][j] += g[p][j] * h[p][j];
                if (CENTRED) dbias[p][j] += g[p][j];
                g[p][j] *= w[j];
                sum_gh += g[p][j] * h[p][j];
                sum_g += g[p][j];
            }
        }
        float mean_gh = block_sum(sum_gh, shared[0]) / a.columns;
        float mean_g = CENTRED ? block_sum(sum_g, shared[1]) / a.columns : 0.0f;
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            int column = first + p * stride;
            if (column >= a.columns) continue;
#pragma unroll
            for (int j = 0; j < PACK; j++) g[p][j] = rstd * (g[p][j] - h[p][j] * mean_gh - mean_g);
            pack_store(a.dx + row * a.columns + column, g[p]);
        }
    }
    float *part = a.parts + (int64_t)blockIdx.x * (CENTRED ? 2 : 1) * a.columns;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column >= a.columns) continue;
        pack_store(part + column, dweight[p]);
        if (CENTRED) pack_store(part + a.columns + column, dbias[p]);
    }
}

// out[width] = sum of parts [num_parts][width]; blocks of 32 x 16 threads.
__global__ void sum_parts(const float *parts, int num_parts, int width, float *out) {
    __shared__ float shared[16][33];
    int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (column < width)
        for (int i = threadIdx.y; i < num_parts; i += 16) sum += parts[(int64_t)i * width + column];
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= width) return;
    for (int i = 1; i < 16; i++) sum += shared[i][threadIdx.x];
    out[column] = sum;
}

template <bool CENTRED> static cudaError_t forward(const KernelCall *call, const NormForward &a) {
    RowShape shape = row_shape(call->columns);
    unsigned blocks = (unsigned)call->rows;
    if (shape.packs == 1)
        norm_forward<1, CENTRED><<<blocks, shape.threads, 0, call->stream>>>(a);
    else if (shape.packs == 2)
        norm_forward<2, CENTRED><<<blocks, shape.threads, 0, call->stream>>>(a);
    else
        norm_forward<4, CENTRED><<<blocks, shape.threads, 0, call->stream>>>(a);
    return cudaGetLastError();
}

template <bool CENTRED>
static cudaError_t backward(const KernelCall *call, const NormBackward &a, float *sums) {
    RowShape shape = row_shape(call->columns);
    // As many blocks as run at once, so that the parts stay few.
    int64_t blocks = (int64_t)call->num_sms * (1024 / shape.threads);
    if (blocks > MEMORY_NORM_PARTS) blocks = MEMORY_NORM_PARTS;
    if (blocks > call->rows) blocks = call->rows;
    if (shape.packs == 1)
        norm_backward<1, CENTRED><<<(unsigned)blocks, shape.threads, 0, call->stream>>>(a);
    else if (shape.packs == 2)
        norm_backward<2, CENTRED><<<(unsigned)blocks, shape.threads, 0, call->stream>>>(a);
    else
        norm_backward<4, CENTRED><<<(unsigned)blocks, shape.threads, 0, call->stream>>>(a);
    int width = (CENTRED ? 2 : 1) * a.columns;
    sum_parts<<<(unsigned)((width + 31) / 32), dim3(32, 16), 0, call->stream>>>(
        a.parts, (int)blocks, width, sums);
    return cudaGetLastError();
}

cudaError_t kernel_rmsnorm_forward(const KernelCall *call) {
    void *const *b = call->buffers;
    NormForward a = {(const bf16 *)b[0], (const bf16 *)b[1], nullptr, (bf16 *)b[2], nullptr,
                     (float *)b[3],      (int)call->columns};
    return forward<false>(call, a);
}

cudaError_t kernel_layernorm_forward(const KernelCall *call) {
    void *const *b = call->buffers;
    NormForward a = {(const bf16 *)b[0], (const bf16 *)b[1], (const bf16 *)b[2], (bf16 *)b[3],
                     (float *)b[4],      (float *)b[5],      (int)call->columns};
    return forward<true>(call, a);
}

cudaError_t kernel_rmsnorm_backward(const KernelCall *call) {
    void *const *b = call->buffers;
    NormBackward a = {(const bf16 *)b[0],  (const bf16 *)b[1], (const bf16 *)b[2], nullptr,
                      (const float *)b[3], (bf16 *)b[4],       (float *)b[6],      call->rows,
                      (int)call->columns};
    return backward<false>(call, a, (float *)b[5]);
}

cudaError_t kernel_layernorm_backward(const KernelCall *call) {
    void *const *b = call->buffers;
    NormBackward a = {(const bf16 *)b[0],  (const bf16 *)b[1],  (const bf16 *)b[2],
                      (const float *)b[3], (const float *)b[4], (bf16 *)b[5],
                      (float *)b[7],       call->rows,          (int)call->columns};
    return backward<true>(call, a, (float *)b[6]);
}
