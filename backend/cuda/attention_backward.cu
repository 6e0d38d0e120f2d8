// backend/cuda/attention_backward.cu - the gradients of attention by tensor cores, by two kernels
// without atomics, so that the same input gives the same bytes: a block of keys goes over queries
// (dk, dv), a block of queries over keys (dq). Scores are computed in both.
//
// With s = scale q k^T and p = exp(s - lse), ds = p (dout v^T - delta):
//   dv = p^T dout, dk = scale ds^T q, dq = scale ds k
// Source: Dao, "FlashAttention-2", arXiv:2307.08691, algorithm 2.
#include "backend/cuda/attention_tile.cuh"
#include "backend/cuda/attention_tiles.h"

// --- Keys and values

// Scores and p of keys are transposed: rows are keys, so that p^T and ds^T are left operands as
// they come. BM queries a tile, BN keys a block, 16 MT keys a warp.
template <int D, int BM, int MT, int WARPS> struct KeysKernel {
    static constexpr int BN = 16 * MT * WARPS, NT = BM / 8, THREADS = 32 * WARPS;
    static constexpr int TILE = tile_bytes<D>(BM), STAGE = 2 * TILE + 2 * BM * 4;
    static constexpr int SHARED = 2 * tile_bytes<D>(BN) + 2 * STAGE;

    const Attention &a;
    const float *delta;
    int batch, head; // head: of the queries
    uint32_t stages; // [2] of q, dout, lse, delta

    __device__ __forceinline__ void load(int stage, int tile) const {
        uint32_t to = stages + stage * STAGE;
        int num_queries = (int)a.num_queries, first = tile * BM;
        tile_load<D, BM, THREADS>(to, (const bf16 *)a.q + q_at(a, batch, head, 0), a.q_stride,
                                  first, num_queries);
        tile_load<D, BM, THREADS>(to + TILE, (const bf16 *)a.dout + o_at(a, batch, head, 0),
                                  a.o_stride, first, num_queries);
        const float *lse = (const float *)a.lse + lse_at(a, batch, head, 0);
        const float *d = delta + ((int64_t)batch * a.heads + head) * a.num_queries;
        static_assert(THREADS >= 2 * BM, "each thread copies one");
        int i = threadIdx.x % BM;
        bool valid = first + i < num_queries;
        int t = valid ? first + i : 0;
        if (threadIdx.x < BM) copy_async4(to + 2 * TILE + i * 4, lse + t, valid);
        if (threadIdx.x >= BM && threadIdx.x < 2 * BM)
            copy_async4(to + 2 * TILE + BM * 4 + i * 4, d + t, valid);
    }

    // p^T of scores^T and ds^T in place of (dout v^T)^T; lse, delta: [BM], shared.
    __device__ __forceinline__ void differentiate(float (&s)[MT][NT][4], float (&dp)[MT][NT][4],
                                                  const float *lse, const float *d) const {
        float scale = (float)a.scale * LOG2_E;
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            int column = nt * 8 + threadIdx.x % 4 * 2;
            float2 l = *reinterpret_cast<const float2 *>(lse + column);
            float2 e = *reinterpret_cast<const float2 *>(d + column);
            l.x = lse_in_log2(l.x), l.y = lse_in_log2(l.y);
#pragma unroll
            for (int mt = 0; mt < MT; mt++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float p = power_of_2(s[mt][nt][i] * scale - (i % 2 ? l.y : l.x));
                    s[mt][nt][i] = p;
                    dp[mt][nt][i] = p * (dp[mt][nt][i] - (i % 2 ? e.y : e.x));
                }
        }
    }

    // key: of the thread's first row; query: of its first column.
    __device__ __forceinline__ void hide(float (&s)[MT][NT][4], int key, int query) const {
#pragma unroll
        for (int nt = 0; nt < NT; nt++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                KeyRange keys = keys_of(a, query + nt * 8 + e);
#pragma unroll
                for (int mt = 0; mt < MT; mt++)
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        int row = key + mt * 16 + r * 8;
                        if (row < keys.first || row >= keys.end)
                            s[mt][nt][2 * r + e] = -CUDART_INF_F;
                    }
            }
    }

    // Whether each of the block's keys is seen by each query of a tile.
    __device__ __forceinline__ bool whole(int key, int query) const {
        return key + BN <= (int)a.num_keys &&
               (!a.causal || key + BN - 1 <= query + (int)a.query_first) &&
               (a.window == 0 || key > query + BM - 1 + (int)a.query_first - (int)a.window);
    }
};

