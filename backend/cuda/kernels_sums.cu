// backend/cuda/kernels_sums.cu - sums over many elements, each in an order of its own, so that the
// same input gives the same bytes.
#include "backend/cuda/call.cuh"

// --- Of parts

// Blocks of 32 x 16 threads.
__global__ void add_parts(const float *parts, int num_parts, int64_t part_stride, int64_t width,
                          float *out) {
    __shared__ float shared[16][33];
    int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (column < width)
        for (int i = threadIdx.y; i < num_parts; i += 16) sum += parts[i * part_stride + column];
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= width) return;
    for (int i = 1; i < 16; i++) sum += shared[i][threadIdx.x];
    out[column] += sum;
}

cudaError_t sums_add_parts(const float *parts, int num_parts, int64_t part_stride, int64_t width,
                           float *out, cudaStream_t stream) {
    add_parts<<<(unsigned)((width + 31) / 32), dim3(32, 16), 0, stream>>>(parts, num_parts,
                                                                          part_stride, width, out);
    return cudaGetLastError();
}

// One block; in double, since there may be as many parts as tokens.
__global__ void __launch_bounds__(1024) add_all(const float *parts, int64_t count, float *out) {
    __shared__ double shared[32];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += 1024) sum += parts[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = shared[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) out[0] += (float)sum;
}

cudaError_t sums_add_all(const float *parts, int64_t count, float *out, cudaStream_t stream) {
    add_all<<<1, 1024, 0, stream>>>(parts, count, out);
    return cudaGetLastError();
}

// --- Squares

template <int N>
__global__ void __launch_bounds__(512) square_parts(const float *x, int64_t count, float *parts) {
    __shared__ float shared[32];
    float sum = 0;
    int64_t stride = (int64_t)gridDim.x * 512 * N;
    for (int64_t i = ((int64_t)blockIdx.x * 512 + threadIdx.x) * N; i < count; i += stride) {
        float v[N];
        pack_load(x + i, v);
#pragma unroll
        for (int j = 0; j < N; j++) sum += v[j] * v[j];
    }
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

void cuda_sum_squares(Backend *backend, void *sum, const void *x, int64_t count,
                      BackendStream *stream) {
    const void *arrays[] = {sum, x};
    if (count == 0 || !cuda_begin(backend, stream, arrays, 2)) return;
    bool packs = count % PACK == 0 && aligned(x);
    int64_t units = packs ? count / PACK : count;
    int64_t blocks = (units + 511) / 512, most = 4 * num_sms(backend);
    if (blocks > most) blocks = most;
    float *parts = (float *)cuda_scratch(backend, stream, (size_t)blocks * sizeof(float));
    if (!parts) return;
    if (packs)
        square_parts<PACK>
            <<<(unsigned)blocks, 512, 0, stream->handle>>>((const float *)x, count, parts);
    else
        square_parts<1>
            <<<(unsigned)blocks, 512, 0, stream->handle>>>((const float *)x, count, parts);
    cudaError_t error = sums_add_all(parts, blocks, (float *)sum, stream->handle);
    cuda_scratch_free(backend, stream, parts);
    cuda_end(backend, stream, error, "sum_squares");
}

// --- Columns

// parts[gridDim.y][columns]: block (x, y) has 32 N columns and every gridDim.y-th group of 8 rows.
template <class T, int N>
__global__ void __launch_bounds__(256)
    column_parts(const T *x, int64_t rows, int64_t columns, float *parts) {
    __shared__ float shared[8][32 * N + 1];
    int64_t column = ((int64_t)blockIdx.x * 32 + threadIdx.x) * N;
    float sum[N] = {};
    if (column < columns)
        for (int64_t row = blockIdx.y * 8 + threadIdx.y; row < rows; row += gridDim.y * 8) {
            float v[N];
            pack_load(x + row * columns + column, v);
#pragma unroll
            for (int j = 0; j < N; j++) sum[j] += v[j];
        }
#pragma unroll
    for (int j = 0; j < N; j++) shared[threadIdx.y][threadIdx.x * N + j] = sum[j];
    __syncthreads();
    int64_t first = (int64_t)blockIdx.x * 32 * N;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 32 * N; i += 256) {
        float total = 0;
        for (int y = 0; y < 8; y++) total += shared[y][i];
        if (first + i < columns) parts[blockIdx.y * columns + first + i] = total;
    }
}

template <class T, int N>
static cudaError_t column_sums(Backend *backend, float *sums, const T *x, int64_t rows,
                               int64_t columns, BackendStream *stream) {
    int64_t across = (columns + 32 * N - 1) / (32 * N), down = (rows + 7) / 8;
    int64_t most = 8 * num_sms(backend) / across + 1;
    if (down > most) down = most;
    float *parts = (float *)cuda_scratch(backend, stream, (size_t)(down * columns) * sizeof(float));
    if (!parts) return cudaSuccess; // the failure is kept
    column_parts<T, N><<<dim3((unsigned)across, (unsigned)down), dim3(32, 8), 0, stream->handle>>>(
        x, rows, columns, parts);
    cudaError_t error = sums_add_parts(parts, (int)down, columns, columns, sums, stream->handle);
    cuda_scratch_free(backend, stream, parts);
    return error;
}

template <class T>
static cudaError_t sum_rows(Backend *backend, void *sums, const void *x, int64_t rows,
                            int64_t columns, BackendStream *stream) {
    if (columns % PACK == 0 && aligned(x))
        return column_sums<T, PACK>(backend, (float *)sums, (const T *)x, rows, columns, stream);
    return column_sums<T, 1>(backend, (float *)sums, (const T *)x, rows, columns, stream);
}

void cuda_sum_rows(Backend *backend, void *sums, const void *x, int64_t rows, int64_t columns,
                   BackendStream *stream) {
    const void *arrays[] = {sums, x};
    if (rows == 0 || columns == 0 || !cuda_begin(backend, stream, arrays, 2)) return;
    cuda_end(backend, stream, CALL_ACT(backend, sum_rows, backend, sums, x, rows, columns, stream),
             "sum_rows");
}
