// costmodel/kernel/kernel_context.h - seconds of attention over whole prompts (causal, forward).
//
// Model:  launch + memory + tiles, times the residual grid. A tile is tile_tokens queries of one
//         head; its work is the blocks of 16 keys that its queries see (the diagonal block counts
//         in full, a window cuts off the old ones).
//   tiles_s  = p-norm(busiest SM, chain_ratio longest tile) x block_s (1 + loss(duration))
//              + waves tile_s
//   busiest  = tiles dealt out to the SMs in turn, longest first: wave quantization and tail
//   block_s  = 4 tile_tokens 16 head_dim flops / (max_frac peak / num_sms)
//   memory_s = memory_passes 4 bytes batch tokens head_dim (heads + kv_heads) / bandwidth, cheaper
//              where the bytes fit the L2 cache
// Source: Dao, "FlashAttention-2", arXiv:2307.08691, section 3 (tiles of queries, parallel over
//         sequence, heads and batch; masked blocks are skipped); wave quantization: NVIDIA, "Matrix
//         Multiplication Background User's Guide". The numbers are fitted (calibrate/).
#pragma once

#include "costmodel/kernel/kernel_attention.h"

// Blocks of 16 keys by tiles, before any fitted number.
typedef struct {
    double longest; // blocks of the longest tile
    double busiest; // blocks on the busiest SM
    double waves;   // of tiles
} ContextWork;

ContextWork context_work(int num_sms, double tile_tokens, const AttentionShape *shape);

// Seconds by the formula alone, without the grid; work is that of the kernel's tile_tokens.
double context_formula_s(const Gpu *gpu, const ContextKernel *kernel, const AttentionShape *shape,
                         const ContextWork *work);

// Where a shape lies in the grid: log2 of batch x heads, tokens, heads / kv_heads.
void context_place(const AttentionShape *shape, double place[3]);

// The nearest kernel, or NULL where the number formats were not measured.
const ContextKernel *context_kernel_find(const ContextKernels *kernels,
                                         const AttentionVariant *variant);

// Seconds by the formula and the grid.
double context_price_s(const Gpu *gpu, const ContextKernel *kernel, const AttentionShape *shape);

// Seconds on the device; NAN where the profile or the GPU lacks the number formats.
double kernel_context_s(const Gpu *gpu, const ContextKernels *kernels, const AttentionShape *shape);
