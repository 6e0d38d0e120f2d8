// backend/cuda/attention.cu - attention: which way, what both ways share, and the joining of parts.
#include <math_constants.h>

#include "backend/cuda/attention_paths.h"
#include "backend/cuda/cudnn_attention.h"

// Tensor cores take whole packs of bf16; head sizes are those that models are built with.
static bool is_tiled(const Backend *backend, const Attention *call) {
    int64_t strides = call->q_stride | call->kv_stride | call->o_stride | call->q_batch_stride |
                      call->kv_batch_stride | call->o_batch_stride;
    return backend->act == DTYPE_BF16 && (call->head_dim == 64 || call->head_dim == 128) &&
           strides % PACK == 0 && aligned(call->q, call->k, call->v, call->o);
}

static bool check_head(Backend *backend, const Attention *call) {
    if (call->head_dim <= MAX_HEAD) return true;
    cuda_fail(backend, status_error(STATUS_MACHINE,
                                    "meshwright: attention heads of %d; a GPU has at most %d",
                                    call->head_dim, MAX_HEAD));
    return false;
}

void cuda_attention_forward(Backend *backend, const Attention *call, BackendStream *stream) {
    if (call->batch == 0 || call->num_queries == 0) return;
    if (!cuda_begin(backend, stream, nullptr, 0) || !check_head(backend, call)) return;
    if (cudnn_attention(backend, call, false, stream)) {
        cuda_end(backend, stream, cudaGetLastError(), "attention_forward");
        return;
    }
    if (!cuda_well(backend)) return;
    cudaError_t error = is_tiled(backend, call)
                            ? attention_tiled_forward(call, stream->handle)
                            : attention_general_forward(backend, call, stream->handle);
    cuda_end(backend, stream, error, "attention_forward");
}

// --- delta = sum over the head of dout o

// LANES threads have one head of a token, N elements at a time.
template <class T, int LANES, int N>
__global__ void __launch_bounds__(256) delta_kernel(Attention a, float *delta, int64_t count) {
    int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) / LANES;
    if (i >= count) return; // whole groups of lanes: count is of heads
    int head = (int)(i % a.heads);
    int64_t token = i / a.heads, t = token % a.num_queries;
    int batch = (int)(token / a.num_queries);
    int64_t at = o_at(a, batch, head, t);
    float sum = 0;
    for (int d = threadIdx.x % LANES * N; d < a.head_dim; d += LANES * N) {
        float u[N], v[N];
        pack_load((const T *)a.dout + at + d, u);
        pack_load((const T *)a.o + at + d, v);
#pragma unroll
        for (int j = 0; j < N; j++) sum += u[j] * v[j];
    }
    unsigned lane = threadIdx.x % 32; // the last warp may be cut off, but only between heads
    unsigned members = LANES == 32 ? 0xffffffffu : ((1u << LANES % 32) - 1) << lane / LANES * LANES;
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(members, sum, step);
    if (threadIdx.x % LANES == 0)
        delta[((int64_t)batch * a.heads + head) * a.num_queries + t] = sum;
}

template <class T, int LANES, int N>
static void delta_launch(const Attention *call, float *delta, cudaStream_t stream) {
    int64_t count = call->batch * call->num_queries * call->heads;
    delta_kernel<T, LANES, N>
        <<<(unsigned)((count * LANES + 255) / 256), 256, 0, stream>>>(*call, delta, count);
}

static cudaError_t delta_compute(const Backend *backend, const Attention *call, float *delta,
                                 bool tiled, cudaStream_t stream) {
    if (tiled)
        delta_launch<bf16, 8, PACK>(call, delta, stream);
    else if (backend->act == DTYPE_BF16)
        delta_launch<bf16, 32, 1>(call, delta, stream);
    else
        delta_launch<float, 32, 1>(call, delta, stream);
    return cudaGetLastError();
}

void cuda_attention_backward(Backend *backend, const Attention *call, BackendStream *stream) {
    if (call->batch == 0 || (call->num_queries == 0 && call->num_keys == 0)) return;
    if (!cuda_begin(backend, stream, nullptr, 0) || !check_head(backend, call)) return;
    if (cudnn_attention(backend, call, true, stream)) {
        cuda_end(backend, stream, cudaGetLastError(), "attention_backward");
        return;
    }
    if (!cuda_well(backend)) return;
    int64_t count = call->batch * call->num_queries * call->heads;
    AttentionScratch scratch = {
        (float *)cuda_scratch(backend, stream, (size_t)count * sizeof(float))};
    if (!scratch.delta) return;
    bool tiled = is_tiled(backend, call) && aligned(call->dout, call->dq, call->dk, call->dv);
    cudaError_t error = delta_compute(backend, call, scratch.delta, tiled, stream->handle);
    if (error == cudaSuccess)
        error = tiled ? attention_tiled_backward(call, &scratch, stream->handle)
                      : attention_general_backward(backend, call, &scratch, stream->handle);
    cuda_scratch_free(backend, stream, scratch.delta);
    cuda_end(backend, stream, error, "attention_backward");
}

// --- Joining

// A warp has one head of a token. What weighs nothing is not read: it may be anything.
template <class T>
__global__ void __launch_bounds__(128) merge_kernel(AttentionMerge a, int64_t count) {
    int64_t i = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    if (i >= count) return;
    int lane = threadIdx.x % 32, head = (int)(i % a.heads);
    int64_t token = i / a.heads, t = token % a.num_queries, batch = token / a.num_queries;
    const T *o =
        (const T *)a.o + batch * a.o_batch_stride + t * a.o_stride + (int64_t)head * a.head_dim;
    float *sum = (float *)a.o_sum + batch * a.sum_batch_stride + t * a.sum_stride +
                 (int64_t)head * a.head_dim;
    int64_t at = (batch * a.heads + head) * a.lse_stride + t;
    float lse = ((const float *)a.lse)[at];
    float *lse_sum = (float *)a.lse_sum + at;
    float before = a.first ? -CUDART_INF_F : *lse_sum;
    if (!a.first && lse == -CUDART_INF_F) return; // all lanes alike
    float top = fmaxf(before, lse);
    float joined = a.first ? lse : top + logf(expf(before - top) + expf(lse - top));
    float old_frac = a.first ? 0.0f : expf(before - joined);
    float new_frac = a.first ? 1.0f : expf(lse - joined);
    for (int d = lane; d < a.head_dim; d += 32) {
        float v[1];
        pack_load(o + d, v);
        float old = old_frac > 0.0f ? sum[d] * old_frac : 0.0f;
        sum[d] = old + v[0] * new_frac;
    }
    __syncwarp();
    if (lane == 0) *lse_sum = joined;
}

template <class T> static cudaError_t merge(const AttentionMerge *call, cudaStream_t stream) {
    int64_t count = call->batch * call->num_queries * call->heads;
    merge_kernel<T><<<(unsigned)((count + 3) / 4), 128, 0, stream>>>(*call, count);
    return cudaGetLastError();
}

void cuda_attention_merge(Backend *backend, const AttentionMerge *call, BackendStream *stream) {
    if (call->batch == 0 || call->num_queries == 0) return;
    if (!cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, merge, call, stream->handle), "attention_merge");
}
