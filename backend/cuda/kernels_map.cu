// backend/cuda/kernels_map.cu - sums, scaling and formats, element by element; rows of bytes.
#include "backend/cuda/call.cuh"

template <class T> struct AddMap {
    const T *a, *b;
    T *y;
    template <int N> __device__ void run(int64_t i) const {
        float u[N], v[N];
        pack_load(a + i, u);
        pack_load(b + i, v);
#pragma unroll
        for (int j = 0; j < N; j++) v[j] += u[j];
        pack_store(y + i, v);
    }
};

template <class T>
static cudaError_t add(void *y, const void *a, const void *b, int64_t count, cudaStream_t stream) {
    AddMap<T> map = {(const T *)a, (const T *)b, (T *)y};
    return map_launch(map, count, aligned(y, a, b), stream);
}

void cuda_add(Backend *backend, void *y, const void *a, const void *b, int64_t count,
              BackendStream *stream) {
    const void *arrays[] = {y, a, b};
    if (!cuda_begin(backend, stream, arrays, 3)) return;
    cuda_end(backend, stream, CALL_ACT(backend, add, y, a, b, count, stream->handle), "add");
}

template <class T> struct ScaleMap {
    T *y;
    float scale;
    template <int N> __device__ void run(int64_t i) const {
        float v[N];
        pack_load(y + i, v);
#pragma unroll
        for (int j = 0; j < N; j++) v[j] *= scale;
        pack_store(y + i, v);
    }
};

template <class T>
static cudaError_t scale_array(void *y, double scale, int64_t count, cudaStream_t stream) {
    ScaleMap<T> map = {(T *)y, (float)scale};
    return map_launch(map, count, aligned(y), stream);
}

void cuda_scale(Backend *backend, void *y, double scale, Dtype dtype, int64_t count,
                BackendStream *stream) {
    const void *arrays[] = {y};
    if (!cuda_begin(backend, stream, arrays, 1)) return;
    cudaError_t error = dtype == DTYPE_BF16 ? scale_array<bf16>(y, scale, count, stream->handle)
                                            : scale_array<float>(y, scale, count, stream->handle);
    cuda_end(backend, stream, error, "scale");
}

template <class From, class To, bool ACCUMULATE> struct CastMap {
    const From *x;
    To *y;
    template <int N> __device__ void run(int64_t i) const {
        float v[N];
        pack_load(x + i, v);
        if (ACCUMULATE) {
            float sum[N];
            pack_load(y + i, sum);
#pragma unroll
            for (int j = 0; j < N; j++) v[j] += sum[j];
        }
        pack_store(y + i, v);
    }
};

template <class From, class To>
static cudaError_t cast(void *to, const void *from, bool accumulate, int64_t count,
                        cudaStream_t stream) {
    if (accumulate) {
        CastMap<From, To, true> map = {(const From *)from, (To *)to};
        return map_launch(map, count, aligned(to, from), stream);
    }
    CastMap<From, To, false> map = {(const From *)from, (To *)to};
    return map_launch(map, count, aligned(to, from), stream);
}

void cuda_cast(Backend *backend, void *to, Dtype to_dtype, const void *from, Dtype from_dtype,
               bool accumulate, int64_t count, BackendStream *stream) {
    const void *arrays[] = {to, from};
    if (!cuda_begin(backend, stream, arrays, 2)) return;
    cudaStream_t s = stream->handle;
    bool to_half = to_dtype == DTYPE_BF16, from_half = from_dtype == DTYPE_BF16;
    cudaError_t error = to_half && from_half ? cast<bf16, bf16>(to, from, accumulate, count, s)
                        : to_half            ? cast<float, bf16>(to, from, accumulate, count, s)
                        : from_half          ? cast<bf16, float>(to, from, accumulate, count, s)
                                             : cast<float, float>(to, from, accumulate, count, s);
    cuda_end(backend, stream, error, "cast");
}

// --- A bias that cuBLASLt cannot add

template <class Out, class T> struct BiasMap {
    Out *out;
    const T *bias;
    int64_t columns;
    template <int N> __device__ void run(int64_t row, int64_t column) const {
        float v[N], b[N];
        pack_load(out + row * columns + column, v);
        pack_load(bias + column, b);
#pragma unroll
        for (int j = 0; j < N; j++) v[j] += b[j];
        pack_store(out + row * columns + column, v);
    }
};

template <class Out, class T>
static cudaError_t bias_add(void *out, const void *bias, int64_t rows, int64_t columns,
                            cudaStream_t stream) {
    BiasMap<Out, T> map = {(Out *)out, (const T *)bias, columns};
    return rows_launch(map, rows, columns, columns % PACK == 0 && aligned(out, bias), stream);
}

cudaError_t cuda_add_bias(Backend *backend, void *out, bool out_wide, const void *bias,
                          int64_t rows, int64_t columns, BackendStream *stream) {
    if (backend->act != DTYPE_BF16)
        return bias_add<float, float>(out, bias, rows, columns, stream->handle);
    return out_wide ? bias_add<float, bf16>(out, bias, rows, columns, stream->handle)
                    : bias_add<bf16, bf16>(out, bias, rows, columns, stream->handle);
}

// --- Rows of bytes

template <class Unit>
__global__ void __launch_bounds__(256)
    copy_rows_kernel(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                     int64_t row_units) {
    int64_t row = blockIdx.x;
    Unit *y = reinterpret_cast<Unit *>(to + row * to_stride);
    const Unit *x = reinterpret_cast<const Unit *>(from + row * from_stride);
    for (int64_t i = (int64_t)blockIdx.y * 256 + threadIdx.x; i < row_units; i += gridDim.y * 256)
        y[i] = x[i];
}

template <class Unit>
static void copy_rows(void *to, int64_t to_stride, const void *from, int64_t from_stride,
                      int64_t rows, int64_t bytes, cudaStream_t stream) {
    int64_t units = bytes / (int64_t)sizeof(Unit), blocks = (units + 255) / 256;
    dim3 grid((unsigned)rows, (unsigned)(blocks < 1024 ? blocks : 1024));
    copy_rows_kernel<Unit>
        <<<grid, 256, 0, stream>>>((char *)to, to_stride, (const char *)from, from_stride, units);
}

void cuda_copy_rows(Backend *backend, void *to, int64_t to_stride, const void *from,
                    int64_t from_stride, int64_t rows, int64_t bytes, BackendStream *stream) {
    const void *arrays[] = {to, from};
    if (rows == 0 || bytes == 0 || !cuda_begin(backend, stream, arrays, 2)) return;
    int64_t all = to_stride | from_stride | bytes;
    if (all % 16 == 0 && aligned(to, from))
        copy_rows<uint4>(to, to_stride, from, from_stride, rows, bytes, stream->handle);
    else if (all % 2 == 0 && ((uintptr_t)to | (uintptr_t)from) % 2 == 0)
        copy_rows<uint16_t>(to, to_stride, from, from_stride, rows, bytes, stream->handle);
    else
        copy_rows<uint8_t>(to, to_stride, from, from_stride, rows, bytes, stream->handle);
    cuda_end(backend, stream, cudaGetLastError(), "copy_rows");
}
