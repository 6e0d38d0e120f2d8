// costmodel/compute.h - seconds of one operator on one GPU.
//
// Model:  roofline with a size-dependent efficiency; docs/models.md, section 2.
//   gemm_s      = launch + max(flops / rate, bytes / (bandwidth memory_frac))
//     rate      = peak max_frac sustained_frac k / (k + half_k) wave
//     wave      = tiles / (num_sms ceil(tiles / num_sms))
//     tiles     = groups ceil(m / tile_m) ceil(n / tile_n)
//   attention_s = launches + max(flops / rate, bytes / (bandwidth memory_frac))
//     rate      = peak frac sustained_frac tokens / (tokens + half_tokens)
//   memory_s    = launches + bytes / (bandwidth memory_frac)
//   sustained_frac: in a long step the clock is lower than in short tests.
// Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; wave quantization: NVIDIA,
//         "Matrix Multiplication Background User's Guide". Constants: config/gpu.h.
#pragma once

#include "config/gpu.h"
#include "workload/operator.h"

// Seconds on the device of a GEMM, attention or memory-bound operator; without host effects.
double op_compute_s(const Gpu *gpu, const Op *op);
