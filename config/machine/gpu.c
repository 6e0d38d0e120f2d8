#include "config/machine/gpu.h"

#include "base/data_dir.h"
#include "config/machine/gpu_limits.h"
#include "config/machine/profile.h"

#include <string.h>

static const char FOLDER[] = "hw-profiles/gpus";

const char *const PRECISION_NAMES[NUM_PRECISIONS + 1] = {"fp64", "fp32",  "tf32",  "fp16", "bf16",
                                                         "fp8",  "mxfp8", "nvfp4", NULL};

#define TEXT(key)                                                                                  \
    { #key, JSON_FIELD_STRING, offsetof(Gpu, key), 0, 0, NULL, true }
#define NUMBER(key, low, high)                                                                     \
    { #key, JSON_FIELD_DOUBLE, offsetof(Gpu, key), low, high, NULL, true }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, true }

static const JsonField GPU_FIELDS[] = {
    OTHER("schema"),
    TEXT(name),
    TEXT(title),
    TEXT(vendor),
    TEXT(architecture),
    {"kernels_of", JSON_FIELD_STRING, offsetof(Gpu, kernels_of), 0, 0, NULL, false},
    {"num_sms", JSON_FIELD_INT, offsetof(Gpu, num_sms), 1, 10000, NULL, true},
    NUMBER(memory_bytes, 1e9, 1e13),
    NUMBER(memory_available_bytes, 1e9, 1e13),
    NUMBER(memory_bandwidth_bytes_per_s, 1e8, 1e15),
    NUMBER(l2_bytes, 1e5, 1e11),
    NUMBER(power_watts, 1, 1e5),
    NUMBER(idle_power_watts, 0, 1e5),
    NUMBER(price_usd_per_gpu_hour, 0, 1e5),
    OTHER("peak_flops_per_s"),
    OTHER("efficiency"),
    {"core", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    OTHER("sources"),
};

#define PART(key, low, high)                                                                       \
    { #key, JSON_FIELD_DOUBLE, offsetof(GpuEfficiency, key), low, high, NULL, true }
#define MAYBE(key, low, high)                                                                      \
    { #key, JSON_FIELD_DOUBLE, offsetof(GpuEfficiency, key), low, high, NULL, false }

static const JsonField EFFICIENCY_FIELDS[] = {
    OTHER("gemm_max_frac"),
    PART(gemm_tile_m, 1, 4096),
    PART(gemm_tile_n, 1, 4096),
    PART(gemm_half_k, 0, 1e5),
    PART(full_rate_watts, 1, 1e5),
    PART(light_rate_watts, 1, 1e5),
    MAYBE(power_exponent, 0.33, 1),
    PART(memory_frac, 0.01, 1),
    PART(launch_s, 0, 1e-3),
    PART(attention_forward_frac, 0.001, 1),
    PART(attention_backward_frac, 0.001, 1),
    PART(attention_head64_frac, 0.1, 1),
    PART(attention_half_tokens, 0, 1e6),
    MAYBE(attention_forward_half_tokens, 1, 1e6),
    MAYBE(attention_backward_head64_frac, 0.1, 1),
    PART(residual_median_frac, 0, 10),
    PART(residual_p90_frac, 0, 10),
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

// One number for each precision; an absent one is 0.
static Status precisions_read(const JsonNode *node, double low, double high, double *out) {
    return json_read_numbers(node, PRECISION_NAMES, NUM_PRECISIONS, low, high, false, out);
}

static Status gpu_check(const JsonNode *root, const Gpu *gpu) {
    JsonNode available = json_get(root, "memory_available_bytes");
    if (gpu->memory_available_bytes > gpu->memory_bytes)
        return json_error(&available, "%.15g is more than memory_bytes %.15g",
                          gpu->memory_available_bytes, gpu->memory_bytes);
    JsonNode idle = json_get(root, "idle_power_watts");
    if (gpu->idle_power_watts > gpu->power_watts)
        return json_error(&idle, "%.15g is more than power_watts %.15g", gpu->idle_power_watts,
                          gpu->power_watts);
    JsonNode efficiency = json_get(root, "efficiency");
    TRY(residuals_check(&efficiency, gpu->efficiency.residual_median_frac,
                        gpu->efficiency.residual_p90_frac));
    JsonNode frac = json_get(&efficiency, "gemm_max_frac");
    for (int p = 0; p < NUM_PRECISIONS; p++) {
        JsonNode value = json_get(&frac, PRECISION_NAMES[p]);
        bool supported = gpu->peak_flops_per_s[p] > 0,
             achieved = gpu->efficiency.gemm_max_frac[p] > 0;
        if (supported && !achieved)
            return json_error(&value, "missing although peak_flops_per_s has it");
        if (achieved && !supported)
            return json_error(&value, "given although peak_flops_per_s does not have it");
    }
    return status_ok();
}

// Of a core of a CPU: laws of every precision that it computes in.
static Status laws_read(const JsonNode *root, Arena *arena, Gpu *gpu) {
    JsonNode core = json_get(root, "core");
    if (!json_is_present(&core)) return status_ok();
    CoreLaws *laws = ARENA_ARRAY(arena, NUM_PRECISIONS, CoreLaws);
    TRY(core_read(&core, PRECISION_NAMES, arena, laws));
    for (int p = 0; p < NUM_PRECISIONS; p++) {
        JsonNode of_one = json_get(&core, PRECISION_NAMES[p]);
        bool supported = gpu->peak_flops_per_s[p] > 0;
        if (supported && !laws[p].present)
            return json_error(&of_one, "missing although peak_flops_per_s has it");
        if (laws[p].present && !supported)
            return json_error(&of_one, "given although peak_flops_per_s does not have it");
    }
    gpu->core = laws;
    return status_ok();
}

static Status gpu_read(const JsonNode *root, Arena *arena, Gpu *out) {
    Gpu gpu = {.file = root->file};
    TRY(json_read_object(root, GPU_FIELDS, COUNT(GPU_FIELDS), arena, &gpu));
    TRY(architecture_load(gpu.architecture, arena, &gpu.shared));
    JsonNode schema = json_get(root, "schema"), peak = json_get(root, "peak_flops_per_s");
    JsonNode efficiency = json_get(root, "efficiency"), sources = json_get(root, "sources");
    int version;
    TRY(json_read_int(&schema, 1, 1, &version));
    TRY(precisions_read(&peak, 1e9, 1e18, gpu.peak_flops_per_s));
    TRY(json_read_object(&efficiency, EFFICIENCY_FIELDS, COUNT(EFFICIENCY_FIELDS), arena,
                         &gpu.efficiency));
    JsonNode frac = json_get(&efficiency, "gemm_max_frac");
    TRY(precisions_read(&frac, 0.001, 1, gpu.efficiency.gemm_max_frac));
    TRY(json_expect_object(&sources));
    JsonNode priced = json_get(&sources, "price_usd_per_gpu_hour");
    if (cJSON_IsString(priced.item)) TRY(json_read_string(&priced, arena, &gpu.price_source));
    TRY(gpu_check(root, &gpu));
    TRY(laws_read(root, arena, &gpu));
    *out = gpu;
    return status_ok();
}

// A file of the user's; where it bears the name of a bundled GPU, that one is its datasheet. Of
// CPUs there is none: the bundled one is a measured machine like the user's.
static Status gpu_read_own(const JsonNode *root, Arena *arena, Gpu *out) {
    const char *const *names;
    int num_names;
    Gpu gpu;
    TRY(gpu_read(root, arena, &gpu));
    TRY(data_list(arena, FOLDER, &names, &num_names));
    for (int i = 0; i < num_names; i++) {
        if (strcmp(names[i], gpu.name) != 0) continue;
        Gpu bundled;
        TRY(gpu_load_named(gpu.name, arena, &bundled));
        if (bundled.core && gpu.core) continue;
        TRY(gpu_check_datasheet(root, &gpu, &bundled));
    }
    TRY(gpu_check_limits(root, &gpu));
    *out = gpu;
    return status_ok();
}

Status gpu_load(const JsonNode *value, Arena *arena, Gpu *out) {
    JsonNode root;
    const char *name;
    TRY(json_read_string(value, arena, &name));
    TRY(profile_load(value, "GPU", FOLDER, arena, &root));
    if (value_is_path(name)) return gpu_read_own(&root, arena, out);
    TRY(gpu_read(&root, arena, out));
    return gpu_check_limits(&root, out);
}

Status gpu_load_named(const char *name, Arena *arena, Gpu *out) {
    JsonNode root;
    TRY(profile_load_named(NULL, "GPU", FOLDER, name, arena, &root));
    TRY(gpu_read(&root, arena, out));
    return gpu_check_limits(&root, out);
}

Status gpu_open(const char *name, Arena *arena, Gpu *out) {
    JsonNode root;
    if (!value_is_path(name)) return gpu_load_named(name, arena, out);
    TRY(json_load(name, arena, &root));
    return gpu_read_own(&root, arena, out);
}

Status gpu_list(Arena *arena, Gpu **out, int *num_gpus) {
    const char *const *names;
    TRY(data_list(arena, FOLDER, &names, num_gpus));
    *out = ARENA_ARRAY(arena, *num_gpus, Gpu);
    for (int i = 0; i < *num_gpus; i++) TRY(gpu_load_named(names[i], arena, &(*out)[i]));
    return status_ok();
}
