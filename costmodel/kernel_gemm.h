// costmodel/kernel_gemm.h - seconds of one calibrated matrix product (forward, out[m][n], 2mnk
// flops).
#pragma once

#include "config/gpu.h"
#include "config/kernel_gemm.h"

// dtype's peak on this GPU; 0 where it has no such units.
double gemm_peak_flops_per_s(const Gpu *gpu, GemmDtype dtype);

// Seconds on the device; NAN where the profile or the GPU lacks the dtype. m, n, k >= 1.
double kernel_gemm_s(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype, double m,
                     double n, double k);
