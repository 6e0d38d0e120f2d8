// backend/cuda/kernels_router.cu - routing of tokens to experts and the moving of their rows.
#include <math_constants.h>

#include "backend/cuda/call.cuh"

constexpr int WARPS = 4; // rows of a block

// The larger logit, of equal ones the first.
struct Best {
    float logit;
    int expert;
};

__device__ __forceinline__ Best best_of(Best a, Best b) {
    return b.logit > a.logit || (b.logit == a.logit && b.expert < a.expert) ? b : a;
}

__device__ __forceinline__ Best warp_best(Best best) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        Best other = {__shfl_xor_sync(0xffffffffu, best.logit, step),
                      __shfl_xor_sync(0xffffffffu, best.expert, step)};
        best = best_of(best, other);
    }
    return best;
}

struct RouterArgs {
    int64_t rows;
    int num_experts, num_chosen;
    bool normalised;
    const float *logits;
    float *probabilities, *weights;
    int32_t *chosen;
    bool chosen_given;
    const float *weighted_dw;
    float *dlogits;
};

// A warp has a row, its logits in shared memory; those chosen become -infinity there.
__global__ void __launch_bounds__(32 * WARPS) router_forward(RouterArgs a) {
    extern __shared__ float rows_shared[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int64_t row = (int64_t)blockIdx.x * WARPS + warp;
    if (row >= a.rows) return;
    float *x = rows_shared + warp * a.num_experts;
    float *probabilities = a.probabilities + row * a.num_experts;
    float top = -CUDART_INF_F, sum = 0;
    for (int e = lane; e < a.num_experts; e += 32) {
        x[e] = a.logits[row * a.num_experts + e];
        top = fmaxf(top, x[e]);
    }
    top = warp_reduce(top, Max());
    for (int e = lane; e < a.num_experts; e += 32) sum += expf(x[e] - top);
    sum = warp_reduce(sum, Add());
    for (int e = lane; e < a.num_experts; e += 32) probabilities[e] = expf(x[e] - top) / sum;
    float total = 0;
    for (int j = 0; j < a.num_chosen; j++) {
        Best best = {-CUDART_INF_F, INT32_MAX};
        for (int e = lane; e < a.num_experts; e += 32) best = best_of(best, {x[e], e});
        best = warp_best(best);
        best.expert = min(best.expert, a.num_experts - 1); // of logits that are not numbers
        if (a.chosen_given) best.expert = a.chosen[row * a.num_chosen + j];
        if (a.chosen_given) best.logit = a.logits[row * a.num_experts + best.expert];
        float weight = expf(best.logit - top) / sum;
        total += weight;
        if (best.expert % 32 == lane) x[best.expert] = -CUDART_INF_F;
        if (lane != 0) continue;
        a.chosen[row * a.num_chosen + j] = best.expert;
        a.weights[row * a.num_chosen + j] = weight;
    }
    if (!a.normalised || lane != 0) return;
    for (int j = 0; j < a.num_chosen; j++) a.weights[row * a.num_chosen + j] /= total;
}

// As backend/backend.h says; a weight that is not normalised is its probability.
__global__ void __launch_bounds__(32 * WARPS) router_backward(RouterArgs a) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int64_t row = (int64_t)blockIdx.x * WARPS + warp;
    if (row >= a.rows) return;
    const float *p = a.probabilities + row * a.num_experts;
    const float *given = a.weighted_dw + row * a.num_chosen;
    const float *weights = a.weights + row * a.num_chosen;
    const int32_t *chosen = a.chosen + row * a.num_chosen;
    float sum = 0;
    for (int j = 0; j < a.num_chosen; j++) sum += given[j];
    float others = a.normalised ? 0.0f : sum; // reaches what was not chosen
    for (int e = lane; e < a.num_experts; e += 32) {
        float gradient = -others * p[e];
        for (int j = 0; j < a.num_chosen; j++)
            if (chosen[j] == e) gradient = given[j] - weights[j] * sum;
        a.dlogits[row * a.num_experts + e] = gradient;
    }
}

