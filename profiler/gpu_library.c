#include "profiler/gpu_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libmeshwright-gpu.so"

// The first of the places that holds a file; false where none does.
static bool library_path(char *path, size_t size) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        char *slash = strrchr(program, '/');
        if (slash) *slash = '\0';
        static const char *const BESIDE[] = {"", "/../lib"};
        for (int i = 0; i < 2; i++) {
            int n = snprintf(path, size, "%s%s/" LIBRARY, program, BESIDE[i]);
            if (n > 0 && (size_t)n < size && access(path, F_OK) == 0) return true;
        }
    }
    const char *chosen = getenv("MESHWRIGHT_GPU_PLUGIN");
    if (!chosen || !chosen[0]) return false;
    int n = snprintf(path, size, "%s", chosen);
    return n > 0 && (size_t)n < size;
}

Status gpu_library_load(const GpuPlugin **out) {
    char path[PATH_MAX];
    if (!library_path(path, sizeof path))
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
