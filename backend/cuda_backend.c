#include "backend/cuda_backend.h"

#include "backend/cuda/cuda_plugin.h"
#include "base/data_dir.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libmeshwright-cuda.so"

// The first of the places that holds a file; NULL where none does.
static const char *library_path(Arena *arena) {
    const char *chosen = getenv("MESHWRIGHT_CUDA_BACKEND");
    if (chosen && chosen[0]) return chosen;
    const char *program = program_dir(arena);
    static const char *const BESIDE[] = {"", "/../lib"};
    for (int i = 0; program && i < 2; i++) {
        const char *path = arena_printf(arena, "%s%s/" LIBRARY, program, BESIDE[i]);
        if (access(path, F_OK) == 0) return path;
    }
    return NULL;
}

static Status library_load(const char *path, const CudaPlugin **out) {
    if (!path)
        return status_error(STATUS_MACHINE,
                            "meshwright: there is no " LIBRARY
                            " beside this program, in ../lib of it or at MESHWRIGHT_CUDA_BACKEND; "
                            "it is built where the CUDA toolkit is installed");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return status_error(STATUS_MACHINE, "meshwright: the CUDA backend cannot be loaded: %.400s",
                            dlerror());
    // POSIX has dlsym return functions as void *, which ISO C does not convert.
    CudaPluginGet get;
    void *symbol = dlsym(library, CUDA_PLUGIN_SYMBOL);
    memcpy(&get, &symbol, sizeof get);
    const CudaPlugin *plugin = symbol ? get() : NULL;
    if (!plugin || plugin->table.abi != BACKEND_ABI) {
        Status status = status_error(
            STATUS_MACHINE, "meshwright: %.300s is of another version of this program", path);
        dlclose(library);
        return status;
    }
    *out = plugin;
    return status_ok();
}

Status cuda_backend_open(int device, Dtype act, Backend **out) {
    if (act != DTYPE_BF16 && act != DTYPE_FP32)
        return status_error(STATUS_INVALID,
                            "meshwright: a GPU runs in bf16 or fp32; %s was asked for",
                            dtype_name(act));
    if (device < 0)
        return status_error(STATUS_INVALID, "meshwright: GPU %d; expected 0 or more", device);
    Arena arena = {0};
    const CudaPlugin *plugin = NULL;
    Status status = library_load(library_path(&arena), &plugin);
    arena_free(&arena);
    TRY(status);
    return plugin->open(device, act, out);
}

// The table of each CUDA backend is the first field of its plugin.
static const CudaPlugin *plugin_of(const Backend *backend) {
    return (const CudaPlugin *)backend->table;
}

Status cuda_comm_id(Backend *backend, unsigned char id[CUDA_COMM_ID_BYTES]) {
    return plugin_of(backend)->comm_id(id);
}

Status cuda_comm_create(Backend *backend, const unsigned char id[CUDA_COMM_ID_BYTES], int rank,
                        int size, Comm **out) {
    return plugin_of(backend)->comm_create(backend, id, rank, size, out);
}
