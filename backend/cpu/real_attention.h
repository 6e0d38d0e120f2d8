// backend/cpu/real_attention.h - attention by blocks of queries; the scores of a block with all
// keys that it sees are held, products are by OpenBLAS. Source: FlashAttention-2, section 3.1.
#pragma once

#include "backend/cpu/cpu_state.h"
#include "backend/cpu/real_product.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { QUERY_BLOCK = 64 };

// Some queries of one head of one sequence, and the keys that at least one of them sees.
typedef struct {
    const Attention *call;
    int64_t q_offset, kv_offset, o_offset, lse_offset; // of the block's first element; keys: first
    int64_t first, num_queries, first_key, num_keys;
    Real *scores, *dscores; // [num_queries][num_keys]
} AttentionBlock;

// Keys [*first, *end) that query t sees.
static void visible_keys(const Attention *call, int64_t t, int64_t *first, int64_t *end) {
    int64_t own = t + call->query_first;
    *first = 0;
    *end = call->num_keys;
    if (call->causal && own + 1 < *end) *end = own + 1;
    if (call->window > 0 && own + 1 - call->window > 0) *first = own + 1 - call->window;
    if (*end < 0) *end = 0;
    if (*first > *end) *first = *end;
}

static AttentionBlock block_of(const Attention *call, int batch, int head, int64_t first,
                               Real *scratch) {
    int kv_head = head / (call->heads / call->kv_heads);
    AttentionBlock block = {.call = call, .first = first};
    block.num_queries = call->num_queries - first;
    if (block.num_queries > QUERY_BLOCK) block.num_queries = QUERY_BLOCK;
    int64_t unused, end;
    visible_keys(call, first, &block.first_key, &unused);
    visible_keys(call, first + block.num_queries - 1, &unused, &end);
    block.num_keys = end > block.first_key ? end - block.first_key : 0;
    block.q_offset =
        batch * call->q_batch_stride + first * call->q_stride + (int64_t)head * call->head_dim;
    block.o_offset =
        batch * call->o_batch_stride + first * call->o_stride + (int64_t)head * call->head_dim;
    block.kv_offset = batch * call->kv_batch_stride + block.first_key * call->kv_stride +
                      (int64_t)kv_head * call->head_dim;
    block.lse_offset = ((int64_t)batch * call->heads + head) * call->lse_stride + first;
    block.scores = scratch;
    block.dscores = scratch + QUERY_BLOCK * call->num_keys;
    return block;
}

static size_t scratch_bytes(const Attention *call) {
    return 2 * QUERY_BLOCK * (size_t)call->num_keys * sizeof(Real);
}

static void zero_rows(Real *x, int64_t rows, int64_t columns, int64_t stride) {
    for (int64_t r = 0; r < rows; r++) memset(x + r * stride, 0, (size_t)columns * sizeof(Real));
}

// scores = scale q k^T
static void block_scores(const AttentionBlock *block) {
    const Attention *call = block->call;
    multiply(false, true, block->num_queries, block->num_keys, call->head_dim, call->scale,
             (const Real *)call->q + block->q_offset, call->q_stride,
             (const Real *)call->k + block->kv_offset, call->kv_stride, 0, block->scores,
             block->num_keys);
}

// Scores become probabilities, with 0 where a key is not seen; returns the log of the sum of exp.
static double softmax_row(Real *scores, int64_t num_keys, int64_t first, int64_t end) {
    double max = -INFINITY, sum = 0;
    for (int64_t j = first; j < end; j++) max = scores[j] > max ? scores[j] : max;
    for (int64_t j = 0; j < num_keys; j++) {
        double p = j >= first && j < end ? exp(scores[j] - max) : 0;
        scores[j] = (Real)p;
        sum += p;
    }
    for (int64_t j = first; j < end; j++) scores[j] = (Real)(scores[j] / sum);
    return first < end ? max + log(sum) : -INFINITY;
}

static void forward_block(const AttentionBlock *block) {
    const Attention *call = block->call;
    Real *o = (Real *)call->o + block->o_offset;
    Wide *lse = (Wide *)call->lse + block->lse_offset;
    block_scores(block);
    for (int64_t i = 0; i < block->num_queries; i++) {
        int64_t first, end;
        visible_keys(call, block->first + i, &first, &end);
        lse[i] = (Wide)softmax_row(block->scores + i * block->num_keys, block->num_keys,
                                   first - block->first_key, end - block->first_key);
    }
    if (block->num_keys == 0) {
        zero_rows(o, block->num_queries, call->head_dim, call->o_stride);
        return;
    }
    multiply(false, false, block->num_queries, call->head_dim, block->num_keys, 1, block->scores,
             block->num_keys, (const Real *)call->v + block->kv_offset, call->kv_stride, 0, o,
             call->o_stride);
}

static void assert_sound(const Attention *call) {
    assert(call->heads % call->kv_heads == 0);
    assert(call->window == 0 || call->causal); // it has an end only at the query's own position
    (void)call;
}

static void attention_forward(Backend *backend, const Attention *call, BackendStream *stream) {
    (void)stream;
    assert_sound(call);
    if (backend->failure.code != STATUS_OK) return;
    Real *scratch = cpu_scratch(backend, scratch_bytes(call));
    if (scratch == NULL && call->num_keys > 0) return;
    for (int b = 0; b < call->batch; b++) {
        for (int h = 0; h < call->heads; h++) {
            for (int64_t t = 0; t < call->num_queries; t += QUERY_BLOCK) {
                AttentionBlock block = block_of(call, b, h, t, scratch);
                forward_block(&block);
            }
        }
    }
}

