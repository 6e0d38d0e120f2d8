// backend/cuda/pack.cuh - eight elements at a time: 16-byte accesses of bfloat16, two of float; one
// at a time where rows or addresses do not allow it. Sums over a block.
#pragma once

#include <cuda_bf16.h>
#include <stdint.h>

typedef __nv_bfloat16 bf16;

constexpr int PACK = 8; // elements

__device__ __forceinline__ void pack_load(const bf16 *from, float (&v)[PACK]) {
    uint4 raw = *reinterpret_cast<const uint4 *>(from);
    const __nv_bfloat162 *pairs = reinterpret_cast<const __nv_bfloat162 *>(&raw);
#pragma unroll
    for (int i = 0; i < PACK / 2; i++) {
        float2 pair = __bfloat1622float2(pairs[i]);
        v[2 * i] = pair.x;
        v[2 * i + 1] = pair.y;
    }
}

__device__ __forceinline__ void pack_load(const float *from, float (&v)[PACK]) {
    float4 low = reinterpret_cast<const float4 *>(from)[0];
    float4 high = reinterpret_cast<const float4 *>(from)[1];
    v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
    v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

__device__ __forceinline__ void pack_store(bf16 *to, const float (&v)[PACK]) {
    uint4 raw;
    __nv_bfloat162 *pairs = reinterpret_cast<__nv_bfloat162 *>(&raw);
#pragma unroll
    for (int i = 0; i < PACK / 2; i++) pairs[i] = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
    *reinterpret_cast<uint4 *>(to) = raw;
}

__device__ __forceinline__ void pack_store(float *to, const float (&v)[PACK]) {
    reinterpret_cast<float4 *>(to)[0] = make_float4(v[0], v[1], v[2], v[3]);
    reinterpret_cast<float4 *>(to)[1] = make_float4(v[4], v[5], v[6], v[7]);
}

__device__ __forceinline__ void pack_load(const bf16 *from, float (&v)[1]) {
    v[0] = __bfloat162float(*from);
}

__device__ __forceinline__ void pack_load(const float *from, float (&v)[1]) {
    v[0] = *from;
}

__device__ __forceinline__ void pack_store(bf16 *to, const float (&v)[1]) {
    *to = __float2bfloat16_rn(v[0]);
}

__device__ __forceinline__ void pack_store(float *to, const float (&v)[1]) {
    *to = v[0];
}

// What an element becomes once stored and read again.
__device__ __forceinline__ float as_stored(const bf16 *, float v) {
    return __bfloat162float(__float2bfloat16_rn(v));
}

__device__ __forceinline__ float as_stored(const float *, float v) {
    return v;
}

// --- Sums over a block of whole warps; every thread gets the result

struct Add {
    __device__ __forceinline__ float operator()(float a, float b) const {
        return a + b;
    }
};
struct Max {
    __device__ __forceinline__ float operator()(float a, float b) const {
        return fmaxf(a, b);
    }
};

template <class Op> __device__ __forceinline__ float warp_reduce(float value, Op op) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// neutral changes nothing under op. shared: 32 floats of this reduction's own.
template <class Op>
__device__ __forceinline__ float block_reduce(float value, float neutral, float *shared, Op op) {
    value = warp_reduce(value, op);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads(); // the last use of shared is over
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    return warp_reduce(lane < (int)(blockDim.x / 32) ? shared[lane] : neutral, op);
}

__device__ __forceinline__ float block_sum(float value, float *shared) {
    return block_reduce(value, 0.0f, shared, Add());
}

// --- Rows that a block keeps in registers

// Packs per thread (1, 2 or 4) and threads of a block for one row.
struct RowShape {
    int packs, threads;
};

static inline RowShape row_shape(int64_t columns) {
    int total = (int)(columns / PACK);
    RowShape shape = {1, 0};
    while (shape.packs < 4 && total > 256 * shape.packs) shape.packs *= 2;
    int threads = (total + shape.packs - 1) / shape.packs;
    shape.threads = (threads + 31) / 32 * 32;
    return shape;
}

constexpr int ROW_MAX_THREADS = 512; // 4 packs each: 16384 columns
