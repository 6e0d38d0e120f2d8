// config/machine/gpu.h - what one GPU, or one core of a CPU, can do: hw-profiles/gpus/NAME.json,
// checked.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/machine/architecture.h"
#include "config/machine/core.h"

#include <stdbool.h>

// Number formats of arithmetic, in the order of the contract.
typedef enum {
    PRECISION_FP64,
    PRECISION_FP32,
    PRECISION_TF32,
    PRECISION_FP16,
    PRECISION_BF16,
    PRECISION_FP8,
    PRECISION_MXFP8,
    PRECISION_NVFP4,
    NUM_PRECISIONS
} Precision;

extern const char *const PRECISION_NAMES[NUM_PRECISIONS + 1]; // ends with NULL

// Achieved fractions and constants of the GPU's kernels; see costmodel/kernel/compute.h for the
// formulas.
typedef struct {
    double gemm_max_frac[NUM_PRECISIONS]; // of the dense peak, for huge GEMMs; 0 where unsupported
    double gemm_tile_m, gemm_tile_n;      // output tile of one SM, for wave quantization
    double gemm_half_k;                   // k at which the main loop reaches half its rate
    double full_rate_watts;         // power that 16-bit products would draw in a long step at the
                                    // rate of short tests; beyond the board's the clock falls
    double light_rate_watts;        // the same of narrower products and of attention
    double power_exponent;          // the clock goes with that power of the board's watts; 0: 1/3
    double memory_frac;             // of memory bandwidth, large elementwise kernels
    double launch_s;                // smallest kernel, launched back to back
    double attention_forward_frac;  // of the bf16 dense peak; long causal, head size 128
    double attention_backward_frac; // the same; backward counted as 2.5 x forward FLOPs
    double attention_head64_frac;   // rate with head size 64 over that with 128
    double attention_half_tokens;   // sequence length at which half of it is reached
    double attention_forward_half_tokens;  // the same of the forward; 0: attention_half_tokens
    double attention_backward_head64_frac; // that of the backward; 0: attention_head64_frac
    double residual_median_frac;           // |log error| of the fit, median
    double residual_p90_frac;              // and 90th percentile
} GpuEfficiency;

typedef struct {
    const char *name;
    const char *title;
    const char *vendor;
    const char *architecture;
    const GpuArchitecture *shared; // by all GPUs of it; of one without a file those of "other"
    const char *file;              // it was read from, as named in messages
    const char *kernels_of; // whose measured kernels it takes: a bundled GPU's (itself, or its
                            // nearest relative), or the path of a kernel profile, relative to
                            // file; NULL: none
    int num_sms;            // SMs or compute units
    double memory_bytes;    // installed
    double memory_available_bytes; // what the driver gives to one process in all
    double memory_bandwidth_bytes_per_s;
    double l2_bytes;
    double power_watts, idle_power_watts;
    double price_usd_per_gpu_hour;
    const char *price_source; // list and date, or how it was estimated; NULL: the file has none
    double peak_flops_per_s[NUM_PRECISIONS]; // dense; 0 where the GPU has no such units
    GpuEfficiency efficiency;
    const CoreLaws *core; // [NUM_PRECISIONS], of a core of a CPU; NULL: a GPU
} Gpu;

// Reads the value of a `gpu` key: a profile's name, or a path (relative to the file of value).
// Refuses numbers that contradict each other, and in a file of the user's those above the datasheet
// of its name (config/machine/gpu_limits.h).
Status gpu_load(const JsonNode *value, Arena *arena, Gpu *out);
Status gpu_load_named(const char *name, Arena *arena, Gpu *out);

// Reads the profile of a name or path that no document states (relative to the current folder).
Status gpu_open(const char *name, Arena *arena, Gpu *out);
Status gpu_list(Arena *arena, Gpu **out, int *num_gpus);
