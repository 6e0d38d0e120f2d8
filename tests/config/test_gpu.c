#include "base/data_dir.h"
#include "config/machine/gpu.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The GPUs that the contract names.
static const char *const CONTRACT_GPUS[] = {
    "v100-sxm2-16g", "v100-sxm2-32g", "a100-sxm-40g",     "a100-sxm-80g",   "a800-sxm-80g",
    "a100-pcie-80g", "h100-sxm-80g",  "h100-sxm-96g",     "h100-pcie-80g",  "h800-sxm-80g",
    "h20-96g",       "h200-sxm-141g", "b200-sxm-180g",    "b300-sxm-288g",  "gb200-186g",
    "gb300-288g",    "gh200-96g",     "rtx-pro-6000-96g", "l40s-48g",       "rtx4090-24g",
    "mi300x-192g",   "mi325x-256g",   "mi355x-288g",      "mi250x-gcd-64g", "cpu",
};
enum { NUM_CONTRACT_GPUS = sizeof CONTRACT_GPUS / sizeof *CONTRACT_GPUS };

static void contract_gpus_load(void) {
    Arena arena = {0};
    for (int i = 0; i < NUM_CONTRACT_GPUS; i++) {
        Gpu gpu = {0};
        Status status = gpu_load_named(CONTRACT_GPUS[i], &arena, &gpu);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        if (status.code != STATUS_OK)
            fprintf(stderr, "%s\n", status.text);
        else
            CU_ASSERT_STRING_EQUAL(gpu.name, CONTRACT_GPUS[i]);
    }
    arena_free(&arena);
}

// Fewer bits are never slower, and never need a format that wider units lack.
static void precisions_check(const Gpu *gpu) {
    const double *peak = gpu->peak_flops_per_s;
    CU_ASSERT(peak[PRECISION_FP32] > 0);
    CU_ASSERT(peak[PRECISION_FP16] > 0);
    CU_ASSERT(peak[PRECISION_BF16] == 0 || peak[PRECISION_BF16] == peak[PRECISION_FP16]);
    CU_ASSERT(peak[PRECISION_FP16] > peak[PRECISION_FP32]);
    CU_ASSERT(peak[PRECISION_FP8] == 0 || peak[PRECISION_FP8] > peak[PRECISION_BF16]);
    CU_ASSERT(peak[PRECISION_MXFP8] == 0 || peak[PRECISION_MXFP8] == peak[PRECISION_FP8]);
    CU_ASSERT(peak[PRECISION_NVFP4] == 0 || peak[PRECISION_NVFP4] > peak[PRECISION_FP8]);
    for (int p = 0; p < NUM_PRECISIONS; p++) {
        double frac = gpu->efficiency.gemm_max_frac[p];
        CU_ASSERT_EQUAL(frac > 0, peak[p] > 0);
        CU_ASSERT(frac <= 0.97); // nothing runs at its nominal peak
    }
}

static void bundled_gpus_are_sane(void) {
    Arena arena = {0};
    Gpu *gpus;
    int num_gpus;
    CU_ASSERT_EQUAL_FATAL(gpu_list(&arena, &gpus, &num_gpus).code, STATUS_OK);
    CU_ASSERT(num_gpus >= NUM_CONTRACT_GPUS);
    for (int i = 0; i < num_gpus; i++) {
        const Gpu *gpu = &gpus[i];
        if (strcmp(gpu->name, "cpu") == 0) continue; // no accelerator: other proportions
        precisions_check(gpu);
        const GpuEfficiency *e = &gpu->efficiency;
        CU_ASSERT(gpu->memory_available_bytes > 0.92 * gpu->memory_bytes);
        CU_ASSERT(gpu->idle_power_watts < 0.3 * gpu->power_watts);
        CU_ASSERT(e->memory_frac <= 0.95);
        CU_ASSERT(e->attention_backward_frac < e->attention_forward_frac);
        CU_ASSERT(e->launch_s >= 1e-6 && e->launch_s <= 1e-5);
        CU_ASSERT(e->residual_median_frac < e->residual_p90_frac);
        // Arithmetic intensity at the ridge: between 50 and 2000 flop/byte for 16 bits.
        double ridge = gpu->peak_flops_per_s[PRECISION_FP16] / gpu->memory_bandwidth_bytes_per_s;
        CU_ASSERT(ridge > 30 && ridge < 2000);
    }
    arena_free(&arena);
}

static void bundled_gpus_name_file_and_sources(void) {
    static const char *const KEYS[] = {
        "num_sms",
        "memory_bytes",
        "memory_available_bytes",
        "memory_bandwidth_bytes_per_s",
        "l2_bytes",
        "power_watts",
        "idle_power_watts",
        "price_usd_per_gpu_hour",
        "peak_flops_per_s",
        "gemm_max_frac",
        "memory_frac",
        "launch_s",
        "attention_forward_frac",
        "attention_backward_frac",
        "attention_half_tokens",
    };
    Arena arena = {0};
    for (int i = 0; i < NUM_CONTRACT_GPUS; i++) {
        JsonNode root;
        const char *path = data_path(&arena, "hw-profiles/gpus", CONTRACT_GPUS[i]), *text;
        CU_ASSERT_EQUAL_FATAL(json_load(path, &arena, &root).code, STATUS_OK);
        JsonNode name = json_get(&root, "name"), sources = json_get(&root, "sources");
        CU_ASSERT_EQUAL_FATAL(json_read_string(&name, &arena, &text).code, STATUS_OK);
        CU_ASSERT_STRING_EQUAL(text, CONTRACT_GPUS[i]);
        for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS; k++) {
            JsonNode source = json_get(&sources, KEYS[k]);
            CU_ASSERT_EQUAL(json_read_string(&source, &arena, &text).code, STATUS_OK);
        }
    }
    arena_free(&arena);
}

