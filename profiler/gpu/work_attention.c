// profiler/gpu/work_attention.c - calls of attention as the backend has it: by cuDNN where that is
// installed and knows the shape, else by its own kernels.
#include "profiler/gpu/gpu_kernels.h"
#include "profiler/gpu/gpu_session.h"

#include <stdlib.h>

#define MOST_POOL_BYTES 16e9
enum { BF16_BYTES = 2, FP32_BYTES = 4 };

typedef struct {
    AttentionArrays arrays; // in a copy
} AttentionWork;

static Status call_on(GpuWork *work, int copy, bool backward) {
    const AttentionWork *own = work->own;
    Backend *backend = work->session->backend;
    Attention call = attention_call(&work->request.attention, &own->arrays,
                                    work->base + (size_t)copy * work->copy_bytes);
    if (backward)
        backend->table->attention_backward(backend, &call, backend->stream);
    else
        backend->table->attention_forward(backend, &call, backend->stream);
    return backend->failure;
}

static Status call(GpuWork *work) {
    return call_on(work, gpu_next_copy(work), work->request.attention.backward);
}

// A backend that has failed does nothing more.
static void free_own(GpuWork *work) {
    Backend *backend = work->session->backend;
    if (backend && backend->failure.code != STATUS_OK) gpu_backend_close(work->session);
    free(work->own);
}

static Status place(GpuWork *work, int num_copies) {
    AttentionWork *own = work->own;
    own->arrays = attention_arrays(&work->request.attention, BF16_BYTES, FP32_BYTES);
    work->copy_bytes = own->arrays.all_bytes;
    work->num_copies = num_copies > 0 ? num_copies
                                      : gpu_num_copies(work->session, (double)work->copy_bytes,
                                                       work->copy_bytes, MOST_POOL_BYTES);
    TRY(gpu_pool(work->session, (size_t)work->num_copies * work->copy_bytes));
    work->base = work->session->pool;
    return status_ok();
}

// Inputs are normal; what the backward reads of the forward is what that gives.
static Status fill(GpuWork *work) {
    static const AttentionArray INPUTS[] = {ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_DOUT};
    const AttentionArrays *arrays = &((const AttentionWork *)work->own)->arrays;
    for (int copy = 0; copy < work->num_copies; copy++) {
        char *base = work->base + (size_t)copy * work->copy_bytes;
        for (int i = 0; i < 4; i++)
            CUDA_TRY(kernel_fill(base + arrays->at[INPUTS[i]], NUMBER_BFLOAT16,
                                 arrays->bytes[INPUTS[i]] / BF16_BYTES, FILL_NORMAL, 1,
                                 (uint64_t)(4 * copy + i + 1), work->session->stream));
        if (work->request.attention.backward) TRY(call_on(work, copy, false));
    }
    CUDA_TRY(cudaStreamSynchronize(work->session->stream));
    return status_ok();
}

Status gpu_attention_prepare(GpuWork *work, int num_copies) {
    const AttentionRequest *request = &work->request.attention;
    if (request->batch < 1 || request->tokens < 1 || request->heads < 1 || request->kv_heads < 1 ||
        request->heads % request->kv_heads != 0 || request->head_dim < 1)
        return status_error(STATUS_INVALID,
                            "meshwright: attention of %d sequences of %d tokens, %d heads on %d of "
                            "%d; expected at least 1, and whole groups of heads",
                            request->batch, request->tokens, request->heads, request->kv_heads,
                            request->head_dim);
    TRY(gpu_backend_open(work->session));
    work->own = calloc(1, sizeof(AttentionWork));
    if (!work->own) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    work->free_own = free_own;
    work->call = call;
    TRY(place(work, num_copies));
    return fill(work);
}
