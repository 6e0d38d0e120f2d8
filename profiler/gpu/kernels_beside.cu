// profiler/gpu/kernels_beside.cu - a kernel that copies on some SMs while others work: what NCCL's
// kernels take from products, where there is one GPU only.
#include "profiler/gpu/clock.cuh"
#include "profiler/gpu/gpu_kernels.h"

enum { THREADS = 512, LOADS = 4 };
// So that no block shares an SM with a product's that takes most of its shared memory, as
// cuBLASLt's do on Hopper (227 KB an SM).
enum { SHARED_BYTES = 96 << 10 };

__global__ void __launch_bounds__(THREADS)
    beside_kernel(const uint4 *from, uint4 *to, volatile BesideState *state, uint64_t most_ns) {
    constexpr int PART = BESIDE_PART_BYTES / sizeof(uint4);
    constexpr int PIECE = BESIDE_PIECE_BYTES / sizeof(uint4);
    static_assert(PART % PIECE == 0 && PIECE % (THREADS * LOADS) == 0, "whole pieces and rounds");
    __shared__ bool over;
    from += (size_t)blockIdx.x * PART;
    to += (size_t)blockIdx.x * PART;
    uint64_t begin = now_ns();
    if (threadIdx.x == 0) {
        over = false;
        atomicAdd((unsigned *)&state->started, 1u);
    }
    unsigned long long num_pieces = 0;
    __syncthreads();
    for (int at = 0; !over; at = (at + PIECE) % PART) {
        for (int i = at + (int)threadIdx.x; i < at + PIECE; i += THREADS * LOADS) {
            uint4 values[LOADS];
#pragma unroll
            for (int j = 0; j < LOADS; j++) values[j] = from[i + j * THREADS];
#pragma unroll
            for (int j = 0; j < LOADS; j++) to[i + j * THREADS] = values[j];
        }
        num_pieces++;
        __syncthreads(); // nobody reads `over` any more
        if (threadIdx.x == 0) {
            bool late = now_ns() - begin > most_ns;
            if (late) state->late = 1;
            over = late || state->stop != 0;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd((unsigned long long *)&state->num_pieces, num_pieces);
}

cudaError_t kernel_beside(const void *from, void *to, int num_blocks, BesideState *state,
                          uint64_t most_ns, cudaStream_t stream) {
    cudaError_t error = cudaFuncSetAttribute(
        beside_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    beside_kernel<<<(unsigned)num_blocks, THREADS, SHARED_BYTES, stream>>>(
        (const uint4 *)from, (uint4 *)to, state, most_ns);
    return cudaGetLastError();
}

__global__ void await_kernel(const volatile BesideState *state, unsigned num_blocks,
                             uint64_t most_ns) {
    uint64_t begin = now_ns();
    while (state->started < num_blocks && now_ns() - begin < most_ns) __nanosleep(100);
}

cudaError_t kernel_await(const BesideState *state, int num_blocks, uint64_t most_ns,
                         cudaStream_t stream) {
    await_kernel<<<1, 1, 0, stream>>>(state, (unsigned)num_blocks, most_ns);
    return cudaGetLastError();
}
