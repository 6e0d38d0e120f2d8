#include "profiler/gpu_library.h"

#include "base/data_dir.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libmeshwright-gpu.so"

// The first of the places that holds a file; NULL where none does.
static const char *library_path(Arena *arena) {
    const char *chosen = getenv("MESHWRIGHT_GPU_PLUGIN");
    if (chosen && chosen[0]) return chosen;
    const char *program = program_dir(arena);
    static const char *const BESIDE[] = {"", "/../lib"};
    for (int i = 0; program && i < 2; i++) {
        const char *path = arena_printf(arena, "%s%s/" LIBRARY, program, BESIDE[i]);
        if (access(path, F_OK) == 0) return path;
    }
    return NULL;
}

static Status library_load(const char *path, const GpuPlugin **out) {
    if (!path)
        return status_error(STATUS_MACHINE,
                            "meshwright: there is no " LIBRARY
                            " beside this program, in ../lib of it or at MESHWRIGHT_GPU_PLUGIN; it "
                            "is built where the CUDA toolkit is installed");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return status_error(STATUS_MACHINE, "meshwright: the GPU plugin cannot be loaded: %.400s",
                            dlerror());
    // POSIX has dlsym return functions as void *, which ISO C does not convert.
    GpuPluginGet get;
    void *symbol = dlsym(library, GPU_PLUGIN_SYMBOL);
    memcpy(&get, &symbol, sizeof get);
    const GpuPlugin *plugin = symbol ? get() : NULL;
    if (!plugin || plugin->abi != GPU_PLUGIN_ABI) {
        Status status = status_error(
            STATUS_MACHINE, "meshwright: %.300s is of another version of this program", path);
        dlclose(library);
        return status;
    }
    *out = plugin;
    return status_ok();
}

Status gpu_library_load(const GpuPlugin **out) {
    Arena arena = {0};
    Status status = library_load(library_path(&arena), out);
    arena_free(&arena);
    return status;
}
