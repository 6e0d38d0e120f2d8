#include "config/kernel_gemm.h"

const char *const GEMM_DTYPE_NAMES[NUM_GEMM_DTYPES + 1] = {"bfloat16", "fp8", "fp8_block", "nvfp4",
                                                           NULL};

#define PART(key, low, high)                                                                       \
    { #key, JSON_FIELD_DOUBLE, offsetof(GemmKernel, key), low, high, NULL, true }

static const JsonField KERNEL_FIELDS[] = {
    PART(launch_s, 0, 1e-2),
    PART(max_frac, 0.001, 1),
    PART(half_k, 0, 1e5),
    PART(tail_frac, 0, 1),
    PART(split_bytes, 0, 1e4),
    PART(memory_frac, 0.001, 1),
    PART(loss_frac, 0, 0.95),
    PART(half_s, 0, 10),
    PART(overlap_power, 1, 100),
    PART(quantize_bytes, 0, 1e3),
    PART(residual_median_frac, 0, 10),
    PART(residual_p90_frac, 0, 10),
    {"surface", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
};

static Status kernel_read(const JsonNode *node, Arena *arena, GemmKernel *out) {
    static const char *const AXES[] = {"m", "n", "k", NULL};
    TRY(json_read_object(node, KERNEL_FIELDS, sizeof KERNEL_FIELDS / sizeof *KERNEL_FIELDS, arena,
                         out));
    JsonNode surface = json_get(node, "surface");
    TRY(surface_read(&surface, AXES, arena, &out->surface));
    out->present = true;
    return status_ok();
}

Status gemm_kernels_read(const JsonNode *node, Arena *arena, GemmKernels *out) {
    JsonField fields[NUM_GEMM_DTYPES];
    for (int d = 0; d < NUM_GEMM_DTYPES; d++)
        fields[d] = (JsonField){GEMM_DTYPE_NAMES[d], JSON_FIELD_OTHER, 0, 0, 0, NULL, false};
    *out = (GemmKernels){0};
    TRY(json_read_object(node, fields, NUM_GEMM_DTYPES, arena, out));
    for (int d = 0; d < NUM_GEMM_DTYPES; d++) {
        JsonNode kernel = json_get(node, GEMM_DTYPE_NAMES[d]);
        if (json_is_present(&kernel)) TRY(kernel_read(&kernel, arena, &out->dtypes[d]));
    }
    return status_ok();
}
