#include "profiler/gpu_library.h"

#include "base/plugin.h"

#include <stdlib.h>
#include <string.h>

static const PluginSpec SPEC = {.file = "libmeshwright-gpu.so",
                                .variable = "MESHWRIGHT_GPU_PLUGIN",
                                .title = "GPU plugin",
                                .symbol = GPU_PLUGIN_SYMBOL};

Status gpu_library_load(const GpuPlugin **out) {
    void *library, *symbol;
    // Read when CUDA begins. What runs beside a product must not share one of the GPU's queues with
    // it; there are 8 else, for NCCL's streams too.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    TRY(plugin_load(&SPEC, &library, &symbol));
    // POSIX has dlsym return functions as void *, which ISO C does not convert.
    GpuPluginGet get;
    memcpy(&get, &symbol, sizeof get);
    *out = symbol ? get() : NULL;
    return *out && (*out)->abi == GPU_PLUGIN_ABI ? status_ok() : plugin_refuse(&SPEC, library);
}
