// costmodel/kernel/kernel_attention.h - shapes of attention on one GPU, and which measured kernel
// is nearest to one. The formulas are in kernel_context.h and kernel_generation.h.
#pragma once

#include "config/kernels/kernel_attention.h"
#include "config/machine/gpu.h"

typedef struct {
    AttentionVariant variant;
    double batch;    // sequences, >= 1
    double tokens;   // prompt: queries of a sequence; generation: keys with the new one; >= 1
    double heads;    // query heads on this GPU
    double kv_heads; // <= heads
} AttentionShape;

// How far apart two variants are; INFINITY where the number formats differ.
double attention_distance(const AttentionVariant *a, const AttentionVariant *b);

// Peak of the products; 0 where the GPU has no such units.
double attention_peak_flops_per_s(const Gpu *gpu, int attn_dtype);

// Share of bytes that miss a cache: 0 well below `cache`, 1 well above, smooth in the octaves
// between.
double cache_miss_frac(double bytes, double cache_bytes, double octaves);
