// profiler/gpu/clock.cuh - the GPU's clock, for kernels that wait.
#pragma once

#include <stdint.h>

static __device__ __forceinline__ uint64_t now_ns() {
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}
