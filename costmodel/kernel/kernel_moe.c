#include "costmodel/kernel/kernel_moe.h"

#include "costmodel/kernel/surface_value.h"

#include <math.h>

double moe_peak_flops_per_s(const Gpu *gpu, MoeDtype dtype) {
    static const Precision PRECISIONS[NUM_MOE_DTYPES] = {PRECISION_BF16, PRECISION_FP8,
                                                         PRECISION_FP8, PRECISION_NVFP4};
    return gpu->peak_flops_per_s[PRECISIONS[dtype]];
}

// Bytes of a weight with its share of scales: nvfp4 has one byte of scale per 16.
static double weight_bytes(int dtype) {
    static const double BYTES[NUM_MOE_DTYPES] = {2, 1, 1, 0.5625};
    return BYTES[dtype];
}

static double row_bytes(int dtype) {
    static const double BYTES[NUM_MOE_DTYPES] = {2, 1, 1, 0.5};
    return BYTES[dtype];
}

// Share of the weights' time that remains where they partly stay in the cache between repetitions.
static double uncached_frac(const Gpu *gpu, const MoeKernel *kernel, double layer_bytes) {
    double ratio = layer_bytes / (gpu->l2_bytes * kernel->cache_frac);
    double hit = 1 / (1 + pow(ratio, kernel->cache_power));
    return 1 - hit * (1 - 1 / kernel->cache_speedup);
}

// One grouped product with n columns and depth k.
static double product_s(const Gpu *gpu, const MoeKernel *kernel, const MoeLoad *load, double n,
                        double k, double uncached) {
    double bytes = load->num_active * n * k * weight_bytes(kernel->moe_dtype) * uncached +
                   load->num_rows * (k * row_bytes(kernel->moe_dtype) + n * 2);
    double memory_s = bytes / (gpu->memory_bandwidth_bytes_per_s * kernel->memory_frac);
    double rate = moe_peak_flops_per_s(gpu, (MoeDtype)kernel->moe_dtype) * kernel->max_frac *
                  (1 + kernel->half_rows / 256) / gpu->num_sms;
    double compute_s = INFINITY;
    for (int i = 0; i < MOE_NUM_TILES; i++) {
        double waves = load->num_tiles[i] * ceil(n / MOE_TILE_COLUMNS) / gpu->num_sms;
        waves = fmax(1, waves + kernel->tail_frac * (ceil(waves) - waves));
        double tile_flops =
            2 * (MOE_TILE_ROWS[i] + kernel->half_rows) * MOE_TILE_COLUMNS * (k + kernel->half_k);
        compute_s = fmin(compute_s, waves * tile_flops / rate);
    }
    double p = kernel->overlap_power;
    return pow(pow(compute_s, p) + pow(memory_s, p), 1 / p);
}

double kernel_moe_formula_s(const Gpu *gpu, const MoeKernel *kernel, const MoeShape *shape,
                            const MoeLoad *load) {
    const MoeRouting *r = &shape->routing;
    double h = shape->hidden_size, f = shape->inter_size, up = kernel->gated ? 2 * f : f;
    double fixed_s = kernel->launch_s + kernel->pair_s * r->num_tokens * r->topk +
                     kernel->expert_s * r->num_experts +
                     kernel->local_expert_s * (r->num_experts / r->num_ranks);
    double passes = kernel->token_passes * r->num_tokens * h +
                    2 * load->num_rows * (kernel->row_passes * h + kernel->inner_passes * f);
    double weights = load->num_active * (up + f) * h * weight_bytes(kernel->moe_dtype);
    double uncached = uncached_frac(gpu, kernel, weights + load->num_rows * 2 * (h + up));
    return fixed_s + passes * 2 / gpu->memory_bandwidth_bytes_per_s +
           product_s(gpu, kernel, load, up, h, uncached) +
           product_s(gpu, kernel, load, h, f, uncached);
}

void kernel_moe_place(const MoeShape *shape, const MoeLoad *load, double place[MOE_NUM_AXES]) {
    place[0] = log2(fmax(1, load->num_rows) / fmax(1, load->num_active));
    place[1] = log2(fmax(1, load->num_active));
    place[2] = log2(shape->inter_size);
}

double kernel_moe_load_s(const Gpu *gpu, const MoeKernel *kernel, const MoeShape *shape,
                         const MoeLoad *load) {
    double place[MOE_NUM_AXES];
    kernel_moe_place(shape, load, place);
    return kernel_moe_formula_s(gpu, kernel, shape, load) *
           exp(surface_log_ratio(&kernel->surface, place));
}

double kernel_moe_s(const Gpu *gpu, const MoeKernel *kernel, const MoeShape *shape) {
    if (moe_peak_flops_per_s(gpu, (MoeDtype)kernel->moe_dtype) <= 0) return NAN;
    MoeLoad load = moe_load(&shape->routing);
    return kernel_moe_load_s(gpu, kernel, shape, &load);
}

double kernel_moe_least_s(const Gpu *gpu, const MoeKernel *kernel, const MoeShape *shape,
                          const MoeLoad *load) {
    double products = kernel->gated ? 3 : 2;
    return 2 * products * load->num_rows * shape->hidden_size * shape->inter_size /
           moe_peak_flops_per_s(gpu, (MoeDtype)kernel->moe_dtype);
}
