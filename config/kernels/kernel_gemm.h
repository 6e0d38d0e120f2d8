// config/kernels/kernel_gemm.h - calibrated matrix products: section `gemm` of a kernel profile.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/kernels/surface.h"

#include <stdbool.h>

// Number formats of measured GEMMs: operands; the output is 16 bits.
typedef enum {
    GEMM_BFLOAT16,
    GEMM_FP8,       // one scale per tensor
    GEMM_FP8_BLOCK, // a scale per 128 of an activation row and per 128 x 128 of the weights
    GEMM_NVFP4,
    NUM_GEMM_DTYPES
} GemmDtype;

extern const char *const GEMM_DTYPE_NAMES[NUM_GEMM_DTYPES + 1]; // ends with NULL

// Output tiles a library chooses from; the two largest share max_frac.
enum { NUM_GEMM_TILES = 5 };

// One number format; the formula is in costmodel/kernel/kernel_gemm.h.
typedef struct {
    bool present;
    double launch_s; // smallest kernel, with the activation's quantization where there is one
    double max_frac; // of the dense peak: main loop of the large tiles
    double tile_64x64_frac; // rate of smaller tiles over max_frac
    double tile_64x128_frac;
    double tile_128x128_frac;
    double half_k;               // extra k of a tile's main loop: prologue and epilogue
    double latency_s;            // of one k of the main loop of a 64 x 64 tile, however few tiles
    double tail_frac;            // of a part-empty last wave that is lost
    double split_s;              // to join the parts where k is split
    double split_from_k;         // k is split only from here on
    double split_from_elements;  // and only for weights of so many elements (n k)
    double split_bytes;          // per output element and part
    double memory_frac;          // of memory bandwidth
    double l2_speedup;           // of what the L2 cache keeps from call to call, over memory
    double l2_frac;              // of the L2 cache: bytes touched at which half are kept
    double l2_power;             // how sharply that ends
    double loss_frac;            // of the rate, lost to the power limit in long kernels
    double half_s;               // time at peak rate at which half of it is lost
    double overlap_power;        // p-norm that joins compute, memory and latency
    double quantize_bytes;       // per m x k element: the activation's own quantization
    double residual_median_frac; // |error| on left-out (n, k), median
    double residual_p90_frac;    // and 90th percentile
    // Residual grids; their logs add up. (m, n) and (m, k) are fine in m: waves and kernel choice.
    Surface surface, surface_mn, surface_mk;
} GemmKernel;

typedef struct {
    GemmKernel dtypes[NUM_GEMM_DTYPES];
} GemmKernels;

Status gemm_kernels_read(const JsonNode *node, Arena *arena, GemmKernels *out);

// One number format of the section again, numbers with 4 significant digits.
cJSON *gemm_kernel_to_json(const GemmKernel *kernel);
