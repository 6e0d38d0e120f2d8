// config/kernel_gemm.h - calibrated matrix products: section `gemm` of a kernel profile.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/surface.h"

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

// One number format; the formula is in costmodel/kernel_gemm.h.
typedef struct {
    bool present;
    double launch_s;             // smallest kernel
    double max_frac;             // of the dense peak
    double half_k;               // extra k of a tile's main loop: prologue and epilogue
    double tail_frac;            // of a part-empty last wave that is lost
    double split_bytes;          // per output element and split of k
    double memory_frac;          // of memory bandwidth
    double loss_frac;            // of the rate, lost to the power limit in long kernels
    double half_s;               // duration at which half of it is lost
    double overlap_power;        // p-norm that joins compute and memory time
    double quantize_bytes;       // per m x k element: the activation's own quantization
    double residual_median_frac; // |error| on left-out (n, k), median
    double residual_p90_frac;    // and 90th percentile
    Surface surface;             // over m, n, k
} GemmKernel;

typedef struct {
    GemmKernel dtypes[NUM_GEMM_DTYPES];
} GemmKernels;

Status gemm_kernels_read(const JsonNode *node, Arena *arena, GemmKernels *out);
