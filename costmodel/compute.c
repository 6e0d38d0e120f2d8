#include "costmodel/compute.h"

#include "config/training.h"
#include "costmodel/kernel_gemm.h"
#include "costmodel/surface_value.h"

#include <math.h>

// Share of an epilogue's traffic that the main loops of other tiles do not hide.
static const double EPILOGUE_EXPOSED_FRAC = 0.5;

double sustained_frac(const Cluster *cluster, bool light) {
    const GpuEfficiency *e = &cluster->gpu.efficiency;
    return fmin(
        1, cbrt(cluster->power_watts_per_gpu / (light ? e->light_rate_watts : e->full_rate_watts)));
}

static double gemm_sustained_frac(const Cluster *cluster, int precision) {
    return sustained_frac(cluster, precision > PRECISION_BF16);
}

// Share of the SMs' time that the tiles of a product fill: the last wave is part empty.
static double wave_frac(const Gpu *gpu, const Op *op) {
    const GpuEfficiency *e = &gpu->efficiency;
    double tiles = op->groups * ceil(op->m / e->gemm_tile_m) * ceil(op->n / e->gemm_tile_n);
    double waves = ceil(tiles / gpu->num_sms);
    return tiles / (gpu->num_sms * waves);
}

static double memory_s(const Gpu *gpu, double bytes) {
    return bytes / (gpu->memory_bandwidth_bytes_per_s * gpu->efficiency.memory_frac);
}

static double compact_gemm_s(const Cluster *cluster, const Op *op) {
    const Gpu *gpu = &cluster->gpu;
    const GpuEfficiency *e = &gpu->efficiency;
    double rate = gpu->peak_flops_per_s[op->precision] * e->gemm_max_frac[op->precision] *
                  gemm_sustained_frac(cluster, op->precision);
    rate *= op->k / (op->k + e->gemm_half_k) * wave_frac(gpu, op);
    return op->num_kernels * e->launch_s + fmax(op->flops / rate, memory_s(gpu, op->bytes));
}

// The measured number format nearest to a product's; NUM_GEMM_DTYPES where none is.
static GemmDtype gemm_dtype(const Op *op) {
    switch (op->precision) {
    case PRECISION_FP16:
    case PRECISION_BF16:
        return GEMM_BFLOAT16;
    case PRECISION_FP8:
        return op->fp8_recipe == FP8_BLOCK || op->fp8_recipe == FP8_ROWWISE ? GEMM_FP8_BLOCK
                                                                            : GEMM_FP8;
    case PRECISION_MXFP8:
        return GEMM_FP8;
    case PRECISION_NVFP4:
        return GEMM_NVFP4;
    default:
        return NUM_GEMM_DTYPES;
    }
}

static double products_price(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype,
                             const Op *op) {
    if (!op->separate)
        return kernel_gemm_product_s(gpu, kernels, dtype, op->groups * op->m, op->n, op->k);
    double launch_s = kernels->dtypes[GEMM_BFLOAT16].launch_s;
    double one_s =
        kernel_gemm_product_s(gpu, kernels, dtype, fmax(1, op->m), op->n, fmax(1, op->k));
    return launch_s + op->groups * fmax(0.5 * one_s, one_s - launch_s);
}

// The same shapes come up again and again in a search.
static double products_s(const CalibratedKernels *kernels, GemmDtype dtype, const Op *op) {
    const double inputs[] = {dtype, op->separate, op->groups, op->m, op->n, op->k};
    uint64_t key = memo_key(inputs, sizeof inputs / sizeof *inputs);
    double time_s;
    if (kernels->products && memo_find(kernels->products, key, &time_s)) return time_s;
    time_s = products_price(&kernels->gpu, &kernels->profile.gemm, dtype, op);
    if (kernels->products) memo_keep(kernels->products, key, time_s);
    return time_s;
}

