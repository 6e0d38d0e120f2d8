#include "backend/cuda_backend.h"

#include "backend/cuda/cuda_plugin.h"
#include "base/plugin.h"

#include <string.h>

static const PluginSpec SPEC = {.file = "libmeshwright-cuda.so",
                                .variable = "MESHWRIGHT_CUDA_BACKEND",
                                .title = "CUDA backend",
                                .symbol = CUDA_PLUGIN_SYMBOL};

static Status library_load(const CudaPlugin **out) {
    void *library, *symbol;
    TRY(plugin_load(&SPEC, &library, &symbol));
    // POSIX has dlsym return functions as void *, which ISO C does not convert.
    CudaPluginGet get;
    memcpy(&get, &symbol, sizeof get);
    *out = symbol ? get() : NULL;
    return *out && (*out)->table.abi == BACKEND_ABI ? status_ok() : plugin_refuse(&SPEC, library);
}

Status cuda_backend_open(int device, Dtype act, Backend **out) {
    if (act != DTYPE_BF16 && act != DTYPE_FP32)
        return status_error(STATUS_INVALID,
                            "meshwright: a GPU runs in bf16 or fp32; %s was asked for",
                            dtype_name(act));
    if (device < 0)
        return status_error(STATUS_INVALID, "meshwright: GPU %d; expected 0 or more", device);
    const CudaPlugin *plugin = NULL;
    TRY(library_load(&plugin));
    return plugin->open(device, act, out);
}

Status cuda_versions(CudaVersions *out) {
    const CudaPlugin *plugin = NULL;
    TRY(library_load(&plugin));
    plugin->versions(out);
    return status_ok();
}

// The table of each CUDA backend is the first field of its plugin.
static const CudaPlugin *plugin_of(const Backend *backend) {
    return (const CudaPlugin *)backend->table;
}

void *cuda_stream_handle(const Backend *backend, const BackendStream *stream) {
    return plugin_of(backend)->stream_handle(stream);
}

Status cuda_comm_id(Backend *backend, unsigned char id[CUDA_COMM_ID_BYTES]) {
    return plugin_of(backend)->comm_id(id);
}

Status cuda_comm_create(Backend *backend, const unsigned char id[CUDA_COMM_ID_BYTES], int rank,
                        int size, Comm **out) {
    return plugin_of(backend)->comm_create(backend, id, rank, size, out);
}
