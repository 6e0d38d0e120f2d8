// backend/cuda/kernels_norm.cu - RMSNorm and LayerNorm: a block has a row in its registers; rows
// that are too long or not of whole packs are read again instead.
//
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019; Ba, Kiros,
//         Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
#include "backend/cuda/call.cuh"

constexpr int64_t MAX_COLUMNS = ROW_MAX_THREADS * 4 * PACK;
constexpr int WHOLE_THREADS = 256; // of the kernels that read rows again

template <class T> struct ForwardArgs {
    const T *x, *add, *weight, *bias; // add, bias: nullptr where there is none
    T *sum, *y;
    float *mean, *rstd;
    float epsilon;
    int64_t columns;
};

template <class T, int PACKS, bool CENTRED>
__global__ void __launch_bounds__(ROW_MAX_THREADS) norm_forward(ForwardArgs<T> a) {
    __shared__ float shared[32];
    int columns = (int)a.columns;
    int64_t at = blockIdx.x * a.columns;
    int first = threadIdx.x * PACK, stride = blockDim.x * PACK;
    float v[PACKS][PACK];
    float sum = 0, squares = 0, mean = 0;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column >= columns) continue;
        pack_load(a.x + at + column, v[p]);
        if (a.add) {
            float other[PACK];
            pack_load(a.add + at + column, other);
#pragma unroll
            for (int j = 0; j < PACK; j++) v[p][j] = as_stored(a.x, v[p][j] + other[j]);
            pack_store(a.sum + at + column, v[p]);
        }
#pragma unroll
        for (int j = 0; j < PACK; j++) sum += v[p][j];
    }
    if (CENTRED) mean = block_sum(sum, shared) / columns;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        if (first + p * stride >= columns) continue;
#pragma unroll
        for (int j = 0; j < PACK; j++) squares += (v[p][j] - mean) * (v[p][j] - mean);
    }
    float rstd = rsqrtf(block_sum(squares, shared) / columns + a.epsilon);
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column >= columns) continue;
        float w[PACK], b[PACK] = {};
        pack_load(a.weight + column, w);
        if (a.bias) pack_load(a.bias + column, b);
#pragma unroll
        for (int j = 0; j < PACK; j++) w[j] = (v[p][j] - mean) * rstd * w[j] + b[j];
        pack_store(a.y + at + column, w);
    }
    if (threadIdx.x != 0) return;
    a.rstd[blockIdx.x] = rstd;
    if (CENTRED) a.mean[blockIdx.x] = mean;
}

// Each thread reads again only columns that it wrote itself.
template <class T, bool CENTRED>
__global__ void __launch_bounds__(WHOLE_THREADS) norm_forward_whole(ForwardArgs<T> a) {
    __shared__ float shared[32];
    int64_t at = blockIdx.x * a.columns;
    const T *x = (a.add ? a.sum : a.x) + at;
    float sum = 0, squares = 0, mean = 0;
    for (int64_t c = threadIdx.x; c < a.columns; c += WHOLE_THREADS) {
        float v[1], other[1];
        pack_load(a.x + at + c, v);
        if (a.add) {
            pack_load(a.add + at + c, other);
            v[0] = as_stored(a.x, v[0] + other[0]);
            pack_store(a.sum + at + c, v);
        }
        sum += v[0];
    }
    if (CENTRED) mean = block_sum(sum, shared) / a.columns;
    for (int64_t c = threadIdx.x; c < a.columns; c += WHOLE_THREADS) {
        float v[1];
        pack_load(x + c, v);
        squares += (v[0] - mean) * (v[0] - mean);
    }
    float rstd = rsqrtf(block_sum(squares, shared) / a.columns + a.epsilon);
    for (int64_t c = threadIdx.x; c < a.columns; c += WHOLE_THREADS) {
        float v[1], w[1], b[1] = {};
        pack_load(x + c, v);
        pack_load(a.weight + c, w);
        if (a.bias) pack_load(a.bias + c, b);
        v[0] = (v[0] - mean) * rstd * w[0] + b[0];
        pack_store(a.y + at + c, v);
    }
    if (threadIdx.x != 0) return;
    a.rstd[blockIdx.x] = rstd;
    if (CENTRED) a.mean[blockIdx.x] = mean;
}

// With h = (x - mean) rstd and g = weight dy:
//   dx = rstd (g - h mean(g h) - mean(g)) + add, mean(g) only where centred
//   dweight = sum over rows of dy h, dbias = sum of dy
template <class T> struct BackwardArgs {
    const T *dy, *x, *weight, *add; // add nullptr: none
    const float *mean, *rstd;
    T *dx;
    float *parts; // [blocks][1 or 2][columns]
    int64_t rows, columns;
};

