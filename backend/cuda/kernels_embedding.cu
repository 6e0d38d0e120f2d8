// backend/cuda/kernels_embedding.cu - rows of the word and position tables, and rotary positions.
#include "backend/cuda/call.cuh"
#include "backend/rope_scaling.h"

// --- Embedding

template <class T> struct EmbeddingForward {
    const int32_t *tokens;
    const T *table;
    int64_t first_row, num_rows;
    const T *positions_table; // nullptr: none
    const int32_t *positions;
    T *y;
    int64_t columns;
    template <int N> __device__ void run(int64_t row, int64_t column) const {
        int64_t word = tokens[row] - first_row;
        float v[N] = {}, p[N];
        if (word >= 0 && word < num_rows) pack_load(table + word * columns + column, v);
        if (positions_table) {
            pack_load(positions_table + positions[row] * columns + column, p);
#pragma unroll
            for (int j = 0; j < N; j++) v[j] += p[j];
        }
        pack_store(y + row * columns + column, v);
    }
};

template <class T>
static cudaError_t embedding_forward(const Embedding *call, cudaStream_t stream) {
    EmbeddingForward<T> map = {};
    map.tokens = call->tokens;
    map.table = (const T *)call->table;
    map.first_row = call->first_row, map.num_rows = call->num_rows;
    map.positions_table = (const T *)call->positions_table;
    map.positions = call->positions;
    map.y = (T *)call->y;
    map.columns = call->columns;
    bool packs = call->columns % PACK == 0 && aligned(map.table, map.positions_table, map.y);
    return rows_launch(map, call->rows, call->columns, packs, stream);
}

void cuda_embedding_forward(Backend *backend, const Embedding *call, BackendStream *stream) {
    if (!cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, embedding_forward, call, stream->handle),
             "embedding_forward");
}

__device__ __forceinline__ void add_atomic(float *to, const float (&v)[1]) {
    atomicAdd(to, v[0]);
}

__device__ __forceinline__ void add_atomic(float *to, const float (&v)[PACK]) {
#if __CUDA_ARCH__ >= 900
    atomicAdd(reinterpret_cast<float4 *>(to), make_float4(v[0], v[1], v[2], v[3]));
    atomicAdd(reinterpret_cast<float4 *>(to) + 1, make_float4(v[4], v[5], v[6], v[7]));
#else
#pragma unroll
    for (int j = 0; j < PACK; j++) atomicAdd(to + j, v[j]);
#endif
}

template <class T> struct EmbeddingBackward {
    const int32_t *tokens, *positions;
    const T *dy;
    float *dtable, *dpositions_table; // dpositions_table nullptr: none
    int64_t first_row, num_rows, columns;
    template <int N> __device__ void run(int64_t row, int64_t column) const {
        int64_t word = tokens[row] - first_row;
        float v[N];
        pack_load(dy + row * columns + column, v);
        if (word >= 0 && word < num_rows) add_atomic(dtable + word * columns + column, v);
        if (dpositions_table) add_atomic(dpositions_table + positions[row] * columns + column, v);
    }
};

template <class T>
static cudaError_t embedding_backward(const Embedding *call, cudaStream_t stream) {
    EmbeddingBackward<T> map = {};
    map.tokens = call->tokens, map.positions = call->positions;
    map.dy = (const T *)call->dy;
    map.dtable = (float *)call->dtable;
    map.dpositions_table = (float *)call->dpositions_table;
    map.first_row = call->first_row, map.num_rows = call->num_rows;
    map.columns = call->columns;
    bool packs = call->columns % PACK == 0 && aligned(map.dy, map.dtable, map.dpositions_table);
    return rows_launch(map, call->rows, call->columns, packs, stream);
}

void cuda_embedding_backward(Backend *backend, const Embedding *call, BackendStream *stream) {
    if (!cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, embedding_backward, call, stream->handle),
             "embedding_backward");
}

// --- Rope

constexpr int ROPE_THREADS = 128;

// A block turns all heads of a token, whose angles it computes once. The angle is reduced in
// double: at position 100,000 a float would be 0.01 off.
template <class T, int N>
__global__ void __launch_bounds__(ROPE_THREADS)
    rope_kernel(T *x, int64_t stride, const int32_t *positions, int heads, int half,
                double exponent, RopeScaling scaling, float sign) {
    extern __shared__ float turns[]; // [2][half]: cos, sin
    float *cosine = turns, *sine = turns + half;
    double position = positions[blockIdx.x];
    for (int i = threadIdx.x; i < half; i += ROPE_THREADS) {
        double frequency = rope_scaled(&scaling, exp2(exponent * i));
        double revolutions = position * frequency * 0.15915494309189535; // 1 / (2 pi)
        float angle = (float)((revolutions - rint(revolutions)) * 6.283185307179586);
        float s, c;
        sincosf(angle, &s, &c);
        cosine[i] = c;
        sine[i] = sign * s;
    }
    __syncthreads();
    T *token = x + blockIdx.x * stride;
    int head_units = half / N;
    for (int u = threadIdx.x; u < heads * head_units; u += ROPE_THREADS) {
        int head = u / head_units, i = u % head_units * N;
        T *at = token + (int64_t)head * 2 * half + i;
        float a[N], b[N];
        pack_load(at, a);
        pack_load(at + half, b);
#pragma unroll
        for (int j = 0; j < N; j++) {
            float turned = a[j] * cosine[i + j] - b[j] * sine[i + j];
            b[j] = a[j] * sine[i + j] + b[j] * cosine[i + j];
            a[j] = turned;
        }
        pack_store(at, a);
        pack_store(at + half, b);
    }
}

template <class T> static cudaError_t rope(const Rope *call, cudaStream_t stream) {
    int half = call->head_dim / 2;
    size_t shared = 2 * (size_t)half * sizeof(float);
    // theta^(-2 i / head_dim) = 2^(exponent i)
    double exponent = -2.0 / call->head_dim * log2(call->theta);
    float sign = call->inverse ? -1.0f : 1.0f;
    T *x = (T *)call->x;
    unsigned tokens = (unsigned)call->tokens;
    if (half % PACK == 0 && call->stride % PACK == 0 && aligned(x))
        rope_kernel<T, PACK><<<tokens, ROPE_THREADS, shared, stream>>>(
            x, call->stride, call->positions, call->heads, half, exponent, call->scaling, sign);
    else
        rope_kernel<T, 1><<<tokens, ROPE_THREADS, shared, stream>>>(
            x, call->stride, call->positions, call->heads, half, exponent, call->scaling, sign);
    return cudaGetLastError();
}

void cuda_rope(Backend *backend, const Rope *call, BackendStream *stream) {
    if (call->tokens == 0 || !cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, rope, call, stream->handle), "rope");
}
