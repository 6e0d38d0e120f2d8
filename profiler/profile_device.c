// device.json: which device a folder's tables are of.
#include "base/json.h"
#include "profiler/profile_run.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void add_version(cJSON *object, const char *key, int version, Arena *arena) {
    cJSON_AddStringToObject(object, key,
                            arena_printf(arena, "%d.%d", version / 1000, version % 1000 / 10));
}

static void add_nvml(cJSON *tree, const DeviceLimits *limits) {
    cJSON_AddStringToObject(tree, "driver", limits->driver);
    json_add_number(tree, "nvml_max_sm_clock_hz", limits->max_sm_clock_hz);
    json_add_number(tree, "nvml_max_memory_clock_hz", limits->max_memory_clock_hz);
    json_add_number(tree, "power_limit_watts", limits->power_limit_watts);
}

cJSON *profile_device_json(const GpuInfo *info, const DeviceLimits *limits, const char *command) {
    Arena arena = {0};
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddStringToObject(tree, "device", "cuda");
    cJSON_AddStringToObject(tree, "name", info->name);
    cJSON_AddStringToObject(
        tree, "compute_capability",
        arena_printf(&arena, "%d.%d", info->compute_major, info->compute_minor));
    json_add_number(tree, "num_gpus", info->num_devices);
    json_add_number(tree, "num_sms", info->num_sms);
    json_add_number(tree, "memory_bytes", info->memory_bytes);
    json_add_number(tree, "l2_bytes", info->l2_bytes);
    json_add_number(tree, "memory_bus_bits", info->memory_bus_bits);
    json_add_number(tree, "max_sm_clock_hz", info->max_sm_clock_hz);
    json_add_number(tree, "max_memory_clock_hz", info->max_memory_clock_hz);
    add_version(tree, "driver_cuda", info->driver_cuda_version, &arena);
    add_version(tree, "runtime_cuda", info->runtime_cuda_version, &arena);
    json_add_number(tree, "cublaslt_version", (double)info->cublaslt_version);
    if (limits) add_nvml(tree, limits);
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    cJSON_AddStringToObject(tree, "date", date);
    cJSON_AddStringToObject(tree, "command", command);
    cJSON_AddStringToObject(tree, "meshwright", MESHWRIGHT_VERSION);
    arena_free(&arena);
    return tree;
}

Status profile_device_check(const char *path, const GpuInfo *info, Arena *arena) {
    if (access(path, F_OK) != 0) return status_ok();
    JsonNode root;
    TRY(json_load(path, arena, &root));
    JsonNode node = json_get(&root, "name");
    const char *name;
    TRY(json_read_string(&node, arena, &name));
    if (strcmp(name, info->name) != 0)
        return json_error(&node, "\"%s\"; this device is \"%s\": choose another folder", name,
                          info->name);
    // Rows of two libraries in one table could not be told apart.
    JsonNode library = json_get(&root, "cublaslt_version");
    if (!json_is_present(&library)) return status_ok();
    double version;
    TRY(json_read_double(&library, 0, 1e9, &version));
    if (version == (double)info->cublaslt_version) return status_ok();
    return json_error(&library, "%.0f; cuBLASLt is %.0f now: choose another folder", version,
                      (double)info->cublaslt_version);
}