// A batched product is priced as one with all rows, but reads every group's operands. Products of
// experts run one by one, launched beside each other. The whole time is stretched by the power
// limit: short products are part of the same long step.
static double gemm_s(const Cluster *cluster, const Op *op) {
    const CalibratedKernels *kernels = cluster->kernels;
    GemmDtype dtype = gemm_dtype(op);
    double product_s = NAN;
    if (kernels && dtype != NUM_GEMM_DTYPES)
        product_s = products_s(kernels, dtype, op) / gemm_sustained_frac(cluster, op->precision);
    if (isnan(product_s)) return compact_gemm_s(cluster, op);
    double epilogue_s =
        memory_s(&cluster->gpu, EPILOGUE_EXPOSED_FRAC * op->epilogue_bytes + op->after_bytes);
    return fmax(product_s, memory_s(&cluster->gpu, op->bytes)) + epilogue_s;
}

double gemm_residual_p90_frac(const Cluster *cluster, const Op *op) {
    const CalibratedKernels *kernels = cluster->kernels;
    GemmDtype dtype = gemm_dtype(op);
    if (!kernels || dtype == NUM_GEMM_DTYPES || !kernels->profile.gemm.dtypes[dtype].present)
        return cluster->gpu.efficiency.residual_p90_frac;
    const GemmKernel *kernel = &kernels->profile.gemm.dtypes[dtype];
    double rows = op->separate ? fmax(1, op->m) : op->groups * op->m;
    double place[] = {log2(rows), log2(op->n), log2(op->k)};
    double octaves = surface_outside_octaves(&kernel->surface, place);
    return kernel->residual_p90_frac * (1 + octaves);
}

// Rate of a fused attention kernel over that of the newest for its GPU, which the profile holds.
// Estimates, not read off: Hopper and later after Shah et al. 2024, "FlashAttention-3",
// arXiv:2407.08608 (generation 2 over 3); before, 2 is the newest; 1 (Triton) over 2 after Dao
// 2023, "FlashAttention-2", arXiv:2307.08691.
static double generation_frac(const Gpu *gpu, const Op *op) {
    bool hopper = gpu->peak_flops_per_s[PRECISION_FP8] > 0 && gpu->num_sms > 100;
    double second = !hopper ? 1 : op->backward ? 0.62 : 0.58;
    if (op->generation >= 3) return 1;
    if (op->generation == 2) return second;
    return second * (op->backward ? 0.62 : 0.70);
}

// Rate by head size over that of 128. Smaller heads do less work per softmax exponential. The
// backward of larger ones has less room for its tiles: with 192 (and values of 128)
// FlashAttention-4 reaches 971 TFLOP/s on B200, with 128 1,209 (causal, 8192 tokens;
// Dao-AILab/flash-attention pull requests 2270 and 2280).
static double head_frac(const GpuEfficiency *e, const Op *op) {
    const double backward_192_frac = 0.80;
    if (op->head_dim < 128) return 1 - (1 - e->attention_head64_frac) * (128 - op->head_dim) / 64;
    if (!op->backward) return 1;
    return 1 - (1 - backward_192_frac) * fmin(1, (op->head_dim - 128) / 64);
}

// Attention runs in 16 bits where the products run in 16 or fewer.
static double attention_s(const Cluster *cluster, const Op *op) {
    const Gpu *gpu = &cluster->gpu;
    const GpuEfficiency *e = &gpu->efficiency;
    int precision = gpu->peak_flops_per_s[PRECISION_BF16] > 0 ? PRECISION_BF16 : PRECISION_FP16;
    if (op->precision <= PRECISION_TF32) precision = op->precision;
    double frac = op->backward ? e->attention_backward_frac : e->attention_forward_frac;
    double rate = gpu->peak_flops_per_s[precision] * frac * sustained_frac(cluster, true) *
                  generation_frac(gpu, op);
    rate *= op->tokens / (op->tokens + e->attention_half_tokens);
    return fmax(op->flops / (rate * head_frac(e, op)), memory_s(gpu, op->bytes));
}

double op_compute_s(const Cluster *cluster, const Op *op) {
    double launches_s = op->num_kernels * cluster->gpu.efficiency.launch_s;
    switch (op->kind) {
    case OP_GEMM:
        return gemm_s(cluster, op);
    case OP_ATTENTION:
        return launches_s + attention_s(cluster, op);
    case OP_MEMORY:
        return launches_s + memory_s(&cluster->gpu, op->bytes);
    case OP_COLLECTIVE:
        break;
    }
    return 0;
}