// p = exp(scores - lse) in place; dscores, which holds dout v^T, becomes
// scale p (dout v^T - sum(dout o)): the gradient of q k^T.
static void block_gradient(const AttentionBlock *block) {
    const Attention *call = block->call;
    const Real *o = (const Real *)call->o + block->o_offset;
    const Real *dout = (const Real *)call->dout + block->o_offset;
    const Wide *lse = (const Wide *)call->lse + block->lse_offset;
    for (int64_t i = 0; i < block->num_queries; i++) {
        Real *p = block->scores + i * block->num_keys, *ds = block->dscores + i * block->num_keys;
        double dot = 0;
        for (int d = 0; d < call->head_dim; d++) {
            dot += (double)o[i * call->o_stride + d] * dout[i * call->o_stride + d];
        }
        int64_t first, end;
        visible_keys(call, block->first + i, &first, &end);
        for (int64_t j = 0; j < block->num_keys; j++) {
            bool seen = j + block->first_key >= first && j + block->first_key < end;
            double probability = seen ? exp((double)p[j] - lse[i]) : 0;
            p[j] = (Real)probability;
            ds[j] = seen ? (Real)(call->scale * probability * (ds[j] - dot)) : 0;
        }
    }
}

// Adds to dk and dv, which other heads and queries share; dq is this block's own.
static void backward_block(const AttentionBlock *block) {
    const Attention *call = block->call;
    int64_t rows = block->num_queries, keys = block->num_keys, size = call->head_dim;
    const Real *q = (const Real *)call->q + block->q_offset;
    const Real *dout = (const Real *)call->dout + block->o_offset;
    Real *dq = (Real *)call->dq + block->q_offset;
    if (keys == 0) {
        zero_rows(dq, rows, size, call->q_stride);
        return;
    }
    block_scores(block);
    multiply(false, true, rows, keys, size, 1, dout, call->o_stride,
             (const Real *)call->v + block->kv_offset, call->kv_stride, 0, block->dscores, keys);
    block_gradient(block);
    multiply(true, false, keys, size, rows, 1, block->scores, keys, dout, call->o_stride, 1,
             (Real *)call->dv + block->kv_offset, call->kv_stride);
    multiply(true, false, keys, size, rows, 1, block->dscores, keys, q, call->q_stride, 1,
             (Real *)call->dk + block->kv_offset, call->kv_stride);
    multiply(false, false, rows, size, keys, 1, block->dscores, keys,
             (const Real *)call->k + block->kv_offset, call->kv_stride, 0, dq, call->q_stride);
}

static void attention_backward(Backend *backend, const Attention *call, BackendStream *stream) {
    (void)stream;
    assert_sound(call);
    if (backend->failure.code != STATUS_OK) return;
    Real *scratch = cpu_scratch(backend, scratch_bytes(call));
    if (scratch == NULL && call->num_keys > 0) return;
    for (int b = 0; b < call->batch; b++) {
        int64_t columns = (int64_t)call->kv_heads * call->head_dim;
        int64_t offset = b * call->kv_batch_stride;
        zero_rows((Real *)call->dk + offset, call->num_keys, columns, call->kv_stride);
        zero_rows((Real *)call->dv + offset, call->num_keys, columns, call->kv_stride);
        for (int h = 0; h < call->heads; h++) {
            for (int64_t t = 0; t < call->num_queries; t += QUERY_BLOCK) {
                AttentionBlock block = block_of(call, b, h, t, scratch);
                backward_block(&block);
            }
        }
    }
}

// --- Joining two sets of keys

// (sum, *lse_sum) takes in (o, lse); a side whose lse is -infinity saw no key.
static void merge_row(Wide *sum, Wide *lse_sum, const Real *o, double lse, int head_dim) {
    double before = *lse_sum, max = before > lse ? before : lse;
    if (lse == -INFINITY) return;
    double joined = max + log(exp(before - max) + exp(lse - max));
    double old_frac = exp(before - joined), new_frac = exp(lse - joined);
    for (int d = 0; d < head_dim; d++) sum[d] = (Wide)(sum[d] * old_frac + o[d] * new_frac);
    *lse_sum = (Wide)joined;
}

static void attention_merge(const AttentionMerge *call) {
    for (int b = 0; b < call->batch; b++) {
        for (int h = 0; h < call->heads; h++) {
            int64_t statistics = ((int64_t)b * call->heads + h) * call->lse_stride;
            for (int64_t t = 0; t < call->num_queries; t++) {
                int64_t column = (int64_t)h * call->head_dim;
                const Real *o =
                    (const Real *)call->o + b * call->o_batch_stride + t * call->o_stride + column;
                Wide *sum = (Wide *)call->o_sum + b * call->sum_batch_stride +
                            t * call->sum_stride + column;
                const Wide *lse = (const Wide *)call->lse + statistics + t;
                Wide *lse_sum = (Wide *)call->lse_sum + statistics + t;
                if (call->first) {
                    for (int d = 0; d < call->head_dim; d++) sum[d] = o[d];
                    *lse_sum = *lse;
                } else {
                    merge_row(sum, lse_sum, o, *lse, call->head_dim);
                }
            }
        }
    }
}
