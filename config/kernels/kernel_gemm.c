#include "config/kernels/kernel_gemm.h"

#include "config/machine/profile.h"

#include <stdio.h>

const char *const GEMM_DTYPE_NAMES[NUM_GEMM_DTYPES + 1] = {"bfloat16", "fp8", "fp8_block", "nvfp4",
                                                           NULL};

#define PART(key, low, high)                                                                       \
    { #key, JSON_FIELD_DOUBLE, offsetof(GemmKernel, key), low, high, NULL, true }

static const JsonField KERNEL_FIELDS[] = {
    PART(launch_s, 0, 1e-2),
    PART(max_frac, 0.001, 1),
    PART(tile_64x64_frac, 0.001, 2),
    PART(tile_64x128_frac, 0.001, 2),
    PART(tile_128x128_frac, 0.001, 2),
    PART(half_k, 0, 1e5),
    PART(latency_s, 0, 1e-5),
    PART(tail_frac, 0, 1),
    PART(split_s, 0, 1e-2),
    PART(split_from_k, 0, 1e6),
    PART(split_from_elements, 0, 1e12),
    PART(split_bytes, 0, 1e4),
    PART(memory_frac, 0.001, 1),
    PART(l2_speedup, 1, 100),
    PART(l2_frac, 0.001, 10),
    PART(l2_power, 0.1, 1000),
    PART(loss_frac, 0, 0.95),
    PART(half_s, 0, 10),
    PART(overlap_power, 1, 100),
    PART(quantize_bytes, 0, 1e3),
    PART(residual_median_frac, 0, 10),
    PART(residual_p90_frac, 0, 10),
    {"surface", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    {"surface_mn", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    {"surface_mk", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
};

enum { NUM_KERNEL_FIELDS = sizeof KERNEL_FIELDS / sizeof *KERNEL_FIELDS };

// No tile computes faster than the peak.
static Status kernel_check(const JsonNode *node, const GemmKernel *kernel) {
    const double fracs[] = {kernel->tile_64x64_frac, kernel->tile_64x128_frac,
                            kernel->tile_128x128_frac};
    static const char *const KEYS[] = {"tile_64x64_frac", "tile_64x128_frac", "tile_128x128_frac"};
    for (int i = 0; i < 3; i++) {
        JsonNode frac = json_get(node, KEYS[i]);
        if (fracs[i] * kernel->max_frac > 1.0005)
            return json_error(&frac, "%.4g times max_frac %.4g is beyond the peak", fracs[i],
                              kernel->max_frac);
    }
    return status_ok();
}

static Status kernel_read(const JsonNode *node, Arena *arena, GemmKernel *out) {
    static const char *const MNK[] = {"m", "n", "k", NULL}, *const MN[] = {"m", "n", NULL},
                             *const MK[] = {"m", "k", NULL};
    TRY(json_read_object(node, KERNEL_FIELDS, NUM_KERNEL_FIELDS, arena, out));
    TRY(kernel_check(node, out));
    TRY(residuals_check(node, out->residual_median_frac, out->residual_p90_frac));
    JsonNode mnk = json_get(node, "surface");
    JsonNode mn = json_get(node, "surface_mn"), mk = json_get(node, "surface_mk");
    TRY(surface_read(&mnk, MNK, arena, &out->surface));
    TRY(surface_read(&mn, MN, arena, &out->surface_mn));
    TRY(surface_read(&mk, MK, arena, &out->surface_mk));
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

cJSON *gemm_kernel_to_json(const GemmKernel *kernel) {
    cJSON *object = cJSON_CreateObject();
    for (int i = 0; i < NUM_KERNEL_FIELDS; i++) {
        const JsonField *field = &KERNEL_FIELDS[i];
        if (field->kind != JSON_FIELD_DOUBLE) continue;
        char text[32];
        snprintf(text, sizeof text, "%.4g",
                 *(const double *)(const void *)((const char *)kernel + field->offset));
        cJSON_AddRawToObject(object, field->key, text);
    }
    cJSON_AddItemToObject(object, "surface", surface_to_json(&kernel->surface));
    cJSON_AddItemToObject(object, "surface_mn", surface_to_json(&kernel->surface_mn));
    cJSON_AddItemToObject(object, "surface_mk", surface_to_json(&kernel->surface_mk));
    return object;
}
