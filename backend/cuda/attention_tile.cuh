// backend/cuda/attention_tile.cuh - tiles of bf16 in shared memory and products of them by tensor
// cores, for heads of D elements.
//
// A tile has rows of D elements. Its 16-byte chunk c of row r lies at chunk c ^ (r % 8) of that
// row, so that the eight rows that one ldmatrix reads lie in different banks. Fragments are those
// of mma.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"): with g = lane / 4 and i = lane %
// 4, a product's elements 0, 1 are row g, columns 2i, 2i + 1; 2, 3 are row g + 8.
#pragma once

#include <math_constants.h>

#include "backend/cuda/attention_paths.h"

constexpr float LOG2_E = 1.4426950408889634f;

// --- Copies that run beside arithmetic

// 16 or 4 bytes; zeros where not valid.
__device__ __forceinline__ void copy_async16(uint32_t to, const void *from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
}

__device__ __forceinline__ void copy_async4(uint32_t to, const void *from, bool valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                 "r"(valid ? 4 : 0)
                 : "memory");
}

__device__ __forceinline__ void copies_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most `left` groups of this thread are under way.
template <int left> __device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

// --- Tiles

template <int D> __host__ __device__ constexpr int tile_bytes(int rows) {
    return rows * D * 2;
}

template <int D> __device__ __forceinline__ uint32_t tile_at(uint32_t tile, int row, int chunk) {
    return tile + row * (D * 2) + ((chunk ^ (row & 7)) << 4);
}

// Rows first .. first + ROWS of an array; those from `end` on are zeros.
template <int D, int ROWS, int THREADS>
__device__ __forceinline__ void tile_load(uint32_t tile, const bf16 *from, int64_t stride,
                                          int first, int end) {
    constexpr int CHUNKS = D / PACK;
    static_assert(ROWS * CHUNKS % THREADS == 0, "each thread copies as much");
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / THREADS; i++) {
        int unit = i * THREADS + threadIdx.x, row = unit / CHUNKS, chunk = unit % CHUNKS;
        bool valid = first + row < end;
        const bf16 *at = from + (valid ? first + row : 0) * stride + chunk * PACK;
        copy_async16(tile_at<D>(tile, row, chunk), at, valid);
    }
}

__device__ __forceinline__ uint32_t pair_of(float a, float b) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
    return *reinterpret_cast<uint32_t *>(&pair);
}

// Stores a warp's rows [row, row + 16 MT) of scale[..] x sums through its rows of a tile, which
// nobody else reads any more; rows from `end` on (counted from the tile's first) are left out.
template <int D, int MT>
__device__ __forceinline__ void tile_store(bf16 *to, int64_t stride, uint32_t tile, int row,
                                           int end, const float (&sums)[MT][D / 8][4],
                                           const float (&scale)[MT][2]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int nt = 0; nt < D / 8; nt++) {
                const float *v = sums[mt][nt] + 2 * r;
                uint32_t at = tile_at<D>(tile, row + mt * 16 + r * 8 + lane / 4, nt) + lane % 4 * 4;
                asm volatile("st.shared.b32 [%0], %1;" ::"r"(at),
                             "r"(pair_of(v[0] * scale[mt][r], v[1] * scale[mt][r]))
                             : "memory");
            }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < MT * 16 * D / PACK / 32; i++) {
        int unit = i * 32 + lane, local = row + unit / (D / PACK), chunk = unit % (D / PACK);
        if (local >= end) continue;
        uint4 v;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(tile_at<D>(tile, local, chunk))
                     : "memory");
        *reinterpret_cast<uint4 *>(to + local * stride + chunk * PACK) = v;
    }
}

// --- Products

__device__ __forceinline__ void matrices_load(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

__device__ __forceinline__ void matrices_load_transposed(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

__device__ __forceinline__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sums [16 MT][8 NT] += rows [row, row + 16 MT) of tile a times (rows [0, 8 NT) of tile b)^T.
template <int D, int MT, int NT>
__device__ __forceinline__ void multiply_rows(float (&sums)[MT][NT][4], uint32_t a, int row,
                                              uint32_t b) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        uint32_t left[MT][4];
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
            matrices_load(left[mt], tile_at<D>(a, row + mt * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int nt = 0; nt < NT; nt += 2) {
            uint32_t right[4];
            matrices_load(right,
                          tile_at<D>(b, nt * 8 + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
#pragma unroll
            for (int mt = 0; mt < MT; mt++) {
                multiply_add(sums[mt][nt], left[mt], right[0], right[1]);
                multiply_add(sums[mt][nt + 1], left[mt], right[2], right[3]);
            }
        }
    }
}

// sums [16 MT][D] += left [16 MT][16 KT] times rows [0, 16 KT) of tile b.
template <int D, int MT, int KT>
__device__ __forceinline__ void multiply_columns(float (&sums)[MT][D / 8][4],
                                                 const uint32_t (&left)[MT][KT][4], uint32_t b) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int kt = 0; kt < KT; kt++)
#pragma unroll
        for (int nt = 0; nt < D / 8; nt += 2) {
            uint32_t right[4];
            matrices_load_transposed(right, tile_at<D>(b, kt * 16 + lane % 16, nt + lane / 16));
#pragma unroll
            for (int mt = 0; mt < MT; mt++) {
                multiply_add(sums[mt][nt], left[mt][kt], right[0], right[1]);
                multiply_add(sums[mt][nt + 1], left[mt][kt], right[2], right[3]);
            }
        }
}

// A product's elements as the left operand of the next one.
template <int MT, int NT>
__device__ __forceinline__ void as_left(uint32_t (&left)[MT][NT / 2][4],
                                        const float (&sums)[MT][NT][4]) {
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            left[mt][nt / 2][nt % 2 * 2] = pair_of(sums[mt][nt][0], sums[mt][nt][1]);
            left[mt][nt / 2][nt % 2 * 2 + 1] = pair_of(sums[mt][nt][2], sums[mt][nt][3]);
        }
}

// --- Arithmetic

__device__ __forceinline__ float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// log2 of the sum of exp as it is subtracted: of a query that sees nothing, every p becomes 0.
__device__ __forceinline__ float lse_in_log2(float lse) {
    return lse == -CUDART_INF_F ? CUDART_INF_F : lse * LOG2_E;
}

// Sets scores to -infinity where a key is not seen. row, column: of the thread's first of each.
template <int MT, int NT>
__device__ __forceinline__ void hide_keys(float (&s)[MT][NT][4], const Attention &a, int row,
                                          int column) {
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            KeyRange keys = keys_of(a, row + mt * 16 + r * 8);
#pragma unroll
            for (int nt = 0; nt < NT; nt++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    int key = column + nt * 8 + e;
                    if (key < keys.first || key >= keys.end) s[mt][nt][2 * r + e] = -CUDART_INF_F;
                }
        }
}

// --- Launches

// kernel's shared memory is set to what it takes once; this is cheap enough to be done each time.
template <class Kernel, class... Args>
static cudaError_t tiled_launch(Kernel kernel, dim3 grid, int threads, int shared_bytes,
                                cudaStream_t stream, Args... args) {
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    kernel<<<grid, threads, shared_bytes, stream>>>(args...);
    return cudaGetLastError();
}
