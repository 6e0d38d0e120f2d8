#include "costmodel/kernel/kernel_gemm.h"

#include "costmodel/kernel/surface_value.h"

#include <math.h>

// Bytes of one operand element; nvfp4 has a scale of one byte for 16 elements.
static const double ELEMENT_BYTES[NUM_GEMM_DTYPES] = {2, 1, 1, 0.5625};

// Rows and columns of a tile.
static const double TILES[NUM_GEMM_TILES][2] = {
    {64, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 128}};

enum { MAX_SPLIT = 16 };
static const double SHORTEST_SPLIT_K = 256;

// collector/trtllm/collect_gemm.py of aiconfigurator calls as many copies of the weights in turn as
// fill the L2 cache, at most so many.
static const double MOST_COPIES = 5;

double gemm_peak_flops_per_s(const Gpu *gpu, GemmDtype dtype) {
    static const Precision PRECISIONS[NUM_GEMM_DTYPES] = {PRECISION_BF16, PRECISION_FP8,
                                                          PRECISION_FP8, PRECISION_NVFP4};
    return gpu->peak_flops_per_s[PRECISIONS[dtype]];
}

// What all tiles and splits of one product share.
typedef struct {
    double n, m, k;
    double memory_s;              // of operands and output
    double bandwidth_bytes_per_s; // achieved
    double flops_per_s;           // achieved by the largest tile on all SMs
    double num_sms;
} Product;

// The seconds of one tile and split, or best_s where those are fewer.
static double candidate_s(const GemmKernel *kernel, const Product *p, int tile, double split,
                          double best_s) {
    const double fracs[NUM_GEMM_TILES] = {kernel->tile_64x64_frac, kernel->tile_64x128_frac,
                                          kernel->tile_128x128_frac, 1, 1};
    double tm = TILES[tile][0], tn = TILES[tile][1];
    double part_k = p->k / split + kernel->half_k;
    double x = split * ceil(p->m / tm) * ceil(p->n / tn) / p->num_sms;
    double waves = x + kernel->tail_frac * (ceil(x) - x);
    double compute_s = waves * 2 * tm * tn * part_k * p->num_sms / (p->flops_per_s * fracs[tile]);
    double latency_s = ceil(x) * kernel->latency_s * sqrt(sqrt(tm * tn / 4096)) * part_k;
    double join_s = 0;
    if (split > 1)
        join_s =
            kernel->split_s + kernel->split_bytes * split * p->m * p->n / p->bandwidth_bytes_per_s;
    // The p-norm, at least its largest part, which is taken out so that powers stay in range.
    double power = kernel->overlap_power, top = fmax(compute_s, fmax(latency_s, p->memory_s));
    if (top + join_s >= best_s) return best_s;
    double sum =
        pow(compute_s / top, power) + pow(latency_s / top, power) + pow(p->memory_s / top, power);
    return fmin(best_s, top * pow(sum, 1 / power) + join_s);
}

// Parts long enough, the library's thresholds, and SMs left idle without more parts.
static bool may_split(const GemmKernel *kernel, const Product *p, double tiles, double split) {
    return p->k / split >= SHORTEST_SPLIT_K && tiles * split <= 4 * p->num_sms &&
           p->k >= kernel->split_from_k && p->n * p->k >= kernel->split_from_elements;
}

double kernel_gemm_bytes(GemmDtype dtype, double m, double n, double k) {
    return (m * k + k * n) * ELEMENT_BYTES[dtype] + 2 * m * n;
}

// What the benchmark touches between two calls with the same weights.
static double touched_bytes(const Gpu *gpu, GemmDtype dtype, double m, double n, double k) {
    double weights = n * k * (dtype == GEMM_NVFP4 ? 0.5 : ELEMENT_BYTES[dtype]); // without scales
    double copies = fmin(MOST_COPIES, ceil(gpu->l2_bytes / weights));
    return kernel_gemm_bytes(dtype, m, n, k) + (copies - 1) * weights;
}

double kernel_gemm_formula_s(const Gpu *gpu, const GemmKernel *kernel, GemmDtype dtype, double m,
                             double n, double k) {
    Product p = {.m = m, .n = n, .k = k, .num_sms = gpu->num_sms};
    double peak = gemm_peak_flops_per_s(gpu, dtype), peak_s = 2 * m * n * k / peak;
    double bytes = kernel_gemm_bytes(dtype, m, n, k);
    p.bandwidth_bytes_per_s = gpu->memory_bandwidth_bytes_per_s * kernel->memory_frac;
    double fill = touched_bytes(gpu, dtype, m, n, k) / (kernel->l2_frac * gpu->l2_bytes);
    double kept = 1 / (1 + pow(fill, kernel->l2_power));
    p.memory_s = bytes / p.bandwidth_bytes_per_s * (1 - kept + kept / kernel->l2_speedup);
    p.flops_per_s =
        peak * kernel->max_frac * (1 - kernel->loss_frac * peak_s / (peak_s + kernel->half_s));
    double best_s = INFINITY;
    for (int tile = NUM_GEMM_TILES - 1; tile >= 0; tile--) {
        double tiles = ceil(m / TILES[tile][0]) * ceil(n / TILES[tile][1]);
        best_s = candidate_s(kernel, &p, tile, 1, best_s);
        for (int split = 2; split <= MAX_SPLIT && may_split(kernel, &p, tiles, split);
             split += split < 4 ? 1 : 2)
            best_s = candidate_s(kernel, &p, tile, split, best_s);
    }
    return kernel->launch_s + best_s + kernel->quantize_bytes * m * k / p.bandwidth_bytes_per_s;
}

double kernel_gemm_log_ratio(const GemmKernel *kernel, double m, double n, double k) {
    double mnk[] = {log2(m), log2(n), log2(k)}, mk[] = {mnk[0], mnk[2]};
    return surface_log_ratio(&kernel->surface, mnk) + surface_log_ratio(&kernel->surface_mn, mnk) +
           surface_log_ratio(&kernel->surface_mk, mk);
}

double kernel_gemm_s(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype, double m,
                     double n, double k) {
    const GemmKernel *kernel = &kernels->dtypes[dtype];
    if (!kernel->present || gemm_peak_flops_per_s(gpu, dtype) <= 0) return NAN;
    return kernel_gemm_formula_s(gpu, kernel, dtype, m, n, k) *
           exp(kernel_gemm_log_ratio(kernel, m, n, k));
}

double kernel_gemm_product_s(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype, double m,
                             double n, double k) {
    GemmKernel kernel = kernels->dtypes[dtype];
    if (!kernel.present || gemm_peak_flops_per_s(gpu, dtype) <= 0) return NAN;
    double ratio = kernel_gemm_log_ratio(&kernel, m, n, k);
    if (kernels->dtypes[GEMM_BFLOAT16].present)
        kernel.launch_s = kernels->dtypes[GEMM_BFLOAT16].launch_s;
    kernel.quantize_bytes = 0;
    kernel.l2_speedup = 1; // other layers read their weights in between
    return kernel_gemm_formula_s(gpu, &kernel, dtype, m, n, k) * exp(ratio);
}