static RouterArgs router_args(const Router *call) {
    RouterArgs a = {};
    a.rows = call->rows;
    a.num_experts = call->num_experts, a.num_chosen = call->num_chosen;
    a.normalised = call->normalised;
    a.logits = (const float *)call->logits;
    a.probabilities = (float *)call->probabilities;
    a.weights = (float *)call->weights;
    a.chosen = call->chosen;
    a.chosen_given = call->chosen_given;
    a.weighted_dw = (const float *)call->weighted_dw;
    a.dlogits = (float *)call->dlogits;
    return a;
}

void cuda_router_forward(Backend *backend, const Router *call, BackendStream *stream) {
    if (call->rows == 0 || !cuda_begin(backend, stream, nullptr, 0)) return;
    size_t shared = (size_t)(WARPS * call->num_experts) * sizeof(float);
    router_forward<<<(unsigned)((call->rows + WARPS - 1) / WARPS), 32 * WARPS, shared,
                     stream->handle>>>(router_args(call));
    cuda_end(backend, stream, cudaGetLastError(), "router_forward");
}

void cuda_router_backward(Backend *backend, const Router *call, BackendStream *stream) {
    if (call->rows == 0 || !cuda_begin(backend, stream, nullptr, 0)) return;
    router_backward<<<(unsigned)((call->rows + WARPS - 1) / WARPS), 32 * WARPS, 0,
                      stream->handle>>>(router_args(call));
    cuda_end(backend, stream, cudaGetLastError(), "router_backward");
}

// --- Rows

// A block has a row.
template <class T, int N>
__global__ void __launch_bounds__(128)
    row_dots(const T *a, const T *b, float *dots, int64_t columns) {
    __shared__ float shared[32];
    int64_t row = blockIdx.x;
    float dot = 0;
    for (int64_t column = threadIdx.x * N; column < columns; column += 128 * N) {
        float x[N], y[N];
        pack_load(a + row * columns + column, x);
        pack_load(b + row * columns + column, y);
#pragma unroll
        for (int j = 0; j < N; j++) dot += x[j] * y[j];
    }
    dot = block_sum(dot, shared);
    if (threadIdx.x == 0) dots[row] = dot;
}

template <class T> static cudaError_t dots_of(const RowDots *call, cudaStream_t stream) {
    const T *a = (const T *)call->a, *b = (const T *)call->b;
    float *dots = (float *)call->dots;
    if (call->columns % PACK == 0 && aligned(a, b))
        row_dots<T, PACK><<<(unsigned)call->rows, 128, 0, stream>>>(a, b, dots, call->columns);
    else
        row_dots<T, 1><<<(unsigned)call->rows, 128, 0, stream>>>(a, b, dots, call->columns);
    return cudaGetLastError();
}

void cuda_row_dots(Backend *backend, const RowDots *call, BackendStream *stream) {
    const void *arrays[] = {call->a, call->b, call->dots};
    if (call->rows == 0 || !cuda_begin(backend, stream, arrays, 3)) return;
    cuda_end(backend, stream, CALL_ACT(backend, dots_of, call, stream->handle), "row_dots");
}

template <class T> struct GatherMap {
    const T *x;
    const int32_t *index;
    T *y;
    int64_t columns;
    template <int N> __device__ void run(int64_t row, int64_t column) const {
        float v[N] = {};
        if (index[row] >= 0) pack_load(x + index[row] * columns + column, v);
        pack_store(y + row * columns + column, v);
    }
};

template <class T> static cudaError_t gather(const GatherRows *call, cudaStream_t stream) {
    GatherMap<T> map = {(const T *)call->x, call->index, (T *)call->y, call->columns};
    bool packs = call->columns % PACK == 0 && aligned(call->x, call->y);
    return rows_launch(map, call->rows, call->columns, packs, stream);
}

