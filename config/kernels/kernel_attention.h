// config/kernels/kernel_attention.h - calibrated attention kernels: sections `context_attention`,
// `generation_attention`, `context_mla` and `generation_mla` of a kernel profile.
//
// A section holds one kernel per number format, head size and window that was measured; the
// formulas are in costmodel/kernel/kernel_context.h (prompts) and
// costmodel/kernel/kernel_generation.h (one new token). Shapes between the measured ones take the
// nearest kernel.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/kernels/surface.h"

#include <stdbool.h>

// Number formats of the products and of the stored keys and values.
typedef enum { ATTENTION_BFLOAT16, ATTENTION_FP8, NUM_ATTENTION_DTYPES } AttentionDtype;

extern const char *const ATTENTION_DTYPE_NAMES[NUM_ATTENTION_DTYPES + 1]; // ends with NULL

// What a kernel was measured for.
typedef struct {
    int attn_dtype, kv_cache_dtype; // AttentionDtype
    int head_dim;                   // >= 1
    int window_size;                // keys that a query sees; 0: all
} AttentionVariant;

// Attention of whole prompts, causal.
typedef struct {
    AttentionVariant variant;
    double tile_tokens;          // queries of one tile
    double launch_s;             // smallest call
    double memory_passes;        // over queries, keys, values and output, at full bandwidth
    double max_frac;             // of the dense peak, one SM in the main loop
    double tile_s;               // prologue and epilogue of a tile
    double loss_frac;            // of the time, added by the power limit in long kernels
    double half_s;               // duration at which half of it is reached
    double l2_frac;              // of the L2 cache: bytes beyond it come from memory
    double l2_octaves;           // half width of that transition
    double l2_cost_frac;         // of a pass, where the bytes lie in the L2 cache
    double chain_ratio;          // time of the longest tile when alone over that when SMs are full
    double residual_median_frac; // |error| on left-out heads, median
    double residual_p90_frac;    // and 90th percentile
    Surface surface;             // over batch x heads, tokens, heads per key-value head
} ContextKernel;

typedef struct {
    int num_kernels; // 0: nothing calibrated
    const ContextKernel *kernels;
} ContextKernels;

// How queries share keys and values in a generation kernel.
typedef enum {
    GENERATION_SHARED,   // one block for all query heads of a key-value head
    GENERATION_SINGLE,   // one query head per key-value head
    GENERATION_PER_HEAD, // one block for each query head, though several share keys and values
    NUM_GENERATION_SHARINGS
} GenerationSharing;

extern const char *const GENERATION_SHARING_NAMES[NUM_GENERATION_SHARINGS + 1];

// Attention of one new token per sequence.
typedef struct {
    AttentionVariant variant;
    int sharing;          // GenerationSharing
    double launch_s;      // smallest call
    double memory_frac;   // of memory bandwidth
    double block_s;       // fixed cost of a wave of blocks
    double token_s;       // of one key and value in one block that runs alone
    double split_s;       // reduction where keys are split over blocks
    double split_tokens;  // the least keys of a split
    double blocks_per_sm; // splits fill this many blocks
    double query_passes;  // over query and output
    double max_frac;      // of the dense peak; queries are padded to a power of two
    double l2_frac;       // as in ContextKernel
    double l2_octaves;
    double l2_cost_frac;
    double residual_median_frac;
    double residual_p90_frac;
    Surface surface; // over batch x blocks' heads, keys, heads per key-value head
} GenerationKernel;

typedef struct {
    // Per kv_cache_dtype: batch x key-value heads x (keys / 128) must reach this share of the SMs
    // for the shared kernel to be taken.
    double shared_min_blocks_per_sm[NUM_ATTENTION_DTYPES];
    int num_kernels; // 0: nothing calibrated
    const GenerationKernel *kernels;
} GenerationKernels;

Status context_kernels_read(const JsonNode *node, Arena *arena, ContextKernels *out);
Status generation_kernels_read(const JsonNode *node, Arena *arena, GenerationKernels *out);

// Write them as the documents that the functions above read.
cJSON *context_kernels_to_json(const ContextKernels *kernels);
cJSON *generation_kernels_to_json(const GenerationKernels *kernels);
