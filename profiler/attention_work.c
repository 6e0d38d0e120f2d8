#include "profiler/attention_work.h"

#include <math.h>

static size_t aligned(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

AttentionArrays attention_arrays(const AttentionRequest *request, size_t act_bytes,
                                 size_t wide_bytes) {
    size_t tokens = (size_t)request->batch * (size_t)request->tokens;
    size_t q = tokens * (size_t)request->heads * (size_t)request->head_dim * act_bytes;
    size_t kv = tokens * (size_t)request->kv_heads * (size_t)request->head_dim * act_bytes;
    AttentionArrays arrays = {
        .bytes = {[ATTENTION_Q] = q,
                  [ATTENTION_K] = kv,
                  [ATTENTION_V] = kv,
                  [ATTENTION_O] = q,
                  [ATTENTION_LSE] = tokens * (size_t)request->heads * wide_bytes,
                  [ATTENTION_DOUT] = q,
                  [ATTENTION_DQ] = q,
                  [ATTENTION_DK] = kv,
                  [ATTENTION_DV] = kv}};
    for (int i = 0; i < NUM_ATTENTION_ARRAYS; i++) {
        if (i >= ATTENTION_DOUT && !request->backward) arrays.bytes[i] = 0;
        arrays.at[i] = arrays.all_bytes;
        arrays.all_bytes += aligned(arrays.bytes[i]);
    }
    return arrays;
}

Attention attention_call(const AttentionRequest *request, const AttentionArrays *arrays,
                         char *base) {
    int64_t q_stride = (int64_t)request->heads * request->head_dim;
    int64_t kv_stride = (int64_t)request->kv_heads * request->head_dim;
    void *array[NUM_ATTENTION_ARRAYS];
    for (int i = 0; i < NUM_ATTENTION_ARRAYS; i++)
        array[i] = arrays->bytes[i] ? base + arrays->at[i] : NULL;
    return (Attention){.batch = request->batch,
                       .heads = request->heads,
                       .kv_heads = request->kv_heads,
                       .head_dim = request->head_dim,
                       .num_queries = request->tokens,
                       .num_keys = request->tokens,
                       .causal = true,
                       .scale = 1 / sqrt(request->head_dim),
                       .q = array[ATTENTION_Q],
                       .k = array[ATTENTION_K],
                       .v = array[ATTENTION_V],
                       .q_stride = q_stride,
                       .q_batch_stride = q_stride * request->tokens,
                       .kv_stride = kv_stride,
                       .kv_batch_stride = kv_stride * request->tokens,
                       .o = array[ATTENTION_O],
                       .o_stride = q_stride,
                       .o_batch_stride = q_stride * request->tokens,
                       .lse = array[ATTENTION_LSE],
                       .lse_stride = request->tokens,
                       .dout = array[ATTENTION_DOUT],
                       .dq = array[ATTENTION_DQ],
                       .dk = array[ATTENTION_DK],
                       .dv = array[ATTENTION_DV]};
}

double attention_flops(const AttentionRequest *request) {
    double tokens = request->tokens;
    double pairs = (double)request->batch * request->heads * tokens * (tokens + 1) / 2;
    return pairs * request->head_dim * (request->backward ? 10 : 4);
}
