// profiler/gpu/work_memory.c - calls of the operators that memory bounds.
#include "profiler/gpu/gpu_kernels.h"
#include "profiler/gpu/gpu_session.h"

#include <stdlib.h>
#include <string.h>

#define MOST_POOL_BYTES 16e9

static const struct {
    const char *op;
    KernelLaunch launch;
    int64_t columns_multiple, most_columns;
} LAUNCHES[] = {
    {"copy", kernel_copy, 8, INT32_MAX},
    {"add", kernel_add, 8, INT32_MAX},
    {"cast_to_float32", kernel_cast_to_float32, 8, INT32_MAX},
    {"cast_from_float32", kernel_cast_from_float32, 8, INT32_MAX},
    {"rmsnorm_forward", kernel_rmsnorm_forward, 8, 16384},
    {"rmsnorm_backward", kernel_rmsnorm_backward, 8, 16384},
    {"layernorm_forward", kernel_layernorm_forward, 8, 16384},
    {"layernorm_backward", kernel_layernorm_backward, 8, 16384},
    {"softmax_forward", kernel_softmax_forward, 8, 16384},
    {"softmax_backward", kernel_softmax_backward, 8, 16384},
    {"swiglu_forward", kernel_swiglu_forward, 8, INT32_MAX},
    {"swiglu_backward", kernel_swiglu_backward, 8, INT32_MAX},
    {"gelu_forward", kernel_gelu_forward, 8, INT32_MAX},
    {"gelu_backward", kernel_gelu_backward, 8, INT32_MAX},
    {"rope", kernel_rope, MEMORY_HEAD, INT32_MAX},
    {"dropout_add", kernel_dropout_add, 8, INT32_MAX},
    {"embedding_forward", kernel_embedding_forward, 8, INT32_MAX},
    {"embedding_backward", kernel_embedding_backward, 8, INT32_MAX},
    {"cross_entropy_forward", kernel_cross_entropy_forward, 8, INT32_MAX},
    {"cross_entropy_backward", kernel_cross_entropy_backward, 8, INT32_MAX},
    {"adamw", kernel_adamw, 8, INT32_MAX},
    {"gradient_norm", kernel_gradient_norm, 8, INT32_MAX},
    {"memset", kernel_memset, 8, INT32_MAX},
};
enum { NUM_LAUNCHES = sizeof LAUNCHES / sizeof *LAUNCHES };

typedef struct {
    const MemoryOp *op;
    KernelLaunch launch;
    size_t offsets[MEMORY_MAX_BUFFERS]; // in a copy, or in the pool where all copies share it
} MemoryWork;

// A table is larger than the cache by itself, and scratch is of no one's.
static bool is_shared(const MemoryBuffer *buffer) {
    return buffer->extent == EXTENT_TABLE || buffer->use == BUFFER_SCRATCH;
}

static size_t buffer_bytes(const MemoryBuffer *buffer, const MemoryRequest *request) {
    return memory_buffer_elements(buffer, request->rows, request->columns) *
           number_bytes(buffer->dtype);
}

static void *buffer_of(GpuWork *work, int copy, int i) {
    const MemoryWork *memory = work->own;
    char *base = is_shared(&memory->op->buffers[i]) ? work->session->pool
                                                    : work->base + (size_t)copy * work->copy_bytes;
    return base + memory->offsets[i];
}

static Status call(GpuWork *work) {
    const MemoryWork *memory = work->own;
    KernelCall kernel = {
        .rows = work->request.memory.rows,
        .columns = work->request.memory.columns,
        .num_sms = work->session->num_sms,
        .stream = work->session->stream,
    };
    int copy = gpu_next_copy(work);
    for (int i = 0; i < memory->op->num_buffers; i++) kernel.buffers[i] = buffer_of(work, copy, i);
    cudaError_t error = memory->launch(&kernel);
    return error == cudaSuccess ? status_ok() : gpu_cuda_error(error, memory->op->name);
}

static void free_own(GpuWork *work) {
    free(work->own);
}