template <int D, int BM, int MT, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS) keys_kernel(Attention a, const float *delta) {
    typedef KeysKernel<D, BM, MT, WARPS> K;
    constexpr int BN = K::BN, NT = K::NT;
    extern __shared__ __align__(128) char shared[];
    uint32_t k_tile = (uint32_t)__cvta_generic_to_shared(shared);
    uint32_t v_tile = k_tile + tile_bytes<D>(BN);
    const char *stages = shared + 2 * tile_bytes<D>(BN);

    int first = blockIdx.x * BN, kv_head = blockIdx.y, group = a.heads / a.kv_heads;
    int num_keys = (int)a.num_keys;
    int warp_row = threadIdx.x / 32 * 16 * MT, lane = threadIdx.x % 32;
    K kernel = {a, delta, (int)blockIdx.z, 0, v_tile + tile_bytes<D>(BN)};
    int64_t kv = kv_at(a, kernel.batch, kv_head, 0);

    KeyRange queries = queries_of(a, first, BN);
    int tile_first = queries.first / BM;
    int num_tiles = queries.end > queries.first ? (queries.end + BM - 1) / BM - tile_first : 0;
    int num_steps = group * num_tiles;

    auto load = [&](int step) {
        kernel.head = kv_head * group + step / num_tiles;
        kernel.load(step % 2, tile_first + step % num_tiles);
    };
    if (num_steps > 0) {
        tile_load<D, BN, K::THREADS>(k_tile, (const bf16 *)a.k + kv, a.kv_stride, first, num_keys);
        tile_load<D, BN, K::THREADS>(v_tile, (const bf16 *)a.v + kv, a.kv_stride, first, num_keys);
        load(0);
    }
    copies_commit();
    float dk[MT][D / 8][4] = {}, dv[MT][D / 8][4] = {};
    for (int step = 0; step < num_steps; step++) {
        if (step + 1 < num_steps) load(step + 1);
        copies_commit();
        copies_wait<1>();
        __syncthreads();
        uint32_t q_tile = kernel.stages + step % 2 * K::STAGE, dout_tile = q_tile + K::TILE;
        const float *lse = (const float *)(stages + step % 2 * K::STAGE + 2 * K::TILE);
        int query = (tile_first + step % num_tiles) * BM;
        float s[MT][NT][4] = {}, dp[MT][NT][4] = {};
        multiply_rows<D>(s, k_tile, warp_row, q_tile);
        if (!kernel.whole(first, query))
            kernel.hide(s, first + warp_row + lane / 4, query + lane % 4 * 2);
        multiply_rows<D>(dp, v_tile, warp_row, dout_tile);
        kernel.differentiate(s, dp, lse, lse + BM);
        uint32_t left[MT][NT / 2][4];
        as_left(left, s);
        multiply_columns<D>(dv, left, dout_tile);
        as_left(left, dp);
        multiply_columns<D>(dk, left, q_tile);
        __syncthreads(); // the stage may be overwritten
    }

    float scale[MT][2], one[MT][2];
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int r = 0; r < 2; r++) scale[mt][r] = (float)a.scale, one[mt][r] = 1.0f;
    int64_t at = kv_at(a, kernel.batch, kv_head, first);
    tile_store<D, MT>((bf16 *)a.dk + at, a.kv_stride, k_tile, warp_row, num_keys - first, dk,
                      scale);
    tile_store<D, MT>((bf16 *)a.dv + at, a.kv_stride, v_tile, warp_row, num_keys - first, dv, one);
}

// --- Queries

