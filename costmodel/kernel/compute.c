#include "costmodel/kernel/compute.h"

#include "config/job/training.h"
#include "costmodel/kernel/core_op.h"
#include "costmodel/kernel/kernel_gemm.h"
#include "costmodel/kernel/measured_attention.h"
#include "costmodel/kernel/measured_experts.h"
#include "costmodel/kernel/surface_value.h"

#include <math.h>

// Share of an epilogue's traffic that the main loops of other tiles do not hide: on B200 weight
// gradients of [10240 x 8192] and [57344 x 8192] from 4096 tokens take 0.4 and 0.5 of the time of
// their fp32 reads and writes longer than products that write 16 bits. Those of experts, one by
// one, take all of it longer: 32 of [4096 x 7168] from 1024 tokens 2.96 ms, 2.46 with sums in 16
// bits (MooreThreads/SimuMax, configs/system/b200_bf16_ceperm.json).
static const double EPILOGUE_EXPOSED_FRAC = 0.5;

double sustained_frac(const Pool *pool, bool light) {
    const GpuEfficiency *e = &pool->gpu.efficiency;
    double full_watts = light ? e->light_rate_watts : e->full_rate_watts;
    double exponent = e->power_exponent > 0 ? e->power_exponent : 1.0 / 3;
    return fmin(1, pow(pool->power_watts_per_gpu / full_watts, exponent));
}

static double gemm_sustained_frac(const Pool *pool, int precision) {
    return sustained_frac(pool, precision > PRECISION_BF16);
}

// Share of the SMs' time that the tiles of a product fill: the last wave is part empty.
static double wave_frac(const Gpu *gpu, const Op *op) {
    const GpuEfficiency *e = &gpu->efficiency;
    double tiles =
        op->gemm.groups * ceil(op->gemm.m / e->gemm_tile_m) * ceil(op->gemm.n / e->gemm_tile_n);
    double waves = ceil(tiles / gpu->num_sms);
    return tiles / (gpu->num_sms * waves);
}

static double memory_s(const Gpu *gpu, double bytes) {
    return bytes / (gpu->memory_bandwidth_bytes_per_s * gpu->efficiency.memory_frac);
}

// Tensor cores take rows of 16 bytes at a time: other kernels run where rows do not begin at
// multiples of that (profiler/torch/alignment.py). Products of 8 bits have to be aligned.
static double aligned_frac(const Gpu *gpu, const Op *op) {
    if (op->precision != PRECISION_BF16 && op->precision != PRECISION_FP16) return 1;
    if (op->gemm.aligned == 0 || op->gemm.aligned >= 8) return 1;
    return op->gemm.aligned > 1 ? gpu->shared->unaligned_frac : gpu->shared->odd_frac;
}

static double compact_gemm_s(const Pool *pool, const Op *op) {
    const Gpu *gpu = &pool->gpu;
    const GpuEfficiency *e = &gpu->efficiency;
    double rate = gpu->peak_flops_per_s[op->precision] * e->gemm_max_frac[op->precision] *
                  gemm_sustained_frac(pool, op->precision);
    rate *= op->gemm.k / (op->gemm.k + e->gemm_half_k) * wave_frac(gpu, op) * aligned_frac(gpu, op);
    return op->num_kernels * e->launch_s + fmax(op->flops / rate, memory_s(gpu, op->bytes));
}

// What a product of unaligned rows takes longer: its arithmetic does, not what memory bounds.
static double unaligned_s(const Pool *pool, const Op *op) {
    const Gpu *gpu = &pool->gpu;
    const double frac = aligned_frac(gpu, op);
    if (frac >= 1) return 0;
    double rate = gpu->peak_flops_per_s[op->precision] *
                  gpu->efficiency.gemm_max_frac[op->precision] *
                  gemm_sustained_frac(pool, op->precision);
    return op->flops / rate * (1 / frac - 1);
}