// Measured on the machine: 4096 x 8192 x 8192 in bf16 runs at 817 TFLOP/s on H100 SXM.
static void h100_numbers_are_dense(void) {
    Arena arena = {0};
    Gpu gpu = {0};
    CU_ASSERT_EQUAL_FATAL(gpu_load_named("h100-sxm-80g", &arena, &gpu).code, STATUS_OK);
    CU_ASSERT_EQUAL(gpu.num_sms, 132);
    CU_ASSERT_DOUBLE_EQUAL(gpu.peak_flops_per_s[PRECISION_BF16], 989.4e12, 1e9);
    CU_ASSERT_DOUBLE_EQUAL(gpu.memory_bandwidth_bytes_per_s, 3.35e12, 1e6);
    double max =
        gpu.peak_flops_per_s[PRECISION_BF16] * gpu.efficiency.gemm_max_frac[PRECISION_BF16];
    double rate = max * 8192 / (8192 + gpu.efficiency.gemm_half_k);
    CU_ASSERT(rate > 0.9 * 817e12 && rate < 1.1 * 817e12);
    arena_free(&arena);
}

// Reads {"gpu": NAME} of job.json.
static Status gpu_of(const char *name, Arena *arena, Gpu *out) {
    JsonNode root;
    const char *text = arena_printf(arena, "{\"gpu\": \"%s\"}", name);
    TRY(json_parse(text, strlen(text), "job.json", arena, &root));
    JsonNode value = json_get(&root, "gpu");
    return gpu_load(&value, arena, out);
}

static void unknown_gpu_is_answered_with_the_nearest(void) {
    Arena arena = {0};
    Gpu gpu = {0};
    ASSERT_REFUSED(gpu_of("h100-sxm-90g", &arena, &gpu),
                   "job.json: gpu: unknown GPU \"h100-sxm-90g\"; the nearest known one is "
                   "\"h100-sxm-80g\"");
    arena_free(&arena);
}

// The H100 profile with one member of one object replaced (value NULL: removed), as a file.
static const char *edited(Arena *arena, const char *object, const char *key, const char *value) {
    char path[] = "/tmp/meshwright-gpu-XXXXXX";
    int file = mkstemp(path);
    JsonNode root;
    CU_ASSERT_FATAL(file >= 0);
    close(file);
    const char *profile = data_path(arena, "hw-profiles/gpus", "h100-sxm-80g");
    CU_ASSERT_EQUAL_FATAL(json_load(profile, arena, &root).code, STATUS_OK);
    cJSON *copy = cJSON_Duplicate(root.item, true);
    cJSON *at = object ? cJSON_GetObjectItemCaseSensitive(copy, object) : copy;
    cJSON_DeleteItemFromObjectCaseSensitive(at, key);
    if (value) cJSON_AddItemToObject(at, key, cJSON_Parse(value));
    CU_ASSERT_EQUAL(json_save(copy, path).code, STATUS_OK);
    cJSON_Delete(copy);
    return arena_strdup(arena, path);
}

static void edited_is_refused(const char *object, const char *key, const char *value,
                              const char *sentence) {
    Arena arena = {0};
    Gpu gpu = {0};
    const char *path = edited(&arena, object, key, value);
    ASSERT_REFUSED(gpu_of(path, &arena, &gpu), arena_printf(&arena, "%s: %s", path, sentence));
    unlink(path);
    arena_free(&arena);
}

static void bad_profiles_are_refused(void) {
    edited_is_refused(NULL, "num_smx", "132",
                      "num_smx: unknown key; the nearest known one is \"num_sms\"");
    edited_is_refused(NULL, "num_sms", NULL, "num_sms: missing");
    edited_is_refused(NULL, "num_sms", "-1", "num_sms: -1 is out of range; expected 1 to 10000");
    edited_is_refused(NULL, "memory_available_bytes", "9e10",
                      "memory_available_bytes: 90000000000 is more than memory_bytes 85520809984");
    edited_is_refused("efficiency", "memory_frac", "1.01",
                      "efficiency.memory_frac: 1.01 is out of range; expected 0.01 to 1");
    edited_is_refused("efficiency", "launch_s", "\"fast\"",
                      "efficiency.launch_s: expected a number, found a string");
    edited_is_refused("peak_flops_per_s", "fp4", "1e15",
                      "peak_flops_per_s.fp4: unknown key; the nearest known one is \"fp64\"");
    edited_is_refused("peak_flops_per_s", "nvfp4", "1e15",
                      "efficiency.gemm_max_frac.nvfp4: missing although peak_flops_per_s has it");
    edited_is_refused("peak_flops_per_s", "fp8", NULL,
                      "efficiency.gemm_max_frac.fp8: given although peak_flops_per_s does not have "
                      "it");
    edited_is_refused(NULL, "schema", "2", "schema: 2 is out of range; expected 1 to 1");
}

