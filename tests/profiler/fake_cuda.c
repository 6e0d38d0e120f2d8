#include "tests/profiler/fake_cuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_GPUS = 8, PAGE = 4096 };

typedef struct {
    cudaStream_t copying; // the stream of a kernel that copies; NULL: none
    BesideState *state;
    double copying_from_s, group_until_s;
    double host_s; // what the host has waited for: nothing queued later begins before
    int num_blocks, num_late;
    bool is_late;
    size_t used_bytes;
} FakeGpu;

static FakeGpu gpus[MOST_GPUS]; // each used by one thread at a time
static _Thread_local int current;

int fake_value(const char *name) {
    const char *found = getenv("FAKE_CUDA");
    found = found ? strstr(found, name) : NULL;
    return found ? atoi(found + strlen(name) + 1) : -1;
}

// --- Time

double fake_now_s(cudaStream_t stream) {
    double host_s = gpus[stream->device].host_s;
    if (stream->end_s < host_s) stream->end_s = host_s;
    return stream->end_s;
}

// Returns when it begins.
static double stream_add(cudaStream_t stream, double work_s, bool product) {
    const FakeGpu *gpu = &gpus[stream->device];
    double begin_s = fake_now_s(stream), group_s = gpu->group_until_s - begin_s;
    if (product && gpu->copying) work_s *= (double)FAKE_NUM_SMS / (FAKE_NUM_SMS - gpu->num_blocks);
    if (product && group_s > 0) {
        double slower = (double)FAKE_NUM_SMS / (FAKE_NUM_SMS - FAKE_GROUP_SMS);
        work_s += fmin(work_s, group_s / slower) * (slower - 1);
    }
    stream->end_s = begin_s + work_s + (gpu->is_late ? FAKE_LATE_S : 0);
    return begin_s;
}

void fake_work(cudaStream_t stream, double work_s, bool product) {
    double begin_s = stream_add(stream, work_s, product);
    fake_record("fake_kernel", begin_s, stream->end_s);
}

cudaError_t fake_product(cudaStream_t stream, double work_s, int rows) {
    const cudaError_t error = fake_load(stream, work_s, gpus[stream->device].copying != NULL);
    if (error != cudaSuccess) return error;
    double begin_s = stream_add(stream, work_s, true);
    fake_record_product(rows, begin_s, stream->end_s);
    return cudaSuccess;
}

void fake_group_until(int device, double end_s) {
    gpus[device].group_until_s = end_s;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    (*out)->device = current;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    FakeGpu *gpu = &gpus[stream->device];
    if (gpu->copying == stream) return cudaErrorNotReady;
    gpu->host_s = fake_now_s(stream);
    gpu->is_late = false;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
    return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    event->at_s = fake_now_s(stream);
    event->running = gpus[stream->device].copying == stream ? stream : NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    if (event->running) return cudaErrorNotReady; // it would wait for ever
    if (fake_now_s(stream) < event->at_s) stream->end_s = event->at_s;
    return cudaSuccess;
}

static double event_s(cudaEvent_t event) {
    return event->running ? event->running->end_s : event->at_s;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    *ms = (float)(1e3 * (event_s(end) - event_s(start)));
    return cudaSuccess;
}

// --- Memory: of the host, not there until it is touched

cudaError_t cudaMalloc(void **out, size_t bytes) {
    FakeGpu *gpu = &gpus[current];
    double most_bytes = fake_value("memory") == current ? 1e9 : 80e9;
    if ((double)gpu->used_bytes + (double)bytes > most_bytes) return cudaErrorMemoryAllocation;
    char *pages = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return cudaErrorMemoryAllocation;
    ((size_t *)(void *)pages)[0] = bytes;
    ((size_t *)(void *)pages)[1] = (size_t)current;
    gpu->used_bytes += bytes;
    *out = pages + PAGE;
    return cudaSuccess;
}