// A block takes every gridDim.x-th row and keeps its part of the sums over rows in registers.
template <class T, int PACKS, bool CENTRED, bool BIAS>
__global__ void __launch_bounds__(ROW_MAX_THREADS) norm_backward(BackwardArgs<T> a) {
    __shared__ float shared[2][32];
    int columns = (int)a.columns;
    int first = threadIdx.x * PACK, stride = blockDim.x * PACK;
    float dweight[PACKS][PACK] = {}, dbias[BIAS ? PACKS : 1][PACK] = {};
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        int64_t at = row * a.columns;
        float mean = CENTRED ? a.mean[row] : 0.0f, rstd = a.rstd[row];
        float h[PACKS][PACK], g[PACKS][PACK];
        float sum_gh = 0, sum_g = 0;
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            int column = first + p * stride;
            if (column >= columns) continue;
            float w[PACK];
            pack_load(a.x + at + column, h[p]);
            pack_load(a.dy + at + column, g[p]);
            pack_load(a.weight + column, w);
#pragma unroll
            for (int j = 0; j < PACK; j++) {
                h[p][j] = (h[p][j] - mean) * rstd;
                dweight[p][j] += g[p][j] * h[p][j];
                if (BIAS) dbias[p][j] += g[p][j];
                g[p][j] *= w[j];
                sum_gh += g[p][j] * h[p][j];
                sum_g += g[p][j];
            }
        }
        float mean_gh = block_sum(sum_gh, shared[0]) / columns;
        float mean_g = CENTRED ? block_sum(sum_g, shared[1]) / columns : 0.0f;
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            int column = first + p * stride;
            if (column >= columns) continue;
            float past[PACK] = {};
            if (a.add) pack_load(a.add + at + column, past);
#pragma unroll
            for (int j = 0; j < PACK; j++) past[j] += rstd * (g[p][j] - h[p][j] * mean_gh - mean_g);
            pack_store(a.dx + at + column, past);
        }
    }
    float *part = a.parts + (int64_t)blockIdx.x * (BIAS ? 2 : 1) * a.columns;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int column = first + p * stride;
        if (column >= columns) continue;
        pack_store(part + column, dweight[p]);
        if (BIAS) pack_store(part + a.columns + column, dbias[p]);
    }
}

// dx alone; its sums over rows are norm_sums_whole's, which comes first since dx may be dy.
template <class T, bool CENTRED>
__global__ void __launch_bounds__(WHOLE_THREADS) norm_backward_whole(BackwardArgs<T> a) {
    __shared__ float shared[2][32];
    int64_t at = blockIdx.x * a.columns;
    float mean = CENTRED ? a.mean[blockIdx.x] : 0.0f, rstd = a.rstd[blockIdx.x];
    float sum_gh = 0, sum_g = 0;
    for (int64_t c = threadIdx.x; c < a.columns; c += WHOLE_THREADS) {
        float x[1], g[1], w[1];
        pack_load(a.x + at + c, x);
        pack_load(a.dy + at + c, g);
        pack_load(a.weight + c, w);
        sum_gh += g[0] * w[0] * (x[0] - mean) * rstd;
        sum_g += g[0] * w[0];
    }
    float mean_gh = block_sum(sum_gh, shared[0]) / a.columns;
    float mean_g = CENTRED ? block_sum(sum_g, shared[1]) / a.columns : 0.0f;
    for (int64_t c = threadIdx.x; c < a.columns; c += WHOLE_THREADS) {
        float x[1], g[1], w[1], past[1] = {};
        pack_load(a.x + at + c, x);
        pack_load(a.dy + at + c, g);
        pack_load(a.weight + c, w);
        if (a.add) pack_load(a.add + at + c, past);
        past[0] += rstd * (g[0] * w[0] - (x[0] - mean) * rstd * mean_gh - mean_g);
        pack_store(a.dx + at + c, past);
    }
}

// Blocks of 32 x 16 threads, 32 columns each.
template <class T, bool CENTRED>
__global__ void norm_sums_whole(BackwardArgs<T> a, float *dweight, float *dbias) {
    __shared__ float shared[2][16][33];
    int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x;
    float weight_sum = 0, bias_sum = 0;
    if (column < a.columns)
        for (int64_t row = threadIdx.y; row < a.rows; row += 16) {
            float x[1], g[1];
            pack_load(a.x + row * a.columns + column, x);
            pack_load(a.dy + row * a.columns + column, g);
            weight_sum += g[0] * (x[0] - (CENTRED ? a.mean[row] : 0.0f)) * a.rstd[row];
            bias_sum += g[0];
        }
    shared[0][threadIdx.y][threadIdx.x] = weight_sum;
    shared[1][threadIdx.y][threadIdx.x] = bias_sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= a.columns) return;
    for (int i = 1; i < 16; i++) {
        weight_sum += shared[0][i][threadIdx.x];
        bias_sum += shared[1][i][threadIdx.x];
    }
    dweight[column] += weight_sum;
    if (dbias) dbias[column] += bias_sum;
}

// --- The calls

