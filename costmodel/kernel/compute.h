// costmodel/kernel/compute.h - seconds of one operator on one GPU.
//
// Calibrated (the GPU or its nearest relative has measured kernels, config/kernels/kernels.h):
//   gemm_s      = kernel_gemm_product_s / sustained_frac
//                 + flops / (peak max_frac sustained_frac) (1 / f - 1), f unaligned_frac or
//                 odd_frac
//                   where rows are no multiple of 16 bytes, else 1
//                 + (part of epilogue_bytes + after_bytes) / (bandwidth memory_frac)
// and for formats that were not measured (tf32, fp32, fp64), or without measured kernels, compact:
//   gemm_s      = launch + max(flops / rate, bytes / (bandwidth memory_frac))
//     rate      = peak max_frac sustained_frac k / (k + half_k) wave
//     wave      = tiles / (num_sms ceil(tiles / num_sms)), times unaligned_frac or odd_frac
//     tiles     = groups ceil(m / tile_m) ceil(n / tile_n)
//   attention_s = launches + max(flops / rate, bytes / (bandwidth memory_frac))
//     rate      = peak frac sustained_frac tokens / (tokens + half_tokens) head
//     head      = own size / size of the kernel, times the line through 64 and 128 (forward) or
//                 128 and 192 (backward) at the size of the kernel
//     of a pass that does not train, where the measured kernels cover it:
//     measured_attention_s / sustained_frac (costmodel/kernel/measured_attention.h)
//   experts_s   (one operator of a pass that does not train)
//     measured_experts_s / sustained_frac (costmodel/kernel/measured_experts.h), else launches +
//     bytes beside the products / (bandwidth memory_frac) + gemm_s of its two grouped products
//   memory_s    = launches + bytes / (bandwidth memory_frac)
//   sustained_frac = min(1, (power_watts_per_gpu / W)^e), W full_rate_watts or light_rate_watts, e
//     power_exponent: in a long step the power limit holds the clock below that of short tests
// Power goes with the clock times the square of the voltage: e is 1/3 where the voltage falls with
// the clock, 1 where it has reached its floor. Boards of one power tell nothing of e: then it is
// 1/3. W is fitted to published steps of clusters and holds whatever else slows their products. On
// single H100 and H200 long runs of products reach 0.81 to 0.97 of short tests, where the fit has
// 0.75, and products of whole steps all of it (profiler/measured/README.md). One core of a CPU has
// laws of its own: costmodel/kernel/core_op.h.
//
// Source: Sizes of attention's kernels: of FlashAttention 2 those that it is compiled for
//         (Dao-AILab/flash-attention, csrc/flash_attn/src/static_switch.h); of cuDNN where times
//         measured on an H200 rise (profiler/measured/README.md). Williams, Waterman, Patterson,
//         "Roofline", CACM 52(4), 2009; wave quantization: NVIDIA, "Matrix Multiplication
//         Background User's Guide". Constants: config/machine/gpu.h.
#pragma once

#include "config/cluster/pool.h"
#include "workload/pass/operator.h"

// Rate of a whole step's products and attention over that of short tests.
//   light  products of 8 bits and less, and attention
double sustained_frac(const Pool *pool, bool light);

// The 90th percentile of a product's |error|. It is that of the measured kernels of its format on
// left-out shapes, times 1 + the octaves by which it lies outside the measured ones. Where the
// compact formula prices the product, it is that formula's.
double gemm_residual_p90_frac(const Pool *pool, const Op *op);

// The size of heads that a kernel of a generation (StackLaunch.attention_generation) computes for
// heads of this size: the next it exists for.
double attention_kernel_head_dim(int generation, double head_dim);

// Seconds on the device of a GEMM, attention or memory-bound operator; without host effects.
double op_compute_s(const Pool *pool, const Op *op);