// BM queries a block, BN keys a tile, 16 MT queries a warp; as the forward.
template <int D, int BN, int MT, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS)
    queries_kernel(Attention a, const float *delta) {
    constexpr int BM = 16 * MT * WARPS, NT = BN / 8, THREADS = 32 * WARPS;
    extern __shared__ __align__(128) char shared[];
    uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(shared);
    uint32_t dout_tile = q_tile + tile_bytes<D>(BM);
    uint32_t kv_tiles = dout_tile + tile_bytes<D>(BM); // [2] of k, then of v

    int first = (int)(gridDim.x - 1 - blockIdx.x) * BM;
    int head = blockIdx.y, batch = blockIdx.z, kv_head = head / (a.heads / a.kv_heads);
    int num_queries = (int)a.num_queries, num_keys = (int)a.num_keys;
    int warp_row = threadIdx.x / 32 * 16 * MT, lane = threadIdx.x % 32;
    const bf16 *k = (const bf16 *)a.k + kv_at(a, batch, kv_head, 0);
    const bf16 *v = (const bf16 *)a.v + kv_at(a, batch, kv_head, 0);

    int last = min(first + BM, num_queries) - 1;
    int key_first = keys_of(a, first).first, key_end = keys_of(a, last).end;
    int tile = key_first / BN, tile_end = key_end > key_first ? (key_end + BN - 1) / BN : 0;

    float lse[MT][2], less[MT][2];
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            int t = min(first + warp_row + mt * 16 + r * 8 + lane / 4, num_queries - 1);
            lse[mt][r] = lse_in_log2(((const float *)a.lse)[lse_at(a, batch, head, t)]);
            less[mt][r] = delta[((int64_t)batch * a.heads + head) * a.num_queries + t];
        }
    float dq[MT][D / 8][4] = {};
    float scale = (float)a.scale * LOG2_E;

    auto load = [&](int n) {
        uint32_t to = kv_tiles + n % 2 * 2 * tile_bytes<D>(BN);
        tile_load<D, BN, THREADS>(to, k, a.kv_stride, n * BN, num_keys);
        tile_load<D, BN, THREADS>(to + tile_bytes<D>(BN), v, a.kv_stride, n * BN, num_keys);
    };
    if (tile < tile_end) {
        tile_load<D, BM, THREADS>(q_tile, (const bf16 *)a.q + q_at(a, batch, head, 0), a.q_stride,
                                  first, num_queries);
        tile_load<D, BM, THREADS>(dout_tile, (const bf16 *)a.dout + o_at(a, batch, head, 0),
                                  a.o_stride, first, num_queries);
        load(tile);
    }
    copies_commit();
    for (; tile < tile_end; tile++) {
        if (tile + 1 < tile_end) load(tile + 1);
        copies_commit();
        copies_wait<1>();
        __syncthreads();
        uint32_t k_tile = kv_tiles + tile % 2 * 2 * tile_bytes<D>(BN);
        float s[MT][NT][4] = {}, dp[MT][NT][4] = {};
        multiply_rows<D>(s, q_tile, warp_row, k_tile);
        int key = tile * BN;
        bool whole = key + BN <= num_keys &&
                     (!a.causal || key + BN - 1 <= first + (int)a.query_first) &&
                     (a.window == 0 || key > last + (int)a.query_first - (int)a.window);
        if (!whole) hide_keys(s, a, first + warp_row + lane / 4, key + lane % 4 * 2);
        multiply_rows<D>(dp, dout_tile, warp_row, k_tile + tile_bytes<D>(BN));
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int nt = 0; nt < NT; nt++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    dp[mt][nt][i] = power_of_2(s[mt][nt][i] * scale - lse[mt][i / 2]) *
                                    (dp[mt][nt][i] - less[mt][i / 2]);
        uint32_t ds[MT][NT / 2][4];
        as_left(ds, dp);
        multiply_columns<D>(dq, ds, k_tile);
        __syncthreads(); // the tile may be overwritten
    }
    float factor[MT][2];
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int r = 0; r < 2; r++) factor[mt][r] = (float)a.scale;
    tile_store<D, MT>((bf16 *)a.dq + q_at(a, batch, head, first), a.q_stride, q_tile, warp_row,
                      num_queries - first, dq, factor);
}

// --- The call

template <int D, int BM, int MT, int WARPS, int BLOCKS>
static cudaError_t keys(const Attention *call, const float *delta, cudaStream_t stream) {
    typedef KeysKernel<D, BM, MT, WARPS> K;
    if (call->num_keys == 0) return cudaSuccess;
    dim3 grid((unsigned)((call->num_keys + K::BN - 1) / K::BN), (unsigned)call->kv_heads,
              (unsigned)call->batch);
    return tiled_launch(keys_kernel<D, BM, MT, WARPS, BLOCKS>, grid, K::THREADS, K::SHARED, stream,
                        *call, delta);
}

template <int D, int BN, int MT, int WARPS, int BLOCKS>
static cudaError_t queries(const Attention *call, const float *delta, cudaStream_t stream) {
    constexpr int BM = 16 * MT * WARPS;
    dim3 grid((unsigned)((call->num_queries + BM - 1) / BM), (unsigned)call->heads,
              (unsigned)call->batch);
    int shared_bytes = 2 * tile_bytes<D>(BM) + 4 * tile_bytes<D>(BN);
    return tiled_launch(queries_kernel<D, BN, MT, WARPS, BLOCKS>, grid, 32 * WARPS, shared_bytes,
                        stream, *call, delta);
}

static cudaError_t keys_run(const Attention *call, const float *delta, cudaStream_t stream) {
    if (call->head_dim == 64)
        return TILES_RUN(TILES_KEYS, keys, (64, 64, 1, 4, 3), (64, 64, 1, 8, 1), (64, 32, 1, 8, 2),
                         (64, 32, 2, 4, 2), call, delta, stream);
    return TILES_RUN(TILES_KEYS, keys, (128, 64, 1, 4, 2), (128, 32, 1, 8, 1), (128, 64, 1, 8, 1),
                     (128, 32, 1, 4, 2), call, delta, stream);
}

static cudaError_t queries_run(const Attention *call, const float *delta, cudaStream_t stream) {
    if (call->head_dim == 64)
        return TILES_RUN(TILES_QUERIES, queries, (64, 64, 2, 4, 2), (64, 64, 1, 4, 3),
                         (64, 64, 1, 8, 2), (64, 64, 1, 8, 1), call, delta, stream);
    return TILES_RUN(TILES_QUERIES, queries, (128, 32, 2, 4, 2), (128, 64, 1, 4, 2),
                     (128, 32, 1, 8, 1), (128, 64, 1, 8, 1), call, delta, stream);
}

cudaError_t attention_tiled_backward(const Attention *call, const AttentionScratch *scratch,
                                     cudaStream_t stream) {
    cudaError_t error = keys_run(call, scratch->delta, stream);
    return error == cudaSuccess ? queries_run(call, scratch->delta, stream) : error;
}
