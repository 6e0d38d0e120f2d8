// tests/checked_gpu/host_program.c - the checked GPU finds what it says it finds; and the CUDA
// backend's own host code holds on it (streams.c).
//
// Usage: checked-host   (MESHWRIGHT_CUDA_BACKEND: the library that was built on the checked GPU)
#include "tests/checked_gpu/host_program.h"
#include "backend/cuda_backend.h"
#include "tests/checked_gpu/checked_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int num_failed;

void expect(bool holds, const char *what) {
    printf("%-6s %s\n", holds ? "ok" : "FAILED", what);
    num_failed += !holds;
}

// --- What is found

typedef struct {
    cudaStream_t a, b;
    cudaEvent_t event;
    float *array; // [64], allocated on a, written there
    float host[64];
} Bench;

static void event_between(Bench *t) {
    cudaEventRecord(t->event, t->a);
    cudaStreamWaitEvent(t->b, t->event, 0);
}

static void nothing(Bench *t) {
    event_between(t);
    cudaMemsetAsync(t->array, 0, 256, t->b);
}

static void read_of_unwritten(Bench *t) {
    void *other;
    cudaMallocAsync(&other, 256, t->a);
    cudaMemcpyAsync(t->array, other, 256, cudaMemcpyDeviceToDevice, t->a);
    cudaFreeAsync(other, t->a);
}

static void beyond_the_end(Bench *t) {
    cudaMemsetAsync(t->array, 0, 260, t->a);
}

static void given_back(Bench *t) {
    void *other;
    cudaMallocAsync(&other, 256, t->a);
    cudaFreeAsync(other, t->a);
    cudaMemsetAsync(other, 0, 256, t->a);
}

static void given_back_twice(Bench *t) {
    void *other;
    cudaMallocAsync(&other, 256, t->a);
    cudaFreeAsync(other, t->a);
    cudaFreeAsync(other, t->a);
}

static void write_beside_write(Bench *t) {
    cudaMemsetAsync(t->array, 0, 256, t->b);
}

static void write_beside_read(Bench *t) {
    event_between(t);
    cudaMemcpyAsync(t->host, t->array, 256, cudaMemcpyDeviceToHost, t->b);
    cudaMemsetAsync(t->array, 0, 256, t->a);
}

static void reads_beside_reads(Bench *t) {
    event_between(t);
    cudaMemcpyAsync(t->host, t->array, 128, cudaMemcpyDeviceToHost, t->a);
    cudaMemcpyAsync(t->host + 32, t->array, 128, cudaMemcpyDeviceToHost, t->b);
}

static void writes_of_two_halves(Bench *t) {
    event_between(t);
    cudaMemsetAsync(t->array, 0, 128, t->a);
    cudaMemsetAsync(t->array + 32, 0, 128, t->b);
}

static void released_beside_use(Bench *t) {
    void *other;
    cudaMallocAsync(&other, 256, t->a);
    event_between(t);
    cudaMemsetAsync(other, 0, 256, t->b);
    cudaFreeAsync(other, t->a);
}

static void host_waited(Bench *t) {
    cudaStreamSynchronize(t->a);
    cudaMemsetAsync(t->array, 0, 256, t->b);
}

static void event_of_before(Bench *t) {
    event_between(t);
    cudaMemsetAsync(t->array, 0, 256, t->a); // comes behind the event
    cudaMemsetAsync(t->array, 0, 256, t->b);
}

static void not_pinned(Bench *t) {
    cudaMemcpyAsync(t->array, t->host, 256, cudaMemcpyHostToDevice, t->a);
}

static void not_recorded(Bench *t) {
    cudaStreamWaitEvent(t->b, t->event, 0);
}

static void not_timed(Bench *t) {
    float ms;
    cudaEventElapsedTime(&ms, t->event, t->event);
}

static int findings_of(void (*mistake)(Bench *)) {
    Bench t = {0};
    void *array;
    cudaStreamCreateWithFlags(&t.a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&t.b, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&t.event, cudaEventDisableTiming);
    cudaMallocAsync(&array, 256, t.a);
    t.array = array;
    cudaMemsetAsync(array, 0, 256, t.a);
    checked_count();
    mistake(&t);
    const int num = checked_count();
    cudaDeviceSynchronize();
    cudaFreeAsync(array, t.a);
    cudaDeviceSynchronize();
    cudaEventDestroy(t.event);
    cudaStreamDestroy(t.a);
    cudaStreamDestroy(t.b);
    checked_count();
    return num;
}