template <class T, bool CENTRED>
static cudaError_t forward(const NormForward *call, cudaStream_t stream) {
    ForwardArgs<T> a = {(const T *)call->x,    (const T *)call->add, (const T *)call->weight,
                        (const T *)call->bias, (T *)call->sum,       (T *)call->y,
                        (float *)call->mean,   (float *)call->rstd,  (float)call->epsilon,
                        call->columns};
    unsigned rows = (unsigned)call->rows;
    if (call->columns % PACK != 0 || call->columns > MAX_COLUMNS ||
        !aligned(a.x, a.add, a.weight, a.bias, a.add ? a.sum : nullptr, a.y)) {
        norm_forward_whole<T, CENTRED><<<rows, WHOLE_THREADS, 0, stream>>>(a);
        return cudaGetLastError();
    }
    RowShape shape = row_shape(call->columns);
    if (shape.packs == 1)
        norm_forward<T, 1, CENTRED><<<rows, shape.threads, 0, stream>>>(a);
    else if (shape.packs == 2)
        norm_forward<T, 2, CENTRED><<<rows, shape.threads, 0, stream>>>(a);
    else
        norm_forward<T, 4, CENTRED><<<rows, shape.threads, 0, stream>>>(a);
    return cudaGetLastError();
}

template <class T> static cudaError_t forward_op(const NormForward *call, cudaStream_t stream) {
    return call->op == NORM_LAYER ? forward<T, true>(call, stream)
                                  : forward<T, false>(call, stream);
}

void cuda_norm_forward(Backend *backend, const NormForward *call, BackendStream *stream) {
    if (call->rows == 0 || !cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, forward_op, call, stream->handle), "norm_forward");
}

template <class T, bool CENTRED, bool BIAS>
static cudaError_t backward_packs(const NormBackward *call, BackwardArgs<T> a, int64_t blocks,
                                  RowShape shape, cudaStream_t stream) {
    unsigned grid = (unsigned)blocks;
    if (shape.packs == 1)
        norm_backward<T, 1, CENTRED, BIAS><<<grid, shape.threads, 0, stream>>>(a);
    else if (shape.packs == 2)
        norm_backward<T, 2, CENTRED, BIAS><<<grid, shape.threads, 0, stream>>>(a);
    else
        norm_backward<T, 4, CENTRED, BIAS><<<grid, shape.threads, 0, stream>>>(a);
    int64_t stride = (BIAS ? 2 : 1) * a.columns;
    cudaError_t error =
        sums_add_parts(a.parts, (int)blocks, stride, a.columns, (float *)call->dweight, stream);
    if (BIAS && error == cudaSuccess)
        error = sums_add_parts(a.parts + a.columns, (int)blocks, stride, a.columns,
                               (float *)call->dbias, stream);
    return error;
}

template <class T, bool CENTRED>
static cudaError_t backward(Backend *backend, const NormBackward *call, BackendStream *stream) {
    BackwardArgs<T> a = {};
    a.dy = (const T *)call->dy, a.x = (const T *)call->x, a.weight = (const T *)call->weight;
    a.add = (const T *)call->add, a.dx = (T *)call->dx;
    a.mean = (const float *)call->mean, a.rstd = (const float *)call->rstd;
    a.rows = call->rows, a.columns = call->columns;
    if (a.columns % PACK != 0 || a.columns > MAX_COLUMNS ||
        !aligned(a.dy, a.x, a.weight, a.add, a.dx)) {
        norm_sums_whole<T, CENTRED>
            <<<(unsigned)((a.columns + 31) / 32), dim3(32, 16), 0, stream->handle>>>(
                a, (float *)call->dweight, (float *)call->dbias);
        norm_backward_whole<T, CENTRED><<<(unsigned)a.rows, WHOLE_THREADS, 0, stream->handle>>>(a);
        return cudaGetLastError();
    }
    RowShape shape = row_shape(a.columns);
    // As many blocks as run at once, so that the parts stay few.
    int64_t blocks = (int64_t)num_sms(backend) * (1024 / shape.threads);
    if (blocks > a.rows) blocks = a.rows;
    size_t bytes = (size_t)(blocks * (call->dbias ? 2 : 1) * a.columns) * sizeof(float);
    a.parts = (float *)cuda_scratch(backend, stream, bytes);
    if (!a.parts) return cudaSuccess; // the failure is kept
    cudaError_t error =
        call->dbias ? backward_packs<T, CENTRED, true>(call, a, blocks, shape, stream->handle)
                    : backward_packs<T, CENTRED, false>(call, a, blocks, shape, stream->handle);
    cuda_scratch_free(backend, stream, a.parts);
    return error;
}

template <class T>
static cudaError_t backward_op(Backend *backend, const NormBackward *call, BackendStream *stream) {
    return call->op == NORM_LAYER ? backward<T, true>(backend, call, stream)
                                  : backward<T, false>(backend, call, stream);
}

void cuda_norm_backward(Backend *backend, const NormBackward *call, BackendStream *stream) {
    if (call->rows == 0 || !cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, backward_op, backend, call, stream),
             "norm_backward");
}
