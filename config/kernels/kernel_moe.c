#include "config/kernels/kernel_moe.h"

#include "config/machine/profile.h"

#include <string.h>

const char *const MOE_DTYPE_NAMES[NUM_MOE_DTYPES + 1] = {"bfloat16", "fp8", "fp8_block", "nvfp4",
                                                         NULL};
const char *const MOE_SURFACE_AXES[MOE_NUM_AXES + 1] = {"rows_per_expert", "active_experts",
                                                        "inter_size", NULL};

#define PART(key, low, high)                                                                       \
    { #key, JSON_FIELD_DOUBLE, offsetof(MoeKernel, key), low, high, NULL, true }

static const JsonField KERNEL_FIELDS[] = {
    {"kernel_source", JSON_FIELD_STRING, offsetof(MoeKernel, kernel_source), 0, 0, NULL, true},
    {"moe_dtype", JSON_FIELD_NAME, offsetof(MoeKernel, moe_dtype), 0, 0, MOE_DTYPE_NAMES, true},
    {"gated", JSON_FIELD_BOOL, offsetof(MoeKernel, gated), 0, 0, NULL, true},
    {"group_limited", JSON_FIELD_BOOL, offsetof(MoeKernel, group_limited), 0, 0, NULL, true},
    PART(launch_s, 0, 1e-2),
    PART(pair_s, 0, 1e-6),
    PART(expert_s, 0, 1e-5),
    PART(local_expert_s, 0, 1e-5),
    PART(token_passes, 0, 1e3),
    PART(row_passes, 0, 1e3),
    PART(inner_passes, 0, 1e3),
    PART(max_frac, 0.001, 1),
    PART(half_rows, 0, 1e4),
    PART(half_k, 0, 1e5),
    PART(tail_frac, 0, 1),
    PART(memory_frac, 0.001, 1),
    PART(cache_frac, 0.001, 10),
    PART(cache_power, 1, 100),
    PART(cache_speedup, 1, 100),
    PART(overlap_power, 1, 100),
    PART(residual_median_frac, 0, 10),
    PART(residual_p90_frac, 0, 10),
    {"surface", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
};
enum { NUM_KERNEL_FIELDS = sizeof KERNEL_FIELDS / sizeof *KERNEL_FIELDS };

int moe_dtype_find(const char *name) {
    for (int i = 0; i < NUM_MOE_DTYPES; i++)
        if (strcmp(MOE_DTYPE_NAMES[i], name) == 0) return i;
    return -1;
}

static Status kernel_read(const JsonNode *node, Arena *arena, MoeKernel *out) {
    TRY(json_read_object(node, KERNEL_FIELDS, NUM_KERNEL_FIELDS, arena, out));
    TRY(residuals_check(node, out->residual_median_frac, out->residual_p90_frac));
    JsonNode surface = json_get(node, "surface");
    return surface_read(&surface, MOE_SURFACE_AXES, arena, &out->surface);
}

Status moe_kernels_read(const JsonNode *node, Arena *arena, MoeKernels *out) {
    static const JsonField FIELDS[] = {{"kernels", JSON_FIELD_OTHER, 0, 0, 0, NULL, true}};
    *out = (MoeKernels){0};
    TRY(json_read_object(node, FIELDS, 1, arena, out));
    JsonNode list = json_get(node, "kernels");
    TRY(json_expect_array(&list));
    int num_kernels = json_size(&list);
    if (num_kernels > MOE_MAX_KERNELS)
        return json_error(&list, "%d kernels; expected at most %d", num_kernels, MOE_MAX_KERNELS);
    MoeKernel *kernels = ARENA_ARRAY(arena, num_kernels, MoeKernel);
    for (int i = 0; i < num_kernels; i++) {
        JsonNode item = json_at(&list, i);
        TRY(kernel_read(&item, arena, &kernels[i]));
        MoeKernels before = {i, kernels};
        if (moe_kernel_find(&before, kernels[i].moe_dtype, kernels[i].kernel_source))
            return json_error(&item, "a second kernel of %.40s in %s", kernels[i].kernel_source,
                              MOE_DTYPE_NAMES[kernels[i].moe_dtype]);
    }
    *out = (MoeKernels){num_kernels, kernels};
    return status_ok();
}

cJSON *moe_kernels_to_json(const MoeKernels *kernels) {
    cJSON *section = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(section, "kernels");
    for (int i = 0; i < kernels->num_kernels; i++) {
        const MoeKernel *kernel = &kernels->kernels[i];
        cJSON *object = cJSON_CreateObject();
        for (int f = 0; f < NUM_KERNEL_FIELDS; f++) {
            const JsonField *field = &KERNEL_FIELDS[f];
            const char *at = (const char *)kernel + field->offset;
            if (field->kind == JSON_FIELD_STRING)
                cJSON_AddStringToObject(object, field->key, *(const char *const *)at);
            else if (field->kind == JSON_FIELD_NAME)
                cJSON_AddStringToObject(object, field->key, field->names[*(const int *)at]);
            else if (field->kind == JSON_FIELD_BOOL)
                cJSON_AddBoolToObject(object, field->key, *(const bool *)at);
            else if (field->kind == JSON_FIELD_DOUBLE)
                json_add_number(object, field->key, *(const double *)at);
        }
        cJSON_AddItemToObject(object, "surface", surface_to_json(&kernel->surface));
        cJSON_AddItemToArray(list, object);
    }
    return section;
}

const MoeKernel *moe_kernel_find(const MoeKernels *kernels, int moe_dtype,
                                 const char *kernel_source) {
    for (int i = 0; i < kernels->num_kernels; i++) {
        const MoeKernel *kernel = &kernels->kernels[i];
        if (kernel->moe_dtype == moe_dtype && strcmp(kernel->kernel_source, kernel_source) == 0)
            return kernel;
    }
    return NULL;
}
