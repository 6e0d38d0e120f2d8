// costmodel/kernel/kernel_gemm.h - seconds of one calibrated matrix product: out[m][n], 2mnk flops.
//
// Model:  the library takes the fastest of five tiles (tm x tn) and of splits s of k (1, 2, 3, 4, 6
//         .. 16, each part at least 256 long, k >= split_from_k and n k >= split_from_elements):
//           tiles   = ceil(m/tm) ceil(n/tn),  x = s tiles / num_sms
//           compute = (x + tail (ceil(x) - x)) 2 tm tn (k/s + half_k) num_sms / (rate tile_frac)
//           latency = ceil(x) latency_s (tm tn / 64^2)^(1/4) (k/s + half_k)
//           memory  = bytes of both operands and the output / (bandwidth memory_frac), faster by
//                     l2_speedup for the kept part 1 / (1 + (touched / (l2_frac
//                     l2_bytes))^l2_power)
//           touched = bytes + (c - 1) bytes of the weights: the benchmark calls c copies of the
//                     weights in turn, as many as fill the L2 cache, at most 5
//           t       = (compute^p + latency^p + memory^p)^(1/p), p = overlap_power
//                   + split_s + split_bytes s m n / (bandwidth memory_frac)       where s > 1
//           rate    = peak max_frac (1 - loss_frac t0 / (t0 + half_s)), t0 = 2mnk / peak
//         and the seconds are launch_s + t + quantize_bytes m k / (bandwidth memory_frac), times
//         exp of three residual grids: over m, n, k, and, fine in m, over m, n and m, k. A long
//         product runs at a lower clock (power limit).
// Source: NVIDIA, "Matrix Multiplication Background User's Guide" (tiles, waves); Osama et al.,
//         "Stream-K", PPoPP 2023, arXiv:2301.03598 (splits); the form of the rest is ours: of those
//         tried it left the smallest errors on left-out (n, k), docs/calibration.md.
#pragma once

#include "config/kernels/kernel_gemm.h"
#include "config/machine/gpu.h"

// dtype's peak on this GPU; 0 where it has no such units.
double gemm_peak_flops_per_s(const Gpu *gpu, GemmDtype dtype);

// Bytes of both operands and the output, each once.
double kernel_gemm_bytes(GemmDtype dtype, double m, double n, double k);

// Seconds without the residual grid. The GPU has the dtype.
double kernel_gemm_formula_s(const Gpu *gpu, const GemmKernel *kernel, GemmDtype dtype, double m,
                             double n, double k);

// Log of measured over formula.
double kernel_gemm_log_ratio(const GemmKernel *kernel, double m, double n, double k);

// Seconds within a step, where kernel_gemm_s is of the benchmark. Within a step the input is
// quantized already, by an operator of its own. Other layers have read their weights since, so that
// none of these are in the L2 cache.
double kernel_gemm_product_s(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype, double m,
                             double n, double k);

// Seconds on the device; NAN where the profile or the GPU lacks the dtype. m, n, k >= 1.
double kernel_gemm_s(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype, double m,
                     double n, double k);
