// tests/checked_gpu/maps.c - kernels whose arguments are no structure, as kernels.c has the others.
#include "backend/cpu_backend.h"
#include "backend/cuda/cuda_device.h"
#include "tests/checked_gpu/kernels.h"

// All that any of them takes.
typedef struct {
    void *to;
    const void *from, *other;
    double factor;
    Dtype to_dtype, from_dtype;
    bool accumulate;
    int64_t rows, columns, to_stride, from_stride, count;
} Map;

static void map_launch(Backend *backend, BackendStream *stream, const char *what,
                       void (*run)(void *), const Map *map, const Accesses *accesses) {
    const Call call = {
        .what = what, .accesses = *accesses, .run = run, .arguments = map, .bytes = sizeof *map};
    checked_launch(backend, stream, &call);
}

static void run_add(void *arguments) {
    const Map *m = arguments;
    Backend *cpu = checked_cpu();
    cpu->table->add(cpu, m->to, m->from, m->other, m->count, cpu->stream);
}

void cuda_add(Backend *backend, void *y, const void *a, const void *b, int64_t count,
              BackendStream *stream) {
    Accesses accesses = {.num = 0};
    reads(&accesses, a, count * 4);
    reads(&accesses, b, count * 4);
    writes(&accesses, y, count * 4);
    map_launch(backend, stream, "add", run_add,
               &(Map){.to = y, .from = a, .other = b, .count = count}, &accesses);
}

static void run_scale(void *arguments) {
    const Map *m = arguments;
    Backend *cpu = checked_cpu();
    cpu->table->scale(cpu, m->to, m->factor, m->to_dtype, m->count, cpu->stream);
}

void cuda_scale(Backend *backend, void *y, double scale, Dtype dtype, int64_t count,
                BackendStream *stream) {
    Accesses accesses = {.num = 0};
    updates(&accesses, y, count * (int64_t)dtype_bytes(dtype));
    map_launch(backend, stream, "scale", run_scale,
               &(Map){.to = y, .factor = scale, .to_dtype = dtype, .count = count}, &accesses);
}

static void run_cast(void *arguments) {
    const Map *m = arguments;
    Backend *cpu = checked_cpu();
    cpu->table->cast(cpu, m->to, m->to_dtype, m->from, m->from_dtype, m->accumulate, m->count,
                     cpu->stream);
}

void cuda_cast(Backend *backend, void *to, Dtype to_dtype, const void *from, Dtype from_dtype,
               bool accumulate, int64_t count, BackendStream *stream) {
    Accesses accesses = {.num = 0};
    reads(&accesses, from, count * (int64_t)dtype_bytes(from_dtype));
    if (accumulate) reads(&accesses, to, count * (int64_t)dtype_bytes(to_dtype));
    writes(&accesses, to, count * (int64_t)dtype_bytes(to_dtype));
    map_launch(backend, stream, "cast", run_cast,
               &(Map){.to = to,
                      .from = from,
                      .to_dtype = to_dtype,
                      .from_dtype = from_dtype,
                      .accumulate = accumulate,
                      .count = count},
               &accesses);
}

static void run_copy_rows(void *arguments) {
    const Map *m = arguments;
    Backend *cpu = checked_cpu();
    cpu->table->copy_rows(cpu, m->to, m->to_stride, m->from, m->from_stride, m->rows, m->columns,
                          cpu->stream);
}

static Access rows_of(const void *array, int64_t stride, int64_t rows, int64_t bytes, bool write) {
    return (Access){.begin = array,
                    .bytes = (size_t)bytes,
                    .rows = rows,
                    .stride_bytes = stride,
                    .planes = 1,
                    .read = !write,
                    .write = write};
}

void cuda_copy_rows(Backend *backend, void *to, int64_t to_stride, const void *from,
                    int64_t from_stride, int64_t rows, int64_t bytes, BackendStream *stream) {
    Accesses accesses = {.num = 0};
    accesses_add(&accesses, rows_of(from, from_stride, rows, bytes, false));
    accesses_add(&accesses, rows_of(to, to_stride, rows, bytes, true));
    map_launch(backend, stream, "copy_rows", run_copy_rows,
               &(Map){.to = to,
                      .from = from,
                      .to_stride = to_stride,
                      .from_stride = from_stride,
                      .rows = rows,
                      .columns = bytes},
               &accesses);
}

static void run_bias(void *arguments) {
    const Map *m = arguments;
    float *out = m->to;
    const float *bias = m->from;
    for (int64_t i = 0; i < m->rows * m->columns; i++) out[i] += bias[i % m->columns];
}

// Called within a product, which has begun already.
cudaError_t cuda_add_bias(Backend *backend, void *out, bool out_wide, const void *bias,
                          int64_t rows, int64_t columns, BackendStream *stream) {
    (void)backend, (void)out_wide;
    const Map map = {.to = out, .from = bias, .rows = rows, .columns = columns};
    Call call = {.what = "a bias", .run = run_bias, .arguments = &map, .bytes = sizeof map};
    updates(&call.accesses, out, rows * columns * 4);
    reads(&call.accesses, bias, columns * 4);
    return checked_queue(stream->handle, &call);
}

static void run_sum_squares(void *arguments) {
    const Map *m = arguments;
    Backend *cpu = checked_cpu();
    cpu->table->sum_squares(cpu, m->to, m->from, m->count, cpu->stream);
}

// Through memory of the call's own, as backend/cuda/kernels_sums.cu does it.
void cuda_sum_squares(Backend *backend, void *sum, const void *x, int64_t count,
                      BackendStream *stream) {
    enum { PARTS_BYTES = 1024 };
    if (count == 0) return;
    void *parts = cuda_scratch(backend, stream, PARTS_BYTES);
    Accesses accesses = {.num = 0};
    reads(&accesses, x, count * 4);
    writes(&accesses, parts, PARTS_BYTES);
    updates(&accesses, sum, 4);
    map_launch(backend, stream, "sum_squares", run_sum_squares,
               &(Map){.to = sum, .from = x, .count = count}, &accesses);
    cuda_scratch_free(backend, stream, parts);
}

static void run_sum_rows(void *arguments) {
    const Map *m = arguments;
    Backend *cpu = checked_cpu();
    cpu->table->sum_rows(cpu, m->to, m->from, m->rows, m->columns, cpu->stream);
}

void cuda_sum_rows(Backend *backend, void *sums, const void *x, int64_t rows, int64_t columns,
                   BackendStream *stream) {
    Accesses accesses = {.num = 0};
    reads(&accesses, x, rows * columns * 4);
    updates(&accesses, sums, columns * 4);
    map_launch(backend, stream, "sum_rows", run_sum_rows,
               &(Map){.to = sums, .from = x, .rows = rows, .columns = columns}, &accesses);
}