void cuda_gather_rows(Backend *backend, const GatherRows *call, BackendStream *stream) {
    const void *arrays[] = {call->x, call->index, call->y};
    if (!cuda_begin(backend, stream, arrays, 3)) return;
    cudaError_t error = call->wide ? gather<float>(call, stream->handle)
                                   : CALL_ACT(backend, gather, call, stream->handle);
    cuda_end(backend, stream, error, "gather_rows");
}

template <class T> struct CombineMap {
    const T *x;
    const int32_t *index;
    const float *weights; // nullptr: all 1
    T *y;
    int64_t columns;
    int num_chosen;
    template <int N> __device__ void run(int64_t row, int64_t column) const {
        float sum[N] = {};
        for (int j = 0; j < num_chosen; j++) {
            int64_t at = row * num_chosen + j;
            if (index[at] < 0) continue;
            float v[N], weight = weights ? weights[at] : 1.0f;
            pack_load(x + index[at] * columns + column, v);
#pragma unroll
            for (int i = 0; i < N; i++) sum[i] += weight * v[i];
        }
        pack_store(y + row * columns + column, sum);
    }
};

template <class T> static cudaError_t combine(const CombineRows *call, cudaStream_t stream) {
    CombineMap<T> map = {(const T *)call->x, call->index,   (const float *)call->weights,
                         (T *)call->y,       call->columns, call->num_chosen};
    bool packs = call->columns % PACK == 0 && aligned(call->x, call->y);
    return rows_launch(map, call->rows, call->columns, packs, stream);
}

void cuda_combine_forward(Backend *backend, const CombineRows *call, BackendStream *stream) {
    if (!cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, combine, call, stream->handle), "combine_forward");
}

template <class T> struct CombineBackwardArgs {
    const T *x, *dy;
    const int32_t *index;
    const float *weights;
    T *dx;
    float *dweights; // nullptr: not wanted
    int64_t columns;
};

// A block has one row of x that a token took.
template <class T, int N>
__global__ void __launch_bounds__(128) combine_backward(CombineBackwardArgs<T> a, int num_chosen) {
    __shared__ float shared[32];
    int64_t at = blockIdx.x, token = at / num_chosen;
    int64_t from = a.index[at];
    float weight = a.weights ? a.weights[at] : 1.0f, dot = 0;
    if (from >= 0)
        for (int64_t column = threadIdx.x * N; column < a.columns; column += 128 * N) {
            float d[N], x[N];
            pack_load(a.dy + token * a.columns + column, d);
            if (a.dweights) pack_load(a.x + from * a.columns + column, x);
#pragma unroll
            for (int j = 0; j < N; j++) {
                if (a.dweights) dot += d[j] * x[j];
                d[j] *= weight;
            }
            pack_store(a.dx + from * a.columns + column, d);
        }
    if (!a.dweights) return;
    dot = block_sum(dot, shared);
    if (threadIdx.x == 0) a.dweights[at] = dot;
}

template <class T> static cudaError_t combine_back(const CombineRows *call, cudaStream_t stream) {
    CombineBackwardArgs<T> a = {
        (const T *)call->x, (const T *)call->dy,     call->index,  (const float *)call->weights,
        (T *)call->dx,      (float *)call->dweights, call->columns};
    unsigned blocks = (unsigned)(call->rows * call->num_chosen);
    if (call->columns % PACK == 0 && aligned(a.x, a.dy, a.dx))
        combine_backward<T, PACK><<<blocks, 128, 0, stream>>>(a, call->num_chosen);
    else
        combine_backward<T, 1><<<blocks, 128, 0, stream>>>(a, call->num_chosen);
    return cudaGetLastError();
}

void cuda_combine_backward(Backend *backend, const CombineRows *call, BackendStream *stream) {
    if (call->rows == 0 || call->num_chosen == 0 || !cuda_begin(backend, stream, nullptr, 0))
        return;
    cuda_end(backend, stream, CALL_ACT(backend, combine_back, call, stream->handle),
             "combine_backward");
}
