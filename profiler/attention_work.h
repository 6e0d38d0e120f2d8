// profiler/attention_work.h - a call of attention as it is measured: its arrays, where they lie in
// one piece of memory, and the call of backend/backend.h. Touches no CUDA.
#pragma once

#include "backend/backend.h"

// Causal attention of whole sequences.
typedef struct {
    bool backward;
    int batch, tokens, heads, kv_heads, head_dim;
} AttentionRequest;

typedef enum {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_O,
    ATTENTION_LSE,
    ATTENTION_DOUT, // from here on of the backward alone
    ATTENTION_DQ,
    ATTENTION_DK,
    ATTENTION_DV,
    NUM_ATTENTION_ARRAYS
} AttentionArray;

typedef struct {
    size_t at[NUM_ATTENTION_ARRAYS];    // from the first byte, multiples of 256
    size_t bytes[NUM_ATTENTION_ARRAYS]; // 0: the call has no such array
    size_t all_bytes;
} AttentionArrays;

// act_bytes, wide_bytes: of an element of the backend's formats.
AttentionArrays attention_arrays(const AttentionRequest *request, size_t act_bytes,
                                 size_t wide_bytes);

// The call on arrays that begin at base: tokens lie behind each other, and heads within a token.
Attention attention_call(const AttentionRequest *request, const AttentionArrays *arrays,
                         char *base);

// Of the products that causal attention cannot do without: two forward, five backward
// (FlashAttention-2, arXiv:2307.08691, section 4.1), each over tokens (tokens + 1) / 2 pairs.
double attention_flops(const AttentionRequest *request);
