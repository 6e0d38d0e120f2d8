// backend/cuda/call.cuh - how a function of the table becomes kernels: of bf16 or of float, by
// packs or one by one, by elements or by rows.
#pragma once

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/pack.cuh"

// Calls function<T>(...) of the backend's act.
#define CALL_ACT(backend, function, ...)                                                           \
    ((backend)->act == DTYPE_BF16 ? function<bf16>(__VA_ARGS__) : function<float>(__VA_ARGS__))

static inline bool aligned() {
    return true;
}

// True where all addresses (NULL among them) are multiples of 16.
template <class... Rest> static inline bool aligned(const void *array, Rest... rest) {
    return reinterpret_cast<uintptr_t>(array) % 16 == 0 && aligned(rest...);
}

static inline int num_sms(const Backend *backend) {
    return reinterpret_cast<const CudaBackend *>(backend)->num_sms;
}

// --- Arithmetic, as exact as its results are kept

template <class T> __device__ __forceinline__ float exp_of(float x) {
    return sizeof(T) == sizeof(float) ? expf(x) : __expf(x);
}

template <class T> __device__ __forceinline__ float tanh_of(float x) {
    if (sizeof(T) == sizeof(float)) return tanhf(x);
    return 1.0f - __fdividef(2.0f, 1.0f + __expf(fminf(2.0f * x, 80.0f)));
}

// --- Maps: map.run<N>(i) treats N elements from i on

template <int N, class Map>
__global__ void __launch_bounds__(256) map_kernel(Map map, int64_t first, int64_t count) {
    int64_t i = first + ((int64_t)blockIdx.x * 256 + threadIdx.x) * N;
    if (i < count) map.template run<N>(i);
}

// Of `count` elements; packs: all arrays are aligned.
template <class Map>
static cudaError_t map_launch(Map map, int64_t count, bool packs, cudaStream_t stream) {
    int64_t first = packs ? count / PACK * PACK : 0, rest = count - first;
    if (first > 0)
        map_kernel<PACK>
            <<<(unsigned)((first / PACK + 255) / 256), 256, 0, stream>>>(map, (int64_t)0, first);
    if (rest > 0)
        map_kernel<1><<<(unsigned)((rest + 255) / 256), 256, 0, stream>>>(map, first, count);
    return cudaGetLastError();
}

// --- Rows: map.run<N>(row, column) treats N elements of a row

template <int N, class Map>
__global__ void __launch_bounds__(128) rows_kernel(Map map, int64_t columns) {
    int64_t column = ((int64_t)blockIdx.y * 128 + threadIdx.x) * N;
    if (column < columns) map.template run<N>((int64_t)blockIdx.x, column);
}

// packs: all arrays are aligned and rows too.
template <class Map>
static cudaError_t rows_launch(Map map, int64_t rows, int64_t columns, bool packs,
                               cudaStream_t stream) {
    if (rows == 0 || columns == 0) return cudaSuccess;
    int64_t units = packs ? columns / PACK : columns;
    dim3 grid((unsigned)rows, (unsigned)((units + 127) / 128));
    if (packs)
        rows_kernel<PACK><<<grid, 128, 0, stream>>>(map, columns);
    else
        rows_kernel<1><<<grid, 128, 0, stream>>>(map, columns);
    return cudaGetLastError();
}

// --- kernels_sums.cu

// out[width] += sum of parts [num_parts][width].
cudaError_t sums_add_parts(const float *parts, int num_parts, int64_t part_stride, int64_t width,
                           float *out, cudaStream_t stream);
// out[0] += sum of parts [count], in an order of its own.
cudaError_t sums_add_all(const float *parts, int64_t count, float *out, cudaStream_t stream);
