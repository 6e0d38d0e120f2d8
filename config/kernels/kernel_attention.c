#include "config/kernels/kernel_attention.h"

#include "config/machine/profile.h"

#include <string.h>

const char *const ATTENTION_DTYPE_NAMES[NUM_ATTENTION_DTYPES + 1] = {"bfloat16", "fp8", NULL};
const char *const GENERATION_SHARING_NAMES[NUM_GENERATION_SHARINGS + 1] = {"shared", "single",
                                                                           "per_head", NULL};

#define NUMBER(Type, key, low, high)                                                               \
    { #key, JSON_FIELD_DOUBLE, offsetof(Type, key), low, high, NULL, true }
#define VARIANT(Type)                                                                              \
    {                                                                                              \
        "attn_dtype",                                                                              \
        JSON_FIELD_NAME,                                                                           \
        offsetof(Type, variant.attn_dtype),                                                        \
        0,                                                                                         \
        0,                                                                                         \
        ATTENTION_DTYPE_NAMES,                                                                     \
        true},                                                                                     \
        {"kv_cache_dtype",                                                                         \
         JSON_FIELD_NAME,                                                                          \
         offsetof(Type, variant.kv_cache_dtype),                                                   \
         0,                                                                                        \
         0,                                                                                        \
         ATTENTION_DTYPE_NAMES,                                                                    \
         true},                                                                                    \
        {"head_dim", JSON_FIELD_INT, offsetof(Type, variant.head_dim), 1, 4096, NULL, true}, {     \
        "window_size", JSON_FIELD_INT, offsetof(Type, variant.window_size), 0, 1 << 24, NULL, true \
    }

static const JsonField CONTEXT_FIELDS[] = {
    VARIANT(ContextKernel),
    NUMBER(ContextKernel, tile_tokens, 1, 4096),
    NUMBER(ContextKernel, launch_s, 0, 1e-2),
    NUMBER(ContextKernel, memory_passes, 0, 100),
    NUMBER(ContextKernel, max_frac, 0.001, 1),
    NUMBER(ContextKernel, tile_s, 0, 1e-3),
    NUMBER(ContextKernel, loss_frac, 0, 10),
    NUMBER(ContextKernel, half_s, 1e-9, 10),
    NUMBER(ContextKernel, l2_frac, 0.001, 100),
    NUMBER(ContextKernel, l2_octaves, 0.01, 20),
    NUMBER(ContextKernel, l2_cost_frac, 0, 1),
    NUMBER(ContextKernel, chain_ratio, 0.01, 100),
    NUMBER(ContextKernel, residual_median_frac, 0, 10),
    NUMBER(ContextKernel, residual_p90_frac, 0, 10),
    {"surface", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
};

static const JsonField GENERATION_FIELDS[] = {
    VARIANT(GenerationKernel),
    {"sharing", JSON_FIELD_NAME, offsetof(GenerationKernel, sharing), 0, 0,
     GENERATION_SHARING_NAMES, true},
    NUMBER(GenerationKernel, launch_s, 0, 1e-2),
    NUMBER(GenerationKernel, memory_frac, 0.001, 1),
    NUMBER(GenerationKernel, block_s, 0, 1e-3),
    NUMBER(GenerationKernel, token_s, 0, 1e-3),
    NUMBER(GenerationKernel, split_s, 0, 1e-3),
    NUMBER(GenerationKernel, split_tokens, 1, 1e9),
    NUMBER(GenerationKernel, blocks_per_sm, 0.001, 100),
    NUMBER(GenerationKernel, query_passes, 0, 100),
    NUMBER(GenerationKernel, max_frac, 0.001, 1),
    NUMBER(GenerationKernel, l2_frac, 0.001, 100),
    NUMBER(GenerationKernel, l2_octaves, 0.01, 20),
    NUMBER(GenerationKernel, l2_cost_frac, 0, 1),
    NUMBER(GenerationKernel, residual_median_frac, 0, 10),
    NUMBER(GenerationKernel, residual_p90_frac, 0, 10),
    {"surface", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
};

enum {
    NUM_CONTEXT_FIELDS = sizeof CONTEXT_FIELDS / sizeof *CONTEXT_FIELDS,
    NUM_GENERATION_FIELDS = sizeof GENERATION_FIELDS / sizeof *GENERATION_FIELDS,
    MAX_KERNELS = 256,
};

static const char *const SURFACE_AXES[] = {"batch_heads", "tokens", "group", NULL};

Status context_kernels_read(const JsonNode *node, Arena *arena, ContextKernels *out) {
    static const JsonField FIELDS[] = {{"kernels", JSON_FIELD_OTHER, 0, 0, 0, NULL, true}};
    JsonNode list = json_get(node, "kernels");
    int num_kernels;
    TRY(json_read_object(node, FIELDS, 1, arena, out));
    TRY(json_expect_items(&list, "kernels", MAX_KERNELS, &num_kernels));
    ContextKernel *kernels = ARENA_ARRAY(arena, num_kernels, ContextKernel);
    for (int i = 0; i < num_kernels; i++) {
        JsonNode kernel = json_at(&list, i), surface = json_get(&kernel, "surface");
        TRY(json_read_object(&kernel, CONTEXT_FIELDS, NUM_CONTEXT_FIELDS, arena, &kernels[i]));
        TRY(residuals_check(&kernel, kernels[i].residual_median_frac,
                            kernels[i].residual_p90_frac));
        for (int j = 0; j < i; j++)
            if (memcmp(&kernels[i].variant, &kernels[j].variant, sizeof kernels[i].variant) == 0)
                return json_error(&kernel, "for the same as kernels[%d]", j);
        TRY(surface_read(&surface, SURFACE_AXES, arena, &kernels[i].surface));
    }
    *out = (ContextKernels){num_kernels, kernels};
    return status_ok();
}

Status generation_kernels_read(const JsonNode *node, Arena *arena, GenerationKernels *out) {
    static const JsonField FIELDS[] = {
        {"shared_min_blocks_per_sm", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
        {"kernels", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    };
    JsonNode list = json_get(node, "kernels"), shares = json_get(node, "shared_min_blocks_per_sm");
    GenerationKernels read = {0};
    TRY(json_read_object(node, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, &read));
    TRY(json_read_numbers(&shares, ATTENTION_DTYPE_NAMES, NUM_ATTENTION_DTYPES, 0, 1e6, true,
                          read.shared_min_blocks_per_sm));
    TRY(json_expect_items(&list, "kernels", MAX_KERNELS, &read.num_kernels));
    GenerationKernel *kernels = ARENA_ARRAY(arena, read.num_kernels, GenerationKernel);
    for (int i = 0; i < read.num_kernels; i++) {
        JsonNode kernel = json_at(&list, i), surface = json_get(&kernel, "surface");
        TRY(json_read_object(&kernel, GENERATION_FIELDS, NUM_GENERATION_FIELDS, arena,
                             &kernels[i]));
        TRY(residuals_check(&kernel, kernels[i].residual_median_frac,
                            kernels[i].residual_p90_frac));
        for (int j = 0; j < i; j++)
            if (kernels[i].sharing == kernels[j].sharing &&
                memcmp(&kernels[i].variant, &kernels[j].variant, sizeof kernels[i].variant) == 0)
                return json_error(&kernel, "for the same as kernels[%d]", j);
        TRY(surface_read(&surface, SURFACE_AXES, arena, &kernels[i].surface));
    }
    read.kernels = kernels;
    *out = read;
    return status_ok();
}

// Writes a struct by the table that reads it.
static cJSON *kernel_to_json(const JsonField *fields, int num_fields, const void *kernel,
                             const Surface *surface) {
    cJSON *object = cJSON_CreateObject();
    for (int i = 0; i < num_fields; i++) {
        const char *at = (const char *)kernel + fields[i].offset;
        double number;
        int count;
        if (fields[i].kind == JSON_FIELD_DOUBLE) {
            memcpy(&number, at, sizeof number);
            json_add_number(object, fields[i].key, number);
        } else if (fields[i].kind != JSON_FIELD_OTHER) {
            memcpy(&count, at, sizeof count);
            if (fields[i].names)
                cJSON_AddStringToObject(object, fields[i].key, fields[i].names[count]);
            else
                json_add_number(object, fields[i].key, count);
        }
    }
    cJSON_AddItemToObject(object, "surface", surface_to_json(surface));
    return object;
}

cJSON *context_kernels_to_json(const ContextKernels *kernels) {
    cJSON *section = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(section, "kernels");
    for (int i = 0; i < kernels->num_kernels; i++) {
        const ContextKernel *kernel = &kernels->kernels[i];
        cJSON_AddItemToArray(
            list, kernel_to_json(CONTEXT_FIELDS, NUM_CONTEXT_FIELDS, kernel, &kernel->surface));
    }
    return section;
}

cJSON *generation_kernels_to_json(const GenerationKernels *kernels) {
    cJSON *section = cJSON_CreateObject();
    cJSON *shares = cJSON_AddObjectToObject(section, "shared_min_blocks_per_sm");
    for (int d = 0; d < NUM_ATTENTION_DTYPES; d++)
        json_add_number(shares, ATTENTION_DTYPE_NAMES[d], kernels->shared_min_blocks_per_sm[d]);
    cJSON *list = cJSON_AddArrayToObject(section, "kernels");
    for (int i = 0; i < kernels->num_kernels; i++) {
        const GenerationKernel *kernel = &kernels->kernels[i];
        cJSON_AddItemToArray(list, kernel_to_json(GENERATION_FIELDS, NUM_GENERATION_FIELDS, kernel,
                                                  &kernel->surface));
    }
    return section;
}
