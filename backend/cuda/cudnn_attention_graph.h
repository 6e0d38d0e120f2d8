// backend/cuda/cudnn_attention_graph.h - attention as steps that cuDNN recognises.
#pragma once

#include "backend/cuda/cudnn_graph.h"

// What a plan is made for; its bytes are compared, so it has no gaps and is cleared before.
typedef struct {
    int64_t batch, heads, kv_heads, head_dim, num_queries, num_keys;
    int64_t q_stride, q_batch_stride, kv_stride, kv_batch_stride, o_stride, o_batch_stride;
    int64_t causal, backward;
} CudnnAttention;

// Its arrays: those of the forward up to UID_LSE, scalars, and the others of the backward.
typedef enum {
    UID_Q = 1,
    UID_K,
    UID_V,
    UID_O,
    UID_LSE,
    UID_SCALE,
    UID_HIDDEN,
    UID_ONE,
    UID_DOUT,
    UID_DQ,
    UID_DK,
    UID_DV,
    UID_DELTA,
    UID_DQ_SUM,
} Uid;

// Adds the forward or the backward to an empty graph.
void cudnn_attention_graph(CudnnGraph *graph, const CudnnAttention *key);