cudaError_t cudaFree(void *array) {
    if (!array) return cudaSuccess;
    char *pages = (char *)array - PAGE;
    size_t bytes = ((size_t *)(void *)pages)[0];
    gpus[((size_t *)(void *)pages)[1]].used_bytes -= bytes;
    munmap(pages, bytes + PAGE);
    return cudaSuccess;
}

enum { SMALL_BYTES = 1 << 12, MOST_PINNED = 8 };

static struct {
    const char *from, *to;
} pinned[MOST_PINNED]; // large arrays; those of gates are many and small

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
    (void)flags;
    int i = 0;
    *out = calloc(1, bytes);
    if (bytes <= SMALL_BYTES) return cudaSuccess;
    while (i < MOST_PINNED && pinned[i].from) i++;
    if (i == MOST_PINNED || fake_value("pinned") == 0) {
        free(*out);
        return cudaErrorMemoryAllocation;
    }
    pinned[i].from = *out;
    pinned[i].to = pinned[i].from + bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *array) {
    for (int i = 0; i < MOST_PINNED; i++)
        if (array && pinned[i].from == array) pinned[i].from = pinned[i].to = NULL;
    free(array);
    return cudaSuccess;
}

static bool is_pinned(const char *array, size_t bytes) {
    for (int i = 0; i < MOST_PINNED; i++)
        if (pinned[i].from && array >= pinned[i].from && array + bytes <= pinned[i].to) return true;
    return false;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned flags) {
    (void)flags;
    *out = host;
    return cudaSuccess;
}

// The copying kernel ends, and says how much it has copied.
static void copying_end(FakeGpu *gpu, double end_s) {
    double bytes = gpu->num_blocks * FAKE_COPY_BYTES_PER_S * (end_s - gpu->copying_from_s);
    gpu->state->num_pieces = (unsigned long long)(bytes / (2.0 * BESIDE_PIECE_BYTES) + 0.5);
    gpu->copying->end_s = end_s;
    gpu->copying = NULL;
}

cudaError_t cudaMemsetAsync(void *array, int value, size_t bytes, cudaStream_t stream) {
    FakeGpu *gpu = &gpus[stream->device];
    if (bytes <= PAGE) memset(array, value, bytes); // the state of a kernel, not an array
    if (gpu->copying && array == (void *)&gpu->state->stop) copying_end(gpu, fake_now_s(stream));
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    (void)kind;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    bool to_device = kind == cudaMemcpyHostToDevice;
    if (bytes <= SMALL_BYTES || !is_pinned(to_device ? from : to, bytes))
        return cudaMemcpy(to, from, bytes, kind);
    double bytes_per_s = to_device ? FAKE_TO_DEVICE_BYTES_PER_S : FAKE_TO_HOST_BYTES_PER_S;
    fake_work(stream, FAKE_CALL_S + (double)bytes / bytes_per_s, false);
    return cudaSuccess;
}

// --- Devices

cudaError_t cudaGetDeviceCount(int *out) {
    *out = fake_value("gpus") > 0 ? fake_value("gpus") : 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
    (void)device;
    memset(out, 0, sizeof *out);
    strcpy(out->name, "GPU of a fake runtime");
    out->major = 9;
    out->multiProcessorCount = FAKE_NUM_SMS;
    out->totalGlobalMem = (size_t)80e9;
    out->l2CacheSize = 50 << 20;
    out->memoryBusWidth = 5120;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr name, int device) {
    (void)name, (void)device;
    *out = 1980000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int device) {
    (void)device;
    snprintf(out, (size_t)size, "0000:00:00.0");
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *out) {
    *out = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *out) {
    return cudaDriverGetVersion(out);
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorNotReady";
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory" : "it would never end";
}

// --- Graphs: there are none

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    (void)stream, (void)mode;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
    (void)stream;
    *out = NULL;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                 unsigned long long flags) {
    (void)graph, (void)flags;
    *out = NULL;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    (void)exec;
    fake_work(stream, FAKE_CALL_S, false);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    (void)graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    (void)exec;
    return cudaSuccess;
}