static void test_findings(void) {
    static const struct {
        void (*mistake)(Bench *);
        int found;
        const char *what;
    } CASES[] = {
        {nothing, 0, "an event between two writes: nothing to find"},
        {reads_beside_reads, 0, "two streams that read: nothing to find"},
        {writes_of_two_halves, 0, "two streams that write other halves: nothing to find"},
        {host_waited, 0, "the host waited in between: nothing to find"},
        {read_of_unwritten, 1, "what nobody wrote is read"},
        {beyond_the_end, 1, "a write beyond the end of an array"},
        {given_back, 1, "a write of what was given back"},
        {given_back_twice, 1, "an array given back twice"},
        {write_beside_write, 1, "two streams write"},
        {write_beside_read, 1, "one stream writes what another reads"},
        {released_beside_use, 1, "an array given back that another stream uses"},
        {event_of_before, 1, "a write behind the event that another stream waits for"},
        {not_pinned, 1, "a copy from memory that is not pinned"},
        {not_recorded, 1, "a wait for what nobody recorded"},
        {not_timed, 2, "the time of events without, which nobody recorded"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const int found = findings_of(CASES[i].mistake);
        expect(CASES[i].found > 1 ? found > 0 : found == CASES[i].found, CASES[i].what);
    }
}

// --- Products

// A forward product of each number of rows from 17 to 64; how many algorithms were asked for.
static int asked_for_rows(Backend *b, float *arrays, bool rows_vary) {
    enum { MOST_ROWS = 64, SIZE = 32 };
    const int before = checked_num_asked();
    for (int64_t rows = 17; rows <= MOST_ROWS; rows++)
        b->table->product(b,
                          &(Product){.layout = PRODUCT_FORWARD,
                                     .m = rows,
                                     .n = SIZE,
                                     .k = SIZE,
                                     .a = arrays,
                                     .b = arrays + MOST_ROWS * SIZE,
                                     .out = arrays + 2 * MOST_ROWS * SIZE,
                                     .rows_vary = rows_vary},
                          b->stream);
    return checked_num_asked() - before;
}

// Eight classes an octave; 12 of the 48 numbers (3 more than a multiple of 4) are refused there and
// asked for by themselves.
static void test_rows_that_vary(void) {
    enum { NUM_BYTES = 3 * 64 * 32 * 4 };
    Backend *b;
    expect(cuda_backend_open(0, DTYPE_FP32, &b).code == STATUS_OK, "a backend for products");
    float *arrays = b->table->alloc(b, NUM_BYTES);
    b->table->zero(b, arrays, NUM_BYTES, b->stream);
    expect(asked_for_rows(b, arrays, true) == 16 + 12,
           "algorithms are asked for by classes of rows");
    expect(asked_for_rows(b, arrays, true) == 0, "once");
    expect(asked_for_rows(b, arrays, false) == 48 - 12, "and by number where rows do not vary");
    expect(b->failure.code == STATUS_OK, "products of varying rows");
    b->table->release(b, arrays, NUM_BYTES);
    b->table->close(b);
}

// --- Failures

static void test_out_of_memory(void) {
    Backend *b;
    setenv("CHECKED_GPU", "memory=2", 1);
    bool well = cuda_backend_open(0, DTYPE_FP32, &b).code == STATUS_OK;
    void *half = well ? b->table->alloc(b, 1 << 20) : NULL;
    void *more = well ? b->table->alloc(b, 1 << 24) : NULL;
    well = well && half && !more && b->failure.code == STATUS_MACHINE;
    expect(well && strstr(b->failure.text, "0.016 GiB were asked for on a checked GPU") &&
               strstr(b->failure.text, "0.001 GiB of its 0.002 GiB are free"),
           "too large an array: what was asked for, what is free");
    expect(b->table->alloc(b, 16) == NULL, "nothing is done behind a failure");
    b->table->close(b);
    unsetenv("CHECKED_GPU");
}

int main(void) {
    Backend *backend;
    const Status status = cuda_backend_open(0, DTYPE_FP32, &backend);
    if (status.code != STATUS_OK) {
        fprintf(stderr, "%s\n", status.text);
        return 1;
    }
    backend->table->close(backend);
    test_findings();
    test_programs();
    test_lost_waits();
    test_each_wait();
    test_rows_that_vary();
    test_out_of_memory();
    checked_count();
    printf("%d failed\n", num_failed);
    return num_failed == 0 ? 0 : 1;
}
