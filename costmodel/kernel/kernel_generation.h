// costmodel/kernel/kernel_generation.h - seconds of attention of one new token per sequence
// (decode).
//
// Model:  launch + p-norm(chain, memory, flops) + waves block_s + split_s, times the residual grid.
//   blocks   = batch x (key-value heads where the kernel shares them, else query heads), each split
//              over the keys until blocks_per_sm SMs are full or a split has split_tokens keys
//   chain_s  = keys of a split x token_s x waves
//   memory_s = (keys and values + query_passes x query and output) / (bandwidth memory_frac),
//              cheaper where keys and values fit the L2 cache
//   flops_s  = 4 keys head_dim x heads, padded to a power of two per key-value head / (peak
//   max_frac)
// Source: Dao et al., "Flash-Decoding for long-context inference", 2023 (split keys, reduction);
//         Ainslie et al., "GQA", arXiv:2305.13245 (sharing keys and values by query heads); which
//         of two kernels a GQA library takes: NVIDIA TensorRT-LLM, XQA dispatch (a shared kernel
//         where batch x key-value heads x keys/128 blocks fill a quarter of the SMs; groups of at
//         most 32). The numbers are fitted (calibrate/).
#pragma once

#include "costmodel/kernel/kernel_attention.h"

// Which kernel runs a shape: shared only for 2 to 32 heads per key-value head and enough blocks.
GenerationSharing generation_sharing(const Gpu *gpu, double min_blocks_per_sm,
                                     const AttentionShape *shape);

// Seconds by the formula alone, without the grid.
double generation_formula_s(const Gpu *gpu, const GenerationKernel *kernel,
                            const AttentionShape *shape);

// Where a shape lies in the grid: log2 of batch x heads of the blocks, keys, heads / kv_heads
// (padded where shared).
void generation_place(const GenerationKernel *kernel, const AttentionShape *shape, double place[3]);

// The nearest kernel of that sharing (of the other where there is none), or NULL.
const GenerationKernel *generation_kernel_find(const GenerationKernels *kernels,
                                               const AttentionVariant *variant,
                                               GenerationSharing sharing);

// Seconds by the formula and the grid.
double generation_price_s(const Gpu *gpu, const GenerationKernel *kernel,
                          const AttentionShape *shape);

// Seconds on the device; NAN where the profile or the GPU lacks the number formats. A section
// whose kernels are all shared (latent attention) has no other to take.
double kernel_generation_s(const Gpu *gpu, const GenerationKernels *kernels,
                           const AttentionShape *shape);
