// costmodel/kernel/kernel_moe.h - seconds of one rank of a calibrated expert layer (forward).
//
// Model:  fixed and per-expert costs + passes over tokens, rows and inner activations + the two
//         grouped products, times a residual surface.
//   fixed    = launch + pair num_tokens topk + expert num_experts + local_expert num_local
//   passes   = (token_passes num_tokens h + 2 row_passes rows h + 2 inner_passes rows f) 2 / bw
//   product  = p-norm of compute and memory, p = overlap_power
//   compute  = least over tiles of w rows of waves(tiles) 2 (w + half_rows) 128 (k + half_k) /
//   rate,
//              rate = peak max_frac (256 + half_rows) / 256 / num_sms
//   waves    = tiles / num_sms, at least 1, tail_frac of the way to the next whole number
//   memory   = (weights of active experts + rows (k + n)) / (bw memory_frac); where the layer's
//              weights and activations fit into cache_frac of the L2 cache the weights are read
//              cache_speedup times as fast, since the benchmark repeats one layer:
//              hit = 1 / (1 + (bytes / (l2_bytes cache_frac))^cache_power)
// Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; wave and tile quantization:
//         NVIDIA, "Matrix Multiplication Background User's Guide"; grouped products: Gale et al.,
//         "MegaBlocks", arXiv:2211.15841. Coefficients: fitted, config/kernels/kernel_moe.h.
#pragma once

#include "config/kernels/kernel_moe.h"
#include "config/machine/gpu.h"
#include "costmodel/kernel/moe_load.h"

// Columns of a tile of the products.
#define MOE_TILE_COLUMNS 128.0

// One rank's share of a layer.
typedef struct {
    double hidden_size;
    double inter_size; // of one expert on this rank, after its split
    MoeRouting routing;
} MoeShape;

// dtype's peak on this GPU; 0 where it has no such units.
double moe_peak_flops_per_s(const Gpu *gpu, MoeDtype dtype);

// Seconds of the formula without the surface; load is moe_load(&shape->routing).
double kernel_moe_formula_s(const Gpu *gpu, const MoeKernel *kernel, const MoeShape *shape,
                            const MoeLoad *load);

// Where the shape lies on the kernel's surface, log2.
void kernel_moe_place(const MoeShape *shape, const MoeLoad *load, double place[MOE_NUM_AXES]);

// Seconds of formula and surface, on a GPU that has the number format.
double kernel_moe_load_s(const Gpu *gpu, const MoeKernel *kernel, const MoeShape *shape,
                         const MoeLoad *load);

// Seconds on the device; NAN where the GPU lacks the number format.
double kernel_moe_s(const Gpu *gpu, const MoeKernel *kernel, const MoeShape *shape);

// No implementation is faster: products at the peak, and nothing else.
double kernel_moe_least_s(const Gpu *gpu, const MoeKernel *kernel, const MoeShape *shape,
                          const MoeLoad *load);
