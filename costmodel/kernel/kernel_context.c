#include "costmodel/kernel/kernel_context.h"

#include "costmodel/kernel/surface_value.h"

#include <math.h>
#include <stddef.h>

#define KEYS_PER_BLOCK 16.0
#define MOST_CLASSES 512.0 // of tiles; more are counted in bundles
#define CHAIN_POWER 4.0    // of the norm that joins throughput and the longest tile

static double tile_blocks(double tile, double tile_tokens, const AttentionShape *shape) {
    double last = fmin((tile + 1) * tile_tokens, shape->tokens), first = 0;
    int window = shape->variant.window_size;
    if (window > 0) first = fmax(0, tile * tile_tokens - window + 1);
    return ceil((last - floor(first / KEYS_PER_BLOCK) * KEYS_PER_BLOCK) / KEYS_PER_BLOCK);
}

// Tiles from the last (longest) to the first, all heads of one before those of the next; the
// busiest SM gets every num_sms-th of them, beginning with the first.
ContextWork context_work(int num_sms, double tile_tokens, const AttentionShape *shape) {
    double num_tiles = ceil(shape->tokens / tile_tokens), heads = shape->batch * shape->heads;
    double bundle = ceil(num_tiles / MOST_CLASSES), dealt = 0;
    ContextWork work = {.waves = fmax(1, ceil(num_tiles * heads / num_sms))};
    for (double tile = num_tiles - 1; tile >= 0; tile -= bundle) {
        double size = fmin(bundle, tile + 1);
        double newest = tile_blocks(tile, tile_tokens, shape);
        double oldest = size > 1 ? tile_blocks(tile - size + 1, tile_tokens, shape) : newest;
        double share = ceil((dealt + size * heads) / num_sms) - ceil(dealt / num_sms);
        work.busiest += share * (newest + oldest) / 2;
        work.longest = fmax(work.longest, newest);
        dealt += size * heads;
    }
    return work;
}

static double memory_s(const Gpu *gpu, const ContextKernel *kernel, const AttentionShape *shape) {
    double bytes = 4 * shape->batch * shape->tokens * shape->variant.head_dim *
                   (shape->heads + shape->kv_heads);
    double miss = cache_miss_frac(bytes, gpu->l2_bytes * kernel->l2_frac, kernel->l2_octaves);
    return bytes / gpu->memory_bandwidth_bytes_per_s * kernel->memory_passes *
           (miss + (1 - miss) * kernel->l2_cost_frac);
}

// (a^p + b^p)^(1/p) without overflow.
static double chain_norm(double a, double b) {
    double most = fmax(a, b), least = fmin(a, b);
    return most * pow(1 + pow(least / most, CHAIN_POWER), 1 / CHAIN_POWER);
}

double context_formula_s(const Gpu *gpu, const ContextKernel *kernel, const AttentionShape *shape,
                         const ContextWork *work) {
    double peak = attention_peak_flops_per_s(gpu, shape->variant.attn_dtype) / gpu->num_sms;
    // A short prompt fills part of a tile, at half the rate for the padding.
    double rows = fmin(kernel->tile_tokens, ceil(shape->tokens / 16) * 16);
    double flops = 4 * (rows + kernel->tile_tokens) / 2 * KEYS_PER_BLOCK * shape->variant.head_dim;
    double block_s = flops / (peak * kernel->max_frac);
    double blocks = chain_norm(work->busiest, kernel->chain_ratio * work->longest);
    double body_s = blocks * block_s;
    body_s *= 1 + kernel->loss_frac * body_s / (body_s + kernel->half_s);
    return kernel->launch_s + memory_s(gpu, kernel, shape) + body_s + work->waves * kernel->tile_s;
}

void context_place(const AttentionShape *shape, double place[3]) {
    place[0] = log2(shape->batch * shape->heads);
    place[1] = log2(shape->tokens);
    place[2] = log2(shape->heads / shape->kv_heads);
}

const ContextKernel *context_kernel_find(const ContextKernels *kernels,
                                         const AttentionVariant *variant) {
    const ContextKernel *nearest = NULL;
    double least = INFINITY;
    for (int i = 0; i < kernels->num_kernels; i++) {
        double distance = attention_distance(variant, &kernels->kernels[i].variant);
        if (distance >= least) continue;
        least = distance;
        nearest = &kernels->kernels[i];
    }
    return nearest;
}

double context_price_s(const Gpu *gpu, const ContextKernel *kernel, const AttentionShape *shape) {
    ContextWork work = context_work(gpu->num_sms, kernel->tile_tokens, shape);
    double place[3];
    context_place(shape, place);
    return context_formula_s(gpu, kernel, shape, &work) *
           exp(surface_log_ratio(&kernel->surface, place));
}

double kernel_context_s(const Gpu *gpu, const ContextKernels *kernels,
                        const AttentionShape *shape) {
    const ContextKernel *kernel = context_kernel_find(kernels, &shape->variant);
    if (!kernel || attention_peak_flops_per_s(gpu, shape->variant.attn_dtype) <= 0) return NAN;
    return context_price_s(gpu, kernel, shape);
}
