// backend/cuda/nccl_library.c - NCCL, opened at run time: the plugin runs one GPU alone where it is
// not installed.
#include "backend/cuda/nccl_comm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

// Written once, by nccl_load, under nccl_once.
static Nccl nccl;
static pthread_once_t nccl_once = PTHREAD_ONCE_INIT;

static bool nccl_symbol(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); // a pointer to a function
    if (!symbol) strncpy(nccl.missing, name, sizeof nccl.missing - 1);
    return symbol != NULL;
}

static void nccl_load(void) {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
#ifdef MESHWRIGHT_NCCL
    if (!library) library = dlopen(MESHWRIGHT_NCCL, RTLD_NOW | RTLD_LOCAL);
#endif
    if (!library) {
        const char *error = dlerror();
        strncpy(nccl.missing, error ? error : "libnccl.so.2", sizeof nccl.missing - 1);
        return;
    }
    nccl_symbol(library, "ncclCommSplit", &nccl.ncclCommSplit); // 2.18 and later; NULL before
#define LOAD(name)                                                                                 \
    if (!nccl_symbol(library, #name, &nccl.name)) return;
    NCCL_FUNCTIONS(LOAD)
#undef LOAD
    nccl.loaded = true;
}

Status nccl_find(const Nccl **out) {
    pthread_once(&nccl_once, nccl_load);
    *out = &nccl;
    if (nccl.loaded) return status_ok();
    return status_error(STATUS_MACHINE,
                        "meshwright: several GPUs need NCCL, which cannot be loaded: %s",
                        nccl.missing);
}

int64_t cuda_nccl_version(void) {
    const Nccl *found;
    int version = 0;
    if (nccl_find(&found).code != STATUS_OK) return 0;
    return found->ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

Status nccl_error(const Nccl *found, ncclResult_t result, const char *what) {
    return status_error(STATUS_MACHINE, "meshwright: NCCL failed: %.100s: %.150s: %.250s", what,
                        found->ncclGetErrorString(result), found->ncclGetLastError(NULL));
}

ncclDataType_t nccl_type(Dtype dtype) {
    static const ncclDataType_t TYPES[NUM_DTYPES] = {
        [DTYPE_BF16] = ncclBfloat16,
        [DTYPE_FP32] = ncclFloat32,
        [DTYPE_FP64] = ncclFloat64,
        [DTYPE_INT32] = ncclInt32,
    };
    return TYPES[dtype];
}