// --- Kernels

cudaError_t kernel_fill(void *array, Number dtype, size_t num_elements, BufferFill fill, int limit,
                        uint64_t seed, cudaStream_t stream) {
    (void)array, (void)dtype, (void)num_elements, (void)fill, (void)limit, (void)seed;
    fake_work(stream, FAKE_CALL_S, false);
    return cudaSuccess;
}

cudaError_t kernel_gate(unsigned *gate, unsigned ticket, uint64_t most_ns, cudaStream_t stream) {
    (void)ticket, (void)most_ns;
    FakeGpu *gpu = &gpus[stream->device];
    stream->end_s = fake_now_s(stream) + stream->device * FAKE_GATE_S;
    gpu->is_late = fake_value("late") == stream->device && gpu->num_late++ < 8;
    if (gpu->is_late) gate[1]++;
    return cudaSuccess;
}

cudaError_t kernel_empty(cudaStream_t stream) {
    fake_work(stream, FAKE_CALL_S, false);
    return cudaSuccess;
}

cudaError_t kernel_pause(uint64_t pause_ns, cudaStream_t stream) {
    fake_work(stream, 1e-9 * (double)pause_ns, false);
    return fake_load(stream, FAKE_PAUSE, gpus[stream->device].copying != NULL);
}

cudaError_t kernel_beside(const void *from, void *to, int num_blocks, BesideState *state,
                          uint64_t most_ns, cudaStream_t stream) {
    (void)from, (void)to, (void)most_ns;
    FakeGpu *gpu = &gpus[stream->device];
    if (gpu->copying || state->stop || state->started) return cudaErrorNotReady;
    gpu->copying = stream;
    gpu->copying_from_s = fake_now_s(stream);
    gpu->num_blocks = num_blocks;
    gpu->state = state;
    state->started = (unsigned)num_blocks;
    return cudaSuccess;
}

cudaError_t kernel_await(const BesideState *state, int num_blocks, uint64_t most_ns,
                         cudaStream_t stream) {
    (void)most_ns;
    const cudaError_t error = fake_load(stream, FAKE_AWAIT, gpus[stream->device].copying != NULL);
    if (error != cudaSuccess) return error;
    return state->started == (unsigned)num_blocks ? cudaSuccess : cudaErrorNotReady;
}

// At 2 TB/s, each element once.
static cudaError_t memory_kernel(const KernelCall *call) {
    fake_work(call->stream, FAKE_CALL_S + 2.0 * (double)call->rows * (double)call->columns / 2e12,
              false);
    return cudaSuccess;
}

#define KERNELS(X)                                                                                 \
    X(copy)                                                                                        \
    X(add)                                                                                         \
    X(cast_to_float32)                                                                             \
    X(cast_from_float32)                                                                           \
    X(swiglu_forward)                                                                              \
    X(swiglu_backward)                                                                             \
    X(gelu_forward)                                                                                \
    X(gelu_backward)                                                                               \
    X(rope)                                                                                        \
    X(dropout_add)                                                                                 \
    X(embedding_forward)                                                                           \
    X(embedding_backward)                                                                          \
    X(adamw)                                                                                       \
    X(memset)                                                                                      \
    X(rmsnorm_forward)                                                                             \
    X(rmsnorm_backward)                                                                            \
    X(layernorm_forward)                                                                           \
    X(layernorm_backward)                                                                          \
    X(softmax_forward)                                                                             \
    X(softmax_backward)                                                                            \
    X(cross_entropy_forward)                                                                       \
    X(cross_entropy_backward)                                                                      \
    X(gradient_norm)
#define KERNEL(name)                                                                               \
    cudaError_t kernel_##name(const KernelCall *call) {                                            \
        return memory_kernel(call);                                                                \
    }
KERNELS(KERNEL)
