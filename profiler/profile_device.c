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
    json_add_number(tree, "cudnn_version", (double)info->cudnn_version);
    json_add_number(tree, "nccl_version", (double)info->nccl_version);
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

// Rows of two versions of a library in one table could not be told apart. Folders of earlier
// versions of this program do not name all libraries.
static Status library_check(const JsonNode *root, const char *key, const char *library,
                            int64_t version) {
    JsonNode node = json_get(root, key);
    double before;
    if (!json_is_present(&node)) return status_ok();
    TRY(json_read_double(&node, 0, 1e9, &before));
    if (before == (double)version) return status_ok();
    if (version == 0)
        return json_error(&node, "%.0f; there is no %s now: choose another folder", before,
                          library);
    return json_error(&node, "%.0f; %s is %lld now: choose another folder", before, library,
                      (long long)version);
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
    TRY(library_check(&root, "cublaslt_version", "cuBLASLt", info->cublaslt_version));
    TRY(library_check(&root, "cudnn_version", "cuDNN", info->cudnn_version));
    return library_check(&root, "nccl_version", "NCCL", info->nccl_version);
}