// The datasheet of the name: 85.5 GB, 3.35 TB/s, 989.4 TFLOP/s in bf16, no nvfp4.
static void numbers_above_the_datasheet_are_refused(void) {
    edited_is_refused(NULL, "memory_bandwidth_bytes_per_s", "3.35e13",
                      "memory_bandwidth_bytes_per_s: 33500000000000 is more than the 3350000000000 "
                      "of the datasheet of h100-sxm-80g; expected at most 2 % above, or another "
                      "name");
    edited_is_refused(NULL, "memory_bandwidth_bytes_per_s", "3.42e12",
                      "memory_bandwidth_bytes_per_s: 3420000000000 is more than the 3350000000000 "
                      "of the datasheet of h100-sxm-80g; expected at most 2 % above, or another "
                      "name");
    edited_is_refused(NULL, "memory_bytes", "1.4e11",
                      "memory_bytes: 140000000000 is more than the 85520809984 of the datasheet of "
                      "h100-sxm-80g; expected at most 2 % above, or another name");
    edited_is_refused("peak_flops_per_s", "bf16", "5e15",
                      "peak_flops_per_s.bf16: 5e+15 is more than the 989400000000000 of the "
                      "datasheet of h100-sxm-80g; expected at most 2 % above, or another name");
}

// Below it, and up to 2 % above: 3.35 x 1.02 = 3.417.
static void numbers_of_the_datasheet_are_read(void) {
    static const char *const BANDWIDTHS[] = {"2e12", "3.35e12", "3.41e12"};
    Arena arena = {0};
    Gpu gpu;
    for (int i = 0; i < 3; i++) {
        const char *path = edited(&arena, NULL, "memory_bandwidth_bytes_per_s", BANDWIDTHS[i]);
        CU_ASSERT_EQUAL(gpu_of(path, &arena, &gpu).code, STATUS_OK);
        CU_ASSERT_EQUAL(gpu.memory_bandwidth_bytes_per_s, atof(BANDWIDTHS[i]));
        CU_ASSERT_STRING_EQUAL(gpu.file, path);
        CU_ASSERT_EQUAL(gpu_open(path, &arena, &gpu).code, STATUS_OK);
        unlink(path);
    }
    arena_free(&arena);
}

static void a_missing_unit_is_refused(void) {
    Arena arena = {0};
    Gpu gpu;
    JsonNode root;
    const char *path = edited(&arena, "peak_flops_per_s", "nvfp4", "4e15");
    CU_ASSERT_EQUAL_FATAL(json_load(path, &arena, &root).code, STATUS_OK);
    cJSON *copy = cJSON_Duplicate(root.item, true);
    cJSON *efficiency = cJSON_GetObjectItemCaseSensitive(copy, "efficiency");
    json_add_number(cJSON_GetObjectItemCaseSensitive(efficiency, "gemm_max_frac"), "nvfp4", 0.7);
    CU_ASSERT_EQUAL(json_save(copy, path).code, STATUS_OK);
    cJSON_Delete(copy);
    ASSERT_REFUSED(gpu_open(path, &arena, &gpu),
                   arena_printf(&arena,
                                "%s: peak_flops_per_s.nvfp4: 4e+15, but h100-sxm-80g has no such "
                                "units; leave it out, or give the profile another name",
                                path));
    unlink(path);
    arena_free(&arena);
}

static void a_path_is_read_beside_its_document(void) {
    Arena arena = {0};
    Gpu gpu = {0};
    const char *path = edited(&arena, NULL, "num_sms", "66");
    CU_ASSERT_EQUAL_FATAL(gpu_of(path, &arena, &gpu).code, STATUS_OK);
    CU_ASSERT_EQUAL(gpu.num_sms, 66);
    unlink(path);
    arena_free(&arena);
}

CU_TestInfo gpu_tests[] = {
    {"contract_gpus_load", contract_gpus_load},
    {"bundled_gpus_are_sane", bundled_gpus_are_sane},
    {"bundled_gpus_name_file_and_sources", bundled_gpus_name_file_and_sources},
    {"h100_numbers_are_dense", h100_numbers_are_dense},
    {"unknown_gpu_is_answered_with_the_nearest", unknown_gpu_is_answered_with_the_nearest},
    {"bad_profiles_are_refused", bad_profiles_are_refused},
    {"numbers_above_the_datasheet_are_refused", numbers_above_the_datasheet_are_refused},
    {"numbers_of_the_datasheet_are_read", numbers_of_the_datasheet_are_read},
    {"a_missing_unit_is_refused", a_missing_unit_is_refused},
    {"a_path_is_read_beside_its_document", a_path_is_read_beside_its_document},
    CU_TEST_INFO_NULL,
};
