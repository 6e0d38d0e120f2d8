// Kernels are loaded at their first launch, as CUDA does by default. While another spins until they
// have run, loading may wait for that one (CUDA C++ Programming Guide, "Lazy Loading"): here it
// always does, so that nothing of what runs beside may be new.
#include "tests/profiler/fake_cuda.h"

enum { MOST_DEVICES = 8, MOST_KERNELS = 4096 };

static struct {
    double kernels[MOST_KERNELS];
    int num_kernels;
} loaded[MOST_DEVICES]; // each used by one thread at a time

cudaError_t fake_load(cudaStream_t stream, double kernel, bool spins) {
    double *kernels = loaded[stream->device].kernels;
    int *num_kernels = &loaded[stream->device].num_kernels;
    for (int i = 0; i < *num_kernels; i++)
        if (kernels[i] == kernel) return cudaSuccess;
    if (spins || *num_kernels == MOST_KERNELS) return cudaErrorLaunchTimeout;
    kernels[(*num_kernels)++] = kernel;
    return cudaSuccess;
}
