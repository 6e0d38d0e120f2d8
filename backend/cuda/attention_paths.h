// backend/cuda/attention_paths.h - the two ways to compute attention; attention.cu chooses.
#pragma once

#include "backend/cuda/call.cuh"

// What the backward needs beside its call: scratch [batch][heads][num_queries].
typedef struct {
    float *delta; // sum over the head of dout o
} AttentionScratch;

// attention_general.cu: any head up to MAX_HEAD, bf16 and fp32; a warp has a query, or a key.
constexpr int MAX_HEAD = 256;
cudaError_t attention_general_forward(const Backend *backend, const Attention *call,
                                      cudaStream_t stream);
cudaError_t attention_general_backward(const Backend *backend, const Attention *call,
                                       const AttentionScratch *scratch, cudaStream_t stream);

// attention_forward.cu, attention_backward.cu: by tensor cores; bf16, heads of 64 and 128.
cudaError_t attention_tiled_forward(const Attention *call, cudaStream_t stream);
cudaError_t attention_tiled_backward(const Attention *call, const AttentionScratch *scratch,
                                     cudaStream_t stream);

// Elements from the first of an array: of a token's head.
__host__ __device__ static inline int64_t q_at(const Attention &a, int batch, int head, int64_t t) {
    return batch * a.q_batch_stride + t * a.q_stride + (int64_t)head * a.head_dim;
}

__host__ __device__ static inline int64_t kv_at(const Attention &a, int batch, int kv_head,
                                                int64_t t) {
    return batch * a.kv_batch_stride + t * a.kv_stride + (int64_t)kv_head * a.head_dim;
}

__host__ __device__ static inline int64_t o_at(const Attention &a, int batch, int head, int64_t t) {
    return batch * a.o_batch_stride + t * a.o_stride + (int64_t)head * a.head_dim;
}

__host__ __device__ static inline int64_t lse_at(const Attention &a, int batch, int head,
                                                 int64_t t) {
    return ((int64_t)batch * a.heads + head) * a.lse_stride + t;
}

// Keys [first, end) that query t sees; empty where end <= first. In int: sequences are far shorter.
struct KeyRange {
    int first, end;
};

__device__ __forceinline__ KeyRange keys_of(const Attention &a, int t) {
    int own = t + (int)a.query_first, num_keys = (int)a.num_keys;
    KeyRange range = {0, num_keys};
    if (a.causal) range.end = min(num_keys, own + 1);
    if (a.window > 0) range.first = max(0, own + 1 - (int)a.window);
    return range;
}

// Queries [first, end) that see at least one of the keys [key, key + num_keys).
__device__ __forceinline__ KeyRange queries_of(const Attention &a, int key, int num_keys) {
    KeyRange range = {0, (int)a.num_queries};
    int last = min(key + num_keys, (int)a.num_keys) - 1;
    if (a.causal) range.first = max(0, key - (int)a.query_first);
    if (a.window > 0)
        range.end = min((int)a.num_queries, last - (int)a.query_first + (int)a.window);
    return range;
}
