// backend/cuda/attention_general.cu - attention of any head size, plainly: a warp has one query and
// goes over its keys, or one key and goes over its queries; lanes share the head's elements.
#include <math_constants.h>

#include "backend/cuda/attention_paths.h"

constexpr int WARPS = 4;
constexpr int PARTS = MAX_HEAD / 32; // elements of a head that a lane has

typedef float Head[PARTS];

template <class T> __device__ __forceinline__ void head_load(const T *from, int head_dim, Head &v) {
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        int d = threadIdx.x % 32 + 32 * i;
        float one[1] = {0};
        if (d < head_dim) pack_load(from + d, one);
        v[i] = one[0];
    }
}

template <class T>
__device__ __forceinline__ void head_store(T *to, int head_dim, const Head &v, float scale) {
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        int d = threadIdx.x % 32 + 32 * i;
        float one[1] = {v[i] * scale};
        if (d < head_dim) pack_store(to + d, one);
    }
}

__device__ __forceinline__ float dot(const Head &a, const Head &b) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < PARTS; i++) sum += a[i] * b[i];
    return warp_reduce(sum, Add());
}

__device__ __forceinline__ void add_times(Head &sum, float factor, const Head &v) {
#pragma unroll
    for (int i = 0; i < PARTS; i++) sum[i] += factor * v[i];
}

template <class T> __global__ void __launch_bounds__(32 * WARPS) forward_kernel(Attention a) {
    int t = blockIdx.x * WARPS + threadIdx.x / 32, head = blockIdx.y, batch = blockIdx.z;
    if (t >= a.num_queries) return;
    int kv_head = head / (a.heads / a.kv_heads);
    Head q, k, v, o = {};
    head_load((const T *)a.q + q_at(a, batch, head, t), a.head_dim, q);
    float max = -CUDART_INF_F, sum = 0;
    KeyRange keys = keys_of(a, t);
    for (int j = keys.first; j < keys.end; j++) {
        head_load((const T *)a.k + kv_at(a, batch, kv_head, j), a.head_dim, k);
        head_load((const T *)a.v + kv_at(a, batch, kv_head, j), a.head_dim, v);
        float score = (float)a.scale * dot(q, k);
        float top = fmaxf(max, score);
        float before = expf(max - top), p = expf(score - top);
#pragma unroll
        for (int i = 0; i < PARTS; i++) o[i] = o[i] * before + p * v[i];
        sum = sum * before + p;
        max = top;
    }
    head_store((T *)a.o + o_at(a, batch, head, t), a.head_dim, o, sum > 0 ? 1 / sum : 0.0f);
    if (threadIdx.x % 32 == 0)
        ((float *)a.lse)[lse_at(a, batch, head, t)] = sum > 0 ? max + logf(sum) : -CUDART_INF_F;
}

// p of a score; 0 where the query sees no key at all.
__device__ __forceinline__ float probability(float score, float lse) {
    return lse == -CUDART_INF_F ? 0.0f : expf(score - lse);
}

template <class T>
__global__ void __launch_bounds__(32 * WARPS) backward_queries(Attention a, const float *delta) {
    int t = blockIdx.x * WARPS + threadIdx.x / 32, head = blockIdx.y, batch = blockIdx.z;
    if (t >= a.num_queries) return;
    int kv_head = head / (a.heads / a.kv_heads);
    Head q, dout, k, v, dq = {};
    head_load((const T *)a.q + q_at(a, batch, head, t), a.head_dim, q);
    head_load((const T *)a.dout + o_at(a, batch, head, t), a.head_dim, dout);
    float lse = ((const float *)a.lse)[lse_at(a, batch, head, t)];
    float d = delta[((int64_t)batch * a.heads + head) * a.num_queries + t];
    KeyRange keys = keys_of(a, t);
    for (int j = keys.first; j < keys.end; j++) {
        head_load((const T *)a.k + kv_at(a, batch, kv_head, j), a.head_dim, k);
        head_load((const T *)a.v + kv_at(a, batch, kv_head, j), a.head_dim, v);
        float p = probability((float)a.scale * dot(q, k), lse);
        add_times(dq, p * (dot(dout, v) - d), k);
    }
    head_store((T *)a.dq + q_at(a, batch, head, t), a.head_dim, dq, (float)a.scale);
}

template <class T>
__global__ void __launch_bounds__(32 * WARPS) backward_keys(Attention a, const float *delta) {
    int j = blockIdx.x * WARPS + threadIdx.x / 32, kv_head = blockIdx.y, batch = blockIdx.z;
    if (j >= a.num_keys) return;
    int group = a.heads / a.kv_heads;
    Head q, dout, k, v, dk = {}, dv = {};
    head_load((const T *)a.k + kv_at(a, batch, kv_head, j), a.head_dim, k);
    head_load((const T *)a.v + kv_at(a, batch, kv_head, j), a.head_dim, v);
    KeyRange queries = queries_of(a, j, 1);
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
        for (int t = queries.first; t < queries.end; t++) {
            head_load((const T *)a.q + q_at(a, batch, head, t), a.head_dim, q);
            head_load((const T *)a.dout + o_at(a, batch, head, t), a.head_dim, dout);
            float lse = ((const float *)a.lse)[lse_at(a, batch, head, t)];
            float d = delta[((int64_t)batch * a.heads + head) * a.num_queries + t];
            float p = probability((float)a.scale * dot(q, k), lse);
            add_times(dv, p, dout);
            add_times(dk, p * (dot(dout, v) - d), q);
        }
    head_store((T *)a.dk + kv_at(a, batch, kv_head, j), a.head_dim, dk, (float)a.scale);
    head_store((T *)a.dv + kv_at(a, batch, kv_head, j), a.head_dim, dv, 1.0f);
}

template <class T> static cudaError_t forward(const Attention *call, cudaStream_t stream) {
    dim3 grid((unsigned)((call->num_queries + WARPS - 1) / WARPS), (unsigned)call->heads,
              (unsigned)call->batch);
    forward_kernel<T><<<grid, 32 * WARPS, 0, stream>>>(*call);
    return cudaGetLastError();
}

template <class T>
static cudaError_t backward(const Attention *call, const float *delta, cudaStream_t stream) {
    dim3 queries((unsigned)((call->num_queries + WARPS - 1) / WARPS), (unsigned)call->heads,
                 (unsigned)call->batch);
    backward_queries<T><<<queries, 32 * WARPS, 0, stream>>>(*call, delta);
    dim3 keys((unsigned)((call->num_keys + WARPS - 1) / WARPS), (unsigned)call->kv_heads,
              (unsigned)call->batch);
    backward_keys<T><<<keys, 32 * WARPS, 0, stream>>>(*call, delta);
    return cudaGetLastError();
}

cudaError_t attention_general_forward(const Backend *backend, const Attention *call,
                                      cudaStream_t stream) {
    return CALL_ACT(backend, forward, call, stream);
}

cudaError_t attention_general_backward(const Backend *backend, const Attention *call,
                                       const AttentionScratch *scratch, cudaStream_t stream) {
    return CALL_ACT(backend, backward, call, scratch->delta, stream);
}