// The measured number format nearest to a product's; NUM_GEMM_DTYPES where none is.
static GemmDtype gemm_dtype(const Op *op) {
    switch (op->precision) {
    case PRECISION_FP16:
    case PRECISION_BF16:
        return GEMM_BFLOAT16;
    case PRECISION_FP8:
        return op->gemm.fp8_recipe == FP8_BLOCK || op->gemm.fp8_recipe == FP8_ROWWISE
                   ? GEMM_FP8_BLOCK
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
    if (!op->gemm.separate)
        return kernel_gemm_product_s(gpu, kernels, dtype, op->gemm.groups * op->gemm.m, op->gemm.n,
                                     op->gemm.k);
    double launch_s = kernels->dtypes[GEMM_BFLOAT16].launch_s;
    double one_s = kernel_gemm_product_s(gpu, kernels, dtype, fmax(1, op->gemm.m), op->gemm.n,
                                         fmax(1, op->gemm.k));
    return launch_s + op->gemm.groups * fmax(0.5 * one_s, one_s - launch_s);
}

// The same shapes come up again and again in a search.
static double products_s(const CalibratedKernels *kernels, GemmDtype dtype, const Op *op) {
    const double inputs[] = {dtype,      op->gemm.separate, op->gemm.groups,
                             op->gemm.m, op->gemm.n,        op->gemm.k};
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
static double gemm_s(const Pool *pool, const Op *op) {
    const CalibratedKernels *kernels = pool->kernels;
    GemmDtype dtype = gemm_dtype(op);
    double product_s = NAN;
    if (kernels && dtype != NUM_GEMM_DTYPES)
        product_s = products_s(kernels, dtype, op) / gemm_sustained_frac(pool, op->precision) +
                    unaligned_s(pool, op);
    if (isnan(product_s)) return compact_gemm_s(pool, op);
    double exposed_frac = op->gemm.separate ? 1 : EPILOGUE_EXPOSED_FRAC;
    double epilogue_s =
        memory_s(&pool->gpu, exposed_frac * op->gemm.epilogue_bytes + op->gemm.after_bytes);
    return fmax(product_s, memory_s(&pool->gpu, op->bytes)) + epilogue_s;
}

double gemm_residual_p90_frac(const Pool *pool, const Op *op) {
    const CalibratedKernels *kernels = pool->kernels;
    GemmDtype dtype = gemm_dtype(op);
    if (!kernels || dtype == NUM_GEMM_DTYPES || !kernels->profile.gemm.dtypes[dtype].present)
        return pool->gpu.efficiency.residual_p90_frac;
    const GemmKernel *kernel = &kernels->profile.gemm.dtypes[dtype];
    double rows = op->gemm.separate ? fmax(1, op->gemm.m) : op->gemm.groups * op->gemm.m;
    double place[] = {log2(rows), log2(op->gemm.n), log2(op->gemm.k)};
    double octaves = surface_outside_octaves(&kernel->surface, place);
    return kernel->residual_p90_frac * (1 + octaves);
}

// Kernels of cuDNN refuse heads that are no multiple of 8; FlashAttention 2 fills them up.
static int attention_generation(const Op *op) {
    const int generation = op->attention.generation;
    return generation > 2 && fmod(op->attention.head_dim, 8) > 0 ? 2 : generation;
}

double attention_kernel_head_dim(int generation, double head_dim) {
    static const double FLASH_2[] = {32, 64, 96, 128, 192, 256}, CUDNN[] = {64, 128, 192, 256};
    const double *sizes = generation <= 2 ? FLASH_2 : CUDNN;
    const int num_sizes = generation <= 2 ? 6 : 4;
    for (int i = 0; i < num_sizes; i++)
        if (head_dim <= sizes[i]) return sizes[i];
    return head_dim;
}

static AttentionShare newest_attention(const GpuEfficiency *e, bool backward) {
    AttentionShare law = {.frac = e->attention_forward_frac,
                          .half_tokens = e->attention_half_tokens,
                          .head64_frac = e->attention_head64_frac};
    if (backward) {
        law.frac = e->attention_backward_frac;
        if (e->attention_backward_head64_frac > 0)
            law.head64_frac = e->attention_backward_head64_frac;
    } else if (e->attention_forward_half_tokens > 0) {
        law.half_tokens = e->attention_forward_half_tokens;
    }
    return law;
}

// The rate of the kernel: `frac` of the bf16 peak with heads of 128 and any length.
static AttentionShare attention_law(const Gpu *gpu, const Op *op) {
    AttentionShare law = newest_attention(&gpu->efficiency, op->backward);
    const GpuArchitecture *shared = gpu->shared;
    for (int i = 0; i < shared->num_older; i++) {
        const OlderAttention *older = &shared->older[i];
        if (older->generation != attention_generation(op)) continue;
        const AttentionShare *share = op->backward ? &older->backward : &older->forward;
        law.frac *= share->frac;
        if (share->half_tokens > 0) law.half_tokens = share->half_tokens;
        if (share->head64_frac > 0) law.head64_frac = share->head64_frac;
    }
    return law;
}

// Rate by head size over that of 128. Smaller heads do less work per softmax exponential. The
// backward of larger ones has less room for its tiles. A kernel exists for some sizes alone and
// takes for those between what it takes for the next.
static double head_frac(const Gpu *gpu, const Op *op, double head64_frac) {
    const double own = op->attention.head_dim;
    const double size = attention_kernel_head_dim(attention_generation(op), own);
    if (size < 128) return own / size * (1 - (1 - head64_frac) * (128 - size) / 64);
    if (!op->backward) return own / size;
    return own / size * (1 - (1 - gpu->shared->backward_192_frac) * fmin(1, (size - 128) / 64));
}

// Of the bf16 peak.
static double attention_frac(const Gpu *gpu, const Op *op) {
    const AttentionShare law = attention_law(gpu, op);
    const double tokens = attention_op_tokens(&op->attention);
    return law.frac * tokens / (tokens + law.half_tokens) * head_frac(gpu, op, law.head64_frac);
}

// Attention runs in 16 bits where the products run in 16 or fewer.
static double attention_s(const Pool *pool, const Op *op) {
    const double measured_s = measured_attention_s(pool->kernels, op);
    if (!isnan(measured_s)) return measured_s / sustained_frac(pool, true);
    const double launches_s = op->num_kernels * pool->gpu.efficiency.launch_s;
    const Gpu *gpu = &pool->gpu;
    int precision = gpu->peak_flops_per_s[PRECISION_BF16] > 0 ? PRECISION_BF16 : PRECISION_FP16;
    if (op->precision <= PRECISION_TF32) precision = op->precision;
    double rate =
        gpu->peak_flops_per_s[precision] * sustained_frac(pool, true) * attention_frac(gpu, op);
    return launches_s + fmax(op->flops / rate, memory_s(gpu, op->bytes));
}

// Kernels of the gated delta rule of flash-linear-attention 0.5.1 on H200 (QwenLM/FlashQLA,
// benchmark/benchmark_results_H200.txt, heads of 128, chunks of 64): their time grows with chunks x
// heads, and what carries the state takes no less than so long a chunk, one after the other. The
// table's forward is met within 10 % from 4,096 tokens on, its backward within 10 % with one
// sequence (tests/workload/test_scan.c). On GB200 (benchmark_results_GB200.txt) a multiprocessor
// does about as much, whatever its peak; on H20 (MoonshotAI/FlashKDA, BENCHMARK_H20.md: 2.1 ms with
// 64 heads, 3.2 with 96) 0.3 of a small peak is the bound.
typedef struct {
    double chunk_flops_per_s, state_flops_per_s; // of a multiprocessor
    double state_s;                              // of a chunk
} ScanLaw;

static const ScanLaw SCAN_LAWS[] = {
    {.chunk_flops_per_s = 0.69e12, .state_flops_per_s = 1.6e12, .state_s = 1.1e-6},
    {.chunk_flops_per_s = 0.745e12, .state_flops_per_s = 0.62e12, .state_s = 3.57e-6}, // backward
};
static const double SCAN_PEAK_FRAC = 0.3;

static double scan_s(const Pool *pool, const Op *op) {
    const Gpu *gpu = &pool->gpu;
    const ScanLaw *law = &SCAN_LAWS[op->backward];
    const int precision =
        gpu->peak_flops_per_s[PRECISION_BF16] > 0 ? PRECISION_BF16 : PRECISION_FP16;
    const double most = SCAN_PEAK_FRAC * gpu->peak_flops_per_s[precision];
    const double state = op->scan.state_flops, chunks = op->flops - state;
    const double state_s = fmax(state / fmin(law->state_flops_per_s * gpu->num_sms, most),
                                op->scan.num_chunks * law->state_s);
    const double chunks_s = chunks / fmin(law->chunk_flops_per_s * gpu->num_sms, most);
    const double launches_s = op->num_kernels * gpu->efficiency.launch_s;
    return launches_s + fmax(chunks_s + state_s, memory_s(gpu, op->bytes));
}

// One of the two grouped products of the experts that have tokens.
static double experts_product_s(const Pool *pool, const Op *op, const MoeLoad *load, double n,
                                double k) {
    const ExpertsOp *experts = &op->experts;
    const double products = experts->gated ? 3 : 2;
    const double held = (double)experts->num_experts / experts->num_ranks;
    const double weights_frac = n * k / (products * experts->hidden_size * experts->inter_size);
    const Op product = {.kind = OP_GEMM,
                        .gemm.groups = load->num_active,
                        .gemm.m = load->num_rows / load->num_active,
                        .gemm.n = n,
                        .gemm.k = k,
                        .gemm.aligned = 8,
                        .gemm.separate = true,
                        .gemm.fp8_recipe = op->experts.fp8_recipe,
                        .precision = op->precision,
                        .num_kernels = 1,
                        .flops = 2 * load->num_rows * n * k,
                        .bytes = (op->bytes - experts->pass_bytes) * weights_frac *
                                 load->num_active / held};
    return gemm_s(pool, &product);
}

static double experts_s(const Pool *pool, const Op *op) {
    const double measured_s = measured_experts_s(pool->kernels, op);
    if (!isnan(measured_s)) return measured_s / gemm_sustained_frac(pool, op->precision);
    const ExpertsOp *experts = &op->experts;
    const MoeRouting routing = experts_routing(experts);
    const MoeLoad load = moe_load(&routing);
    const double up = experts->inter_size * (experts->gated ? 2 : 1);
    return (op->num_kernels - 2) * pool->gpu.efficiency.launch_s +
           memory_s(&pool->gpu, experts->pass_bytes) +
           experts_product_s(pool, op, &load, up, experts->hidden_size) +
           experts_product_s(pool, op, &load, experts->hidden_size, experts->inter_size);
}

double op_compute_s(const Pool *pool, const Op *op) {
    if (pool->gpu.core) return core_op_s(&pool->gpu, op);
    double launches_s = op->num_kernels * pool->gpu.efficiency.launch_s;
    switch (op->kind) {
    case OP_GEMM:
        return gemm_s(pool, op);
    case OP_ATTENTION:
        return attention_s(pool, op);
    case OP_SCAN:
        return scan_s(pool, op);
    case OP_EXPERTS:
        return experts_s(pool, op);
    case OP_MEMORY:
        return launches_s + memory_s(&pool->gpu, op->bytes);
    case OP_COLLECTIVE:
        break;
    }
    return 0;
}