// Places shared arrays first, then the copies.
static Status place(GpuWork *work, int num_copies) {
    MemoryWork *memory = work->own;
    const MemoryRequest *request = &work->request.memory;
    size_t shared_bytes = 0;
    for (int i = 0; i < memory->op->num_buffers; i++) {
        const MemoryBuffer *buffer = &memory->op->buffers[i];
        size_t *at = is_shared(buffer) ? &shared_bytes : &work->copy_bytes;
        memory->offsets[i] = *at;
        *at += gpu_aligned(buffer_bytes(buffer, request));
    }
    double touched = memory_op_bytes(memory->op, request->rows, request->columns);
    work->num_copies =
        num_copies > 0 ? num_copies
                       : gpu_num_copies(work->session, touched, work->copy_bytes, MOST_POOL_BYTES);
    TRY(gpu_pool(work->session, shared_bytes + (size_t)work->num_copies * work->copy_bytes));
    work->base = (char *)work->session->pool + shared_bytes;
    return status_ok();
}

static Status fill(GpuWork *work) {
    const MemoryWork *memory = work->own;
    const MemoryRequest *request = &work->request.memory;
    GpuSession *session = work->session;
    for (int copy = 0; copy < work->num_copies; copy++) {
        for (int i = 0; i < memory->op->num_buffers; i++) {
            const MemoryBuffer *buffer = &memory->op->buffers[i];
            if (is_shared(buffer) && copy > 0) continue;
            void *array = buffer_of(work, copy, i);
            size_t n = memory_buffer_elements(buffer, request->rows, request->columns);
            if (buffer->fill == FILL_ZERO) {
                CUDA_TRY(
                    cudaMemsetAsync(array, 0, n * number_bytes(buffer->dtype), session->stream));
                continue;
            }
            int limit = buffer->fill == FILL_VOCAB ? MEMORY_VOCAB : (int)request->columns;
            uint64_t seed = (uint64_t)copy * MEMORY_MAX_BUFFERS + (uint64_t)i + 1;
            CUDA_TRY(
                kernel_fill(array, buffer->dtype, n, buffer->fill, limit, seed, session->stream));
        }
    }
    CUDA_TRY(cudaStreamSynchronize(session->stream));
    return status_ok();
}

Status gpu_memory_prepare(GpuWork *work, int num_copies) {
    const MemoryRequest *request = &work->request.memory;
    int i = 0;
    while (i < NUM_LAUNCHES && strcmp(LAUNCHES[i].op, request->op) != 0) i++;
    const MemoryOp *op = memory_op_find(request->op);
    if (i == NUM_LAUNCHES || !op)
        return status_error(STATUS_INVALID, "meshwright: the GPU plugin has no operator %s",
                            request->op);
    if (request->rows < 1 || request->rows > INT32_MAX || request->columns < 1 ||
        request->columns % LAUNCHES[i].columns_multiple != 0 ||
        request->columns > LAUNCHES[i].most_columns)
        return status_error(STATUS_INVALID,
                            "meshwright: %s: %lld rows of %lld columns; expected a multiple of "
                            "%lld columns, at most %lld",
                            request->op, (long long)request->rows, (long long)request->columns,
                            (long long)LAUNCHES[i].columns_multiple,
                            (long long)LAUNCHES[i].most_columns);
    MemoryWork *memory = calloc(1, sizeof *memory);
    if (!memory) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    *memory = (MemoryWork){.op = op, .launch = LAUNCHES[i].launch};
    work->own = memory;
    work->free_own = free_own;
    work->call = call;
    TRY(place(work, num_copies));
    return fill(work);
}

Status gpu_memory_apply(GpuWork *work, void *const *buffers) {
    const MemoryWork *memory = work->own;
    GpuSession *session = work->session;
    for (int i = 0; i < memory->op->num_buffers; i++) {
        const MemoryBuffer *buffer = &memory->op->buffers[i];
        if (buffer->use != BUFFER_READ && buffer->use != BUFFER_BOTH) continue;
        CUDA_TRY(cudaMemcpyAsync(buffer_of(work, 0, i), buffers[i],
                                 buffer_bytes(buffer, &work->request.memory),
                                 cudaMemcpyHostToDevice, session->stream));
    }
    work->next_copy = 0;
    TRY(call(work));
    for (int i = 0; i < memory->op->num_buffers; i++) {
        const MemoryBuffer *buffer = &memory->op->buffers[i];
        if (buffer->use != BUFFER_WRITE && buffer->use != BUFFER_BOTH) continue;
        CUDA_TRY(cudaMemcpyAsync(buffers[i], buffer_of(work, 0, i),
                                 buffer_bytes(buffer, &work->request.memory),
                                 cudaMemcpyDeviceToHost, session->stream));
    }
    CUDA_TRY(cudaStreamSynchronize(session->stream));
    return status_ok();
}
