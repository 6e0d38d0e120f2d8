// profiler/gpu/kernels_tools.cu - random inputs, the gate that lets launches queue up, nothing.
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <curand_kernel.h>

#include "profiler/gpu/clock.cuh"
#include "profiler/gpu/pack.cuh"

template <class T> __device__ __forceinline__ T convert(float value) {
    return (T)value;
}
template <> __device__ __forceinline__ bf16 convert<bf16>(float value) {
    return __float2bfloat16_rn(value);
}
template <> __device__ __forceinline__ __half convert<__half>(float value) {
    return __float2half_rn(value);
}
template <> __device__ __forceinline__ __nv_fp8_e4m3 convert<__nv_fp8_e4m3>(float value) {
    return __nv_fp8_e4m3(value);
}
template <> __device__ __forceinline__ __nv_fp8_e5m2 convert<__nv_fp8_e5m2>(float value) {
    return __nv_fp8_e5m2(value);
}

// Four numbers of the generator at a time (Philox 4x32-10).
template <class T>
__global__ void __launch_bounds__(256)
    fill_kernel(T *array, size_t num_elements, int fill, int limit, uint64_t seed) {
    size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t num_threads = (size_t)gridDim.x * blockDim.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, thread, 0, &state);
    for (size_t i = 4 * thread; i < num_elements; i += 4 * num_threads) {
        float v[4];
        if (fill == FILL_NORMAL || fill == FILL_POSITIVE) {
            float4 normal = curand_normal4(&state);
            v[0] = normal.x, v[1] = normal.y, v[2] = normal.z, v[3] = normal.w;
        } else {
            uint4 bits = curand4(&state);
            unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
            for (int j = 0; j < 4; j++) v[j] = (float)(words[j] % (unsigned)limit);
        }
        for (int j = 0; j < 4 && i + j < num_elements; j++)
            array[i + j] = convert<T>(fill == FILL_POSITIVE ? fabsf(v[j]) : v[j]);
    }
}

template <class T>
static void fill_launch(void *array, size_t n, int fill, int limit, uint64_t seed,
                        cudaStream_t stream) {
    size_t blocks = (n + 1023) / 1024;
    if (blocks > 4096) blocks = 4096;
    fill_kernel<T><<<(unsigned)blocks, 256, 0, stream>>>((T *)array, n, fill, limit, seed);
}

cudaError_t kernel_fill(void *array, Number dtype, size_t num_elements, BufferFill fill, int limit,
                        uint64_t seed, cudaStream_t stream) {
    if (num_elements == 0) return cudaSuccess;
    switch (dtype) {
    case NUMBER_BFLOAT16:
        fill_launch<bf16>(array, num_elements, fill, limit, seed, stream);
        break;
    case NUMBER_FLOAT16:
        fill_launch<__half>(array, num_elements, fill, limit, seed, stream);
        break;
    case NUMBER_FP8:
        fill_launch<__nv_fp8_e4m3>(array, num_elements, fill, limit, seed, stream);
        break;
    case NUMBER_FP8_E5M2:
        fill_launch<__nv_fp8_e5m2>(array, num_elements, fill, limit, seed, stream);
        break;
    case NUMBER_INT32:
        fill_launch<int32_t>(array, num_elements, fill, limit, seed, stream);
        break;
    case NUMBER_UINT8:
        fill_launch<uint8_t>(array, num_elements, fill, limit, seed, stream);
        break;
    default:
        fill_launch<float>(array, num_elements, fill, limit, seed, stream);
        break;
    }
    return cudaGetLastError();
}

__global__ void gate_kernel(volatile unsigned *gate, unsigned ticket, uint64_t most_ns) {
    uint64_t begin = now_ns();
    while ((int)(gate[0] - ticket) < 0) {
        if (now_ns() - begin > most_ns) {
            gate[1] = gate[1] + 1;
            return;
        }
        __nanosleep(200);
    }
}

cudaError_t kernel_gate(unsigned *gate, unsigned ticket, uint64_t most_ns, cudaStream_t stream) {
    gate_kernel<<<1, 1, 0, stream>>>(gate, ticket, most_ns);
    return cudaGetLastError();
}

__global__ void empty_kernel() {
}

cudaError_t kernel_empty(cudaStream_t stream) {
    empty_kernel<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

__global__ void pause_kernel(uint64_t pause_ns) {
    uint64_t begin = now_ns();
    while (now_ns() - begin < pause_ns) __nanosleep(500);
}

cudaError_t kernel_pause(uint64_t pause_ns, cudaStream_t stream) {
    pause_kernel<<<1, 1, 0, stream>>>(pause_ns);
    return cudaGetLastError();
}
