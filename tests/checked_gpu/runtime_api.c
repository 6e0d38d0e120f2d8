// tests/checked_gpu/runtime_api.c - what is left of CUDA's runtime: devices, pools, copies, errors.
#include "tests/checked_gpu/checked_gpu.h"

#include <stdio.h>
#include <string.h>

// --- Devices

cudaError_t cudaGetDeviceCount(int *out) {
    const int64_t gpus = checked_option("gpus");
    *out = gpus >= 0 ? (int)gpus : 64;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    (void)device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
    (void)device;
    *out = (struct cudaDeviceProp){.multiProcessorCount = 132, .major = 9};
    snprintf(out->name, sizeof out->name, "a checked GPU");
    size_t free_bytes;
    return cudaMemGetInfo(&free_bytes, &out->totalGlobalMem);
}

// --- Errors

cudaError_t cudaGetLastError(void) {
    return checked_failure();
}

const char *cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorMemoryAllocation     ? "cudaErrorMemoryAllocation"
           : error == cudaErrorIllegalAddress     ? "cudaErrorIllegalAddress"
           : error == cudaErrorInsufficientDriver ? "cudaErrorInsufficientDriver"
                                                  : "a CUDA error";
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
                                              : "something went wrong";
}

// --- The pool: what was given back may be had again at once, and nothing else is to be kept

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device) {
    (void)device;
    static char pool;
    *out = (cudaMemPool_t)(void *)&pool;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr name, void *value) {
    (void)pool, (void)name, (void)value;
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t kept) {
    (void)pool, (void)kept;
    return cudaSuccess;
}

// --- Copies

typedef struct {
    void *to;
    const void *from;
    int value;
    size_t bytes;
} Copy;

static void run_copy(void *arguments) {
    const Copy *copy = arguments;
    memcpy(copy->to, copy->from, copy->bytes);
}

static void run_set(void *arguments) {
    const Copy *copy = arguments;
    memset(copy->to, copy->value, copy->bytes);
}

// From the host only pinned memory goes: else the call would wait, which nobody here wants.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    const Copy copy = {to, from, 0, bytes};
    Call call = {.what = "a copy", .run = run_copy, .arguments = &copy, .bytes = sizeof copy};
    if (kind == cudaMemcpyHostToDevice && !memory_is_pinned(from, bytes))
        checked_find("a copy from memory of the host that is not pinned");
    if (kind != cudaMemcpyHostToDevice) reads(&call.accesses, from, (int64_t)bytes);
    if (kind != cudaMemcpyDeviceToHost) writes(&call.accesses, to, (int64_t)bytes);
    return checked_queue(stream, &call);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    const Copy set = {to, NULL, value, bytes};
    Call call = {.what = "a memset", .run = run_set, .arguments = &set, .bytes = sizeof set};
    writes(&call.accesses, to, (int64_t)bytes);
    return checked_queue(stream, &call);
}
