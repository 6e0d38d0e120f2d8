#include "costmodel/kernel/kernel_generation.h"

#include "costmodel/kernel/surface_value.h"

#include <math.h>
#include <stddef.h>

#define MOST_SHARED_HEADS 32.0
#define TOKENS_PER_BLOCK 128.0 // of the library's rule
#define JOIN_POWER 3.0         // of the norm that joins chain, memory and flops

GenerationSharing generation_sharing(const Gpu *gpu, double min_blocks_per_sm,
                                     const AttentionShape *shape) {
    double group = shape->heads / shape->kv_heads;
    if (group <= 1) return GENERATION_SINGLE;
    if (group > MOST_SHARED_HEADS) return GENERATION_PER_HEAD;
    double blocks =
        shape->batch * shape->kv_heads * fmax(1, floor((shape->tokens - 1) / TOKENS_PER_BLOCK));
    return blocks >= min_blocks_per_sm * gpu->num_sms ? GENERATION_SHARED : GENERATION_PER_HEAD;
}

static double kept_keys(const AttentionShape *shape) {
    int window = shape->variant.window_size;
    return window > 0 ? fmin(shape->tokens, window) : shape->tokens;
}

// Query heads per key-value head as the tensor cores see them.
static double padded_group(const AttentionShape *shape) {
    return exp2(ceil(log2(shape->heads / shape->kv_heads) - 1e-9));
}

static double memory_s(const Gpu *gpu, const GenerationKernel *kernel,
                       const AttentionShape *shape) {
    double element_bytes = shape->variant.kv_cache_dtype == ATTENTION_FP8 ? 1 : 2;
    double kv_bytes = 2 * shape->batch * shape->kv_heads * kept_keys(shape) *
                      shape->variant.head_dim * element_bytes;
    double query_bytes = 4 * shape->batch * shape->heads * shape->variant.head_dim;
    double miss = cache_miss_frac(kv_bytes, gpu->l2_bytes * kernel->l2_frac, kernel->l2_octaves);
    return (kv_bytes + query_bytes * kernel->query_passes) /
           (gpu->memory_bandwidth_bytes_per_s * kernel->memory_frac) *
           (miss + (1 - miss) * kernel->l2_cost_frac);
}

static double flops_s(const Gpu *gpu, const GenerationKernel *kernel, const AttentionShape *shape) {
    double heads = shape->kv_heads * padded_group(shape);
    double flops = 4 * shape->batch * heads * kept_keys(shape) * shape->variant.head_dim;
    return flops / (attention_peak_flops_per_s(gpu, shape->variant.attn_dtype) * kernel->max_frac);
}

static double join3(double a, double b, double c) {
    double most = fmax(a, fmax(b, c));
    return most *
           pow(pow(a / most, JOIN_POWER) + pow(b / most, JOIN_POWER) + pow(c / most, JOIN_POWER),
               1 / JOIN_POWER);
}

double generation_formula_s(const Gpu *gpu, const GenerationKernel *kernel,
                            const AttentionShape *shape) {
    double heads = kernel->sharing == GENERATION_SHARED ? shape->kv_heads : shape->heads;
    double blocks = shape->batch * heads, keys = kept_keys(shape);
    double room = gpu->num_sms * kernel->blocks_per_sm / blocks;
    double splits = fmax(1, fmin(ceil(keys / kernel->split_tokens), room));
    double waves = fmax(1, blocks * splits / gpu->num_sms);
    double chain_s = keys / splits * kernel->token_s * waves;
    double body_s = join3(chain_s, memory_s(gpu, kernel, shape), flops_s(gpu, kernel, shape));
    return kernel->launch_s + body_s + waves * kernel->block_s + (splits > 1 ? kernel->split_s : 0);
}

void generation_place(const GenerationKernel *kernel, const AttentionShape *shape,
                      double place[3]) {
    bool shared = kernel->sharing == GENERATION_SHARED;
    place[0] = log2(shape->batch * (shared ? shape->kv_heads : shape->heads));
    place[1] = log2(shape->tokens);
    place[2] = shared ? log2(padded_group(shape)) : log2(shape->heads / shape->kv_heads);
}

const GenerationKernel *generation_kernel_find(const GenerationKernels *kernels,
                                               const AttentionVariant *variant,
                                               GenerationSharing sharing) {
    const GenerationKernel *nearest = NULL;
    double least = INFINITY;
    for (int i = 0; i < kernels->num_kernels; i++) {
        const GenerationKernel *kernel = &kernels->kernels[i];
        double distance = attention_distance(variant, &kernel->variant) +
                          (kernel->sharing == (int)sharing ? 0 : 1000);
        if (distance >= least) continue;
        least = distance;
        nearest = kernel;
    }
    return nearest;
}

double generation_price_s(const Gpu *gpu, const GenerationKernel *kernel,
                          const AttentionShape *shape) {
    double place[3];
    generation_place(kernel, shape, place);
    return generation_formula_s(gpu, kernel, shape) *
           exp(surface_log_ratio(&kernel->surface, place));
}

double kernel_generation_s(const Gpu *gpu, const GenerationKernels *kernels,
                           const AttentionShape *shape) {
    double min_blocks = kernels->shared_min_blocks_per_sm[shape->variant.kv_cache_dtype];
    GenerationSharing sharing = generation_sharing(gpu, min_blocks, shape);
    const GenerationKernel *kernel = generation_kernel_find(kernels, &shape->variant, sharing);
    if (!kernel || attention_peak_flops_per_s(gpu, shape->variant.attn_dtype) <= 0) return NAN;
    return generation_price_s(gpu, kernel, shape);
}
