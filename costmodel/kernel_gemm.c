#include "costmodel/kernel_gemm.h"

#include "costmodel/surface_value.h"

#include <math.h>

double gemm_peak_flops_per_s(const Gpu *gpu, GemmDtype dtype) {
    static const Precision PRECISIONS[NUM_GEMM_DTYPES] = {PRECISION_BF16, PRECISION_FP8,
                                                          PRECISION_FP8, PRECISION_NVFP4};
    return gpu->peak_flops_per_s[PRECISIONS[dtype]];
}

double kernel_gemm_s(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype, double m,
                     double n, double k) {
    const GemmKernel *kernel = &kernels->dtypes[dtype];
    double peak = gemm_peak_flops_per_s(gpu, dtype);
    if (!kernel->present || peak <= 0) return NAN;
    double place[] = {log2(m), log2(n), log2(k)};
    double rate = peak * kernel->max_frac;
    return (kernel->launch_s + 2 * m * n * k / rate) *
           exp(surface_log_ratio(&kernel->surface, place));
}
