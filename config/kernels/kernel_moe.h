// config/kernels/kernel_moe.h - calibrated expert layers (mixture of experts): section `moe` of a
// kernel profile.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/kernels/surface.h"
#include "config/machine/gpu.h"

#include <stdbool.h>

// Number formats of measured expert layers: operands of the products; activations enter in 16 bits.
typedef enum { MOE_BFLOAT16, MOE_FP8, MOE_FP8_BLOCK, MOE_NVFP4, NUM_MOE_DTYPES } MoeDtype;

extern const char *const MOE_DTYPE_NAMES[NUM_MOE_DTYPES + 1]; // ends with NULL

enum { MOE_MAX_KERNELS = 16, MOE_NUM_AXES = 3 };

// One implementation in one number format; the formula is in costmodel/kernel/kernel_moe.h.
typedef struct {
    const char *kernel_source;
    int moe_dtype;               // MoeDtype
    bool gated;                  // two up-projections
    bool group_limited;          // routes as DeepSeek-V3: 4 of 8 groups of experts a token
    double launch_s;             // fixed: the layer's kernels
    double pair_s;               // per token and chosen expert of the whole layer: top-k, sorting
    double expert_s;             // per expert of the layer
    double local_expert_s;       // per expert of the rank
    double token_passes;         // over num_tokens x hidden_size in 16 bits
    double row_passes;           // over routed rows x hidden_size, read and written in 16 bits
    double inner_passes;         // the same of routed rows x inner size
    double max_frac;             // of the dense peak, tiles of 256 rows, long k
    double half_rows;            // a tile costs as its rows and so many more
    double half_k;               // and as its k and so much more
    double tail_frac;            // of a part-empty last wave that is lost
    double memory_frac;          // of memory bandwidth, weights and activations
    double cache_frac;           // of the L2 cache; a layer of that size is half found in it
    double cache_power;          // how sharply that ends
    double cache_speedup;        // of weights found in it
    double overlap_power;        // p-norm that joins compute and memory time
    double residual_median_frac; // |error| on left-out shapes, median
    double residual_p90_frac;    // and 90th percentile
    Surface surface;             // over rows_per_expert, active_experts, inter_size
} MoeKernel;

typedef struct {
    int num_kernels;
    const MoeKernel *kernels; // [num_kernels]
} MoeKernels;

extern const char *const MOE_SURFACE_AXES[MOE_NUM_AXES + 1]; // ends with NULL

Status moe_kernels_read(const JsonNode *node, Arena *arena, MoeKernels *out);

// The section again.
cJSON *moe_kernels_to_json(const MoeKernels *kernels);

// The kernel of a number format and source, or NULL.
const MoeKernel *moe_kernel_find(const MoeKernels *kernels, int moe_dtype,
                                 const char *kernel_source);

// The index of a number format's name, or -1.
int moe_dtype_find(const char *name);
