// backend/cuda/attention_forward.cu - attention by tensor cores: a block has some queries of a head
// and goes over tiles of keys, of which the next is on its way while one is used.
//
// Source: Dao, "FlashAttention-2", arXiv:2307.08691, algorithm 1.
#include "backend/cuda/attention_tile.cuh"
#include "backend/cuda/attention_tiles.h"

// The running maximum and sum of the rows of a thread, and what they do to a tile's scores.
template <int MT> struct Softmax {
    float max[MT][2], sum[MT][2]; // sum: of this thread's columns

    __device__ __forceinline__ Softmax() {
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int r = 0; r < 2; r++) max[mt][r] = -CUDART_INF_F, sum[mt][r] = 0;
    }

    // Scores become exp2(scale score - maximum); what was summed before is scaled down.
    template <int NT, int DT>
    __device__ __forceinline__ void step(float (&s)[MT][NT][4], float (&o)[MT][DT][4],
                                         float scale) {
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float top = max[mt][r];
#pragma unroll
                for (int nt = 0; nt < NT; nt++)
                    top = fmaxf(top, fmaxf(s[mt][nt][2 * r], s[mt][nt][2 * r + 1]));
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
                float less = top == -CUDART_INF_F ? 0.0f : top * scale;
                float before = power_of_2(max[mt][r] * scale - less);
                max[mt][r] = top;
                float total = sum[mt][r] * before;
#pragma unroll
                for (int nt = 0; nt < NT; nt++)
#pragma unroll
                    for (int e = 2 * r; e < 2 * r + 2; e++) {
                        s[mt][nt][e] = power_of_2(s[mt][nt][e] * scale - less);
                        total += s[mt][nt][e];
                    }
                sum[mt][r] = total;
#pragma unroll
                for (int dt = 0; dt < DT; dt++) {
                    o[mt][dt][2 * r] *= before;
                    o[mt][dt][2 * r + 1] *= before;
                }
            }
    }
};

// BM queries a block, BN keys a tile, 16 MT queries a warp; registers for BLOCKS on an SM.
template <int D, int BN, int MT, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS) forward_kernel(Attention a) {
    constexpr int BM = 16 * MT * WARPS, NT = BN / 8, THREADS = 32 * WARPS;
    extern __shared__ __align__(128) char shared[];
    uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(shared);
    uint32_t kv_tiles = q_tile + tile_bytes<D>(BM); // [2] of k, then of v

    // The longest rows first, so that the last blocks to run are short.
    int first = (int)(gridDim.x - 1 - blockIdx.x) * BM;
    int head = blockIdx.y, batch = blockIdx.z, kv_head = head / (a.heads / a.kv_heads);
    int num_queries = (int)a.num_queries, num_keys = (int)a.num_keys;
    int warp_row = threadIdx.x / 32 * 16 * MT, lane = threadIdx.x % 32;
    const bf16 *k = (const bf16 *)a.k + kv_at(a, batch, kv_head, 0);
    const bf16 *v = (const bf16 *)a.v + kv_at(a, batch, kv_head, 0);

    int last = min(first + BM, num_queries) - 1;
    int key_first = keys_of(a, first).first, key_end = keys_of(a, last).end;
    int tile = key_first / BN, tile_end = key_end > key_first ? (key_end + BN - 1) / BN : 0;

    float o[MT][D / 8][4] = {};
    Softmax<MT> softmax;
    float scale = (float)a.scale * LOG2_E;

    auto load = [&](int n) {
        uint32_t to = kv_tiles + n % 2 * 2 * tile_bytes<D>(BN);
        tile_load<D, BN, THREADS>(to, k, a.kv_stride, n * BN, num_keys);
        tile_load<D, BN, THREADS>(to + tile_bytes<D>(BN), v, a.kv_stride, n * BN, num_keys);
    };
    if (tile < tile_end) {
        tile_load<D, BM, THREADS>(q_tile, (const bf16 *)a.q + q_at(a, batch, head, 0), a.q_stride,
                                  first, num_queries);
        load(tile);
    }
    copies_commit();
    for (; tile < tile_end; tile++) {
        if (tile + 1 < tile_end) load(tile + 1);
        copies_commit();
        copies_wait<1>();
        __syncthreads();
        uint32_t k_tile = kv_tiles + tile % 2 * 2 * tile_bytes<D>(BN);
        float s[MT][NT][4] = {};
        multiply_rows<D>(s, q_tile, warp_row, k_tile);
        int key = tile * BN;
        bool whole = key + BN <= num_keys &&
                     (!a.causal || key + BN - 1 <= first + (int)a.query_first) &&
                     (a.window == 0 || key > last + (int)a.query_first - (int)a.window);
        if (!whole) hide_keys(s, a, first + warp_row + lane / 4, key + lane % 4 * 2);
        softmax.step(s, o, scale);
        uint32_t p[MT][NT / 2][4];
        as_left(p, s);
        multiply_columns<D>(o, p, k_tile + tile_bytes<D>(BN));
        __syncthreads(); // the tile may be overwritten
    }

    float inverse[MT][2];
    float *lse = (float *)a.lse + lse_at(a, batch, head, first);
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float sum = softmax.sum[mt][r];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            inverse[mt][r] = sum > 0 ? 1.0f / sum : 0.0f;
            int row = warp_row + mt * 16 + r * 8 + lane / 4;
            if (lane % 4 == 0 && first + row < num_queries)
                lse[row] =
                    sum > 0 ? softmax.max[mt][r] * (float)a.scale + logf(sum) : -CUDART_INF_F;
        }
    tile_store<D, MT>((bf16 *)a.o + o_at(a, batch, head, first), a.o_stride, q_tile, warp_row,
                      num_queries - first, o, inverse);
}

template <int D, int BN, int MT, int WARPS, int BLOCKS>
static cudaError_t forward(const Attention *call, cudaStream_t stream) {
    constexpr int BM = 16 * MT * WARPS;
    dim3 grid((unsigned)((call->num_queries + BM - 1) / BM), (unsigned)call->heads,
              (unsigned)call->batch);
    int shared_bytes = tile_bytes<D>(BM) + 4 * tile_bytes<D>(BN);
    return tiled_launch(forward_kernel<D, BN, MT, WARPS, BLOCKS>, grid, 32 * WARPS, shared_bytes,
                        stream, *call);
}

cudaError_t attention_tiled_forward(const Attention *call, cudaStream_t stream) {
    if (call->head_dim == 64)
        return TILES_RUN(TILES_FORWARD, forward, (64, 64, 2, 4, 2), (64, 64, 1, 8, 2),
                         (64, 64, 1, 4, 3), (64, 128, 1, 8, 1), call, stream);
    return TILES_RUN(TILES_FORWARD, forward, (128, 64, 2, 4, 2), (128, 32, 2, 4, 2),
                     (128, 64, 1, 8, 1), (128, 64, 1, 4, 2), call, stream);
}
