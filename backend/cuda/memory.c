// backend/cuda/memory.c - memory in the order of the compute stream, and copies.
//
// CUDA's pool hands out and takes back memory in the order of one stream, the compute stream, and
// keeps what it has: a step neither waits for the host nor asks the driver. Two rules make an array
// safe on other streams as well:
//   - a call on another stream first waits for the newest allocation, since its memory may have
//     been another array's until then;
//   - an array that another stream still uses when it is released stays until that stream's work is
//     over, or the compute stream has waited for it.
// Both need only counts of calls, kept on the host.
#include "backend/cuda/cuda_device.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    char *array;
    size_t bytes;                    // as asked for
    uint64_t used[CUDA_MAX_STREAMS]; // the last call of each other stream that used it
} Block;

// A released block that one other stream still uses.
typedef struct {
    Block *block;
    int stream;
    uint64_t num_queued; // calls of that stream that must be over
    cudaEvent_t done;
} Held;

struct CudaMemory {
    Block **blocks; // by address
    int num_blocks, max_blocks;
    Held *held; // oldest first
    int num_held, max_held;
    uint64_t newest; // calls of the compute stream at the newest allocation
};

static size_t at_least(size_t bytes) {
    return bytes ? bytes : 1;
}

Status cuda_memory_open(CudaBackend *cuda) {
    cuda->memory = calloc(1, sizeof *cuda->memory);
    if (!cuda->memory) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    cudaMemPool_t pool;
    CUDA_TRY(cudaDeviceGetDefaultMemPool(&pool, cuda->device));
    uint64_t kept = UINT64_MAX;
    CUDA_TRY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
    return status_ok();
}

void cuda_memory_close(CudaBackend *cuda) {
    CudaMemory *memory = cuda->memory;
    if (!memory) return;
    cudaStream_t stream = cuda->base.stream->handle;
    for (int i = 0; i < memory->num_held; i++) {
        cudaFreeAsync(memory->held[i].block->array, stream);
        cudaEventDestroy(memory->held[i].done);
        free(memory->held[i].block);
    }
    for (int i = 0; i < memory->num_blocks; i++) {
        cudaFreeAsync(memory->blocks[i]->array, stream);
        free(memory->blocks[i]);
    }
    cudaStreamSynchronize(stream);
    cudaMemPool_t pool;
    if (cudaDeviceGetDefaultMemPool(&pool, cuda->device) == cudaSuccess) cudaMemPoolTrimTo(pool, 0);
    free(memory->held);
    free(memory->blocks);
    free(memory);
    cuda->memory = NULL;
}

// --- Blocks by address

// The number of blocks that begin at or below array.
static int block_place(const CudaMemory *memory, const void *array) {
    int low = 0, high = memory->num_blocks;
    while (low < high) {
        int middle = (low + high) / 2;
        if (memory->blocks[middle]->array <= (const char *)array)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool block_keep(CudaMemory *memory, Block *block) {
    if (memory->num_blocks == memory->max_blocks) {
        int max_blocks = memory->max_blocks ? 2 * memory->max_blocks : 256;
        Block **blocks = realloc(memory->blocks, (size_t)max_blocks * sizeof *blocks);
        if (!blocks) return false;
        memory->blocks = blocks;
        memory->max_blocks = max_blocks;
    }
    int place = block_place(memory, block->array);
    memmove(memory->blocks + place + 1, memory->blocks + place,
            (size_t)(memory->num_blocks - place) * sizeof *memory->blocks);
    memory->blocks[place] = block;
    memory->num_blocks++;
    return true;
}

void cuda_memory_used(CudaBackend *cuda, const BackendStream *stream, const void *array) {
    int place = block_place(cuda->memory, array) - 1;
    if (place < 0) return;
    Block *block = cuda->memory->blocks[place];
    if ((const char *)array < block->array + at_least(block->bytes))
        block->used[stream->index] = stream->num_queued;
}

void cuda_memory_order(CudaBackend *cuda, BackendStream *stream) {
    if (cuda->memory && stream->awaited[0] < cuda->memory->newest)
        cuda_stream_await(cuda, stream, cuda->base.stream);
}

void cuda_memory_forget(CudaBackend *cuda, const BackendStream *stream) {
    CudaMemory *memory = cuda->memory;
    for (int i = 0; memory && i < memory->num_blocks; i++)
        memory->blocks[i]->used[stream->index] = 0;
    for (int i = 0; memory && i < memory->num_held; i++)
        if (memory->held[i].stream == stream->index) memory->held[i].num_queued = 0;
}

// --- Held blocks

static void block_free(CudaBackend *cuda, Block *block) {
    cuda_check(&cuda->base, cudaFreeAsync(block->array, cuda->base.stream->handle),
               "cudaFreeAsync");
    free(block);
}

// Gives back the held blocks that nobody uses any more; all: the compute stream waits for them.
static void held_free(CudaBackend *cuda, bool all) {
    CudaMemory *memory = cuda->memory;
    BackendStream *compute = cuda->base.stream;
    bool busy[CUDA_MAX_STREAMS] = {false}; // a stream whose older block is still in use
    int num_kept = 0;
    for (int i = 0; i < memory->num_held; i++) {
        Held *held = &memory->held[i];
        bool over = compute->awaited[held->stream] >= held->num_queued;
        if (!over && all) over = cudaStreamWaitEvent(compute->handle, held->done, 0) == cudaSuccess;
        if (!over && !busy[held->stream]) {
            over = cudaEventQuery(held->done) == cudaSuccess;
            busy[held->stream] = !over;
        }
        if (over) {
            block_free(cuda, held->block);
            cudaEventDestroy(held->done);
        } else {
            memory->held[num_kept++] = *held;
        }
    }
    memory->num_held = num_kept;
}

static bool block_hold(CudaBackend *cuda, Block *block, BackendStream *stream, uint64_t until) {
    CudaMemory *memory = cuda->memory;
    if (memory->num_held == memory->max_held) {
        int max_held = memory->max_held ? 2 * memory->max_held : 64;
        Held *held = realloc(memory->held, (size_t)max_held * sizeof *held);
        if (!held) return false;
        memory->held = held;
        memory->max_held = max_held;
    }
    Held held = {.block = block, .stream = stream->index, .num_queued = until};
    if (cudaEventCreateWithFlags(&held.done, cudaEventDisableTiming) != cudaSuccess) return false;
    cuda_check(&cuda->base, cudaEventRecord(held.done, stream->handle), "cudaEventRecord");
    memory->held[memory->num_held++] = held;
    return true;
}

// --- Allocation

static void fail_memory(Backend *backend, size_t bytes) {
    size_t free_bytes = 0, total_bytes = 0;
    cudaGetLastError();
    cudaMemGetInfo(&free_bytes, &total_bytes);
    cuda_fail(backend,
              status_error(STATUS_MACHINE,
                           "meshwright: out of GPU memory: %.3f GiB were asked for on %s; %.3f GiB "
                           "of its %.3f GiB are free and this process holds %.3f GiB",
                           (double)bytes / 0x1p30, backend->name, (double)free_bytes / 0x1p30,
                           (double)total_bytes / 0x1p30,
                           (double)backend->allocated_bytes / 0x1p30));
}

// From the pool; where it is full, once more after all that is queued is over - but for messages
// whose other ends may wait for what this process has not queued yet: what is computed waits only
// for those that the schedule had it wait for.
static cudaError_t pool_try(CudaBackend *cuda, cudaStream_t stream, size_t bytes, void **array) {
    cudaError_t error = cudaMallocAsync(array, at_least(bytes), stream);
    if (error != cudaErrorMemoryAllocation) return error;
    cudaGetLastError();
    held_free(cuda, true);
    cudaMemPool_t pool;
    error =
        cuda->has_ways ? cudaStreamSynchronize(cuda->base.stream->handle) : cudaDeviceSynchronize();
    if (error == cudaSuccess) error = cudaDeviceGetDefaultMemPool(&pool, cuda->device);
    if (error == cudaSuccess) error = cudaMemPoolTrimTo(pool, 0);
    return error == cudaSuccess ? cudaMallocAsync(array, at_least(bytes), stream) : error;
}

static void *pool_alloc(CudaBackend *cuda, cudaStream_t stream, size_t bytes) {
    void *array = NULL;
    cudaError_t error = pool_try(cuda, stream, bytes, &array);
    if (error == cudaSuccess) return array;
    if (error == cudaErrorMemoryAllocation)
        fail_memory(&cuda->base, bytes);
    else
        cuda_check(&cuda->base, error, "cudaMallocAsync");
    return NULL;
}

void *cuda_alloc(Backend *backend, size_t bytes) {
    if (!cuda_well(backend)) return NULL;
    CudaBackend *cuda = (CudaBackend *)backend;
    if (cuda->memory->num_held > 0) held_free(cuda, false);
    Block *block = calloc(1, sizeof *block);
    // Nothing is an array too: of an expert without tokens.
    void *array = block ? pool_alloc(cuda, backend->stream->handle, bytes > 0 ? bytes : 1) : NULL;
    if (block) *block = (Block){.array = array, .bytes = bytes};
    if (!array || !block_keep(cuda->memory, block)) {
        cuda_fail(backend, status_error(STATUS_MACHINE, "meshwright: out of memory"));
        if (array) cudaFreeAsync(array, backend->stream->handle);
        free(block);
        return NULL;
    }
    cuda->memory->newest = ++backend->stream->num_queued;
    backend->allocated_bytes += bytes;
    if (backend->peak_bytes < backend->allocated_bytes)
        backend->peak_bytes = backend->allocated_bytes;
    return array;
}

void cuda_release(Backend *backend, void *array, size_t bytes) {
    if (!array) return;
    CudaBackend *cuda = (CudaBackend *)backend;
    CudaMemory *memory = cuda->memory;
    int place = block_place(memory, array) - 1;
    if (place < 0 || memory->blocks[place]->array != array ||
        memory->blocks[place]->bytes != bytes) {
        cuda_fail(backend, status_error(STATUS_MACHINE,
                                        "meshwright: %zu bytes were released that were not "
                                        "allocated as such",
                                        bytes));
        return;
    }
    Block *block = memory->blocks[place];
    memory->num_blocks--;
    memmove(memory->blocks + place, memory->blocks + place + 1,
            (size_t)(memory->num_blocks - place) * sizeof *memory->blocks);
    backend->allocated_bytes -= bytes;
    BackendStream *compute = backend->stream, *user = NULL;
    for (int i = 1; i < CUDA_MAX_STREAMS; i++) {
        BackendStream *stream = cuda->streams[i];
        if (!stream) continue;
        if (block->used[i] < stream->untracked) block->used[i] = stream->untracked;
        if (block->used[i] <= compute->awaited[i]) continue;
        if (user) cuda_stream_await(cuda, compute, user); // of two users only one is held for
        user = stream;
    }
    if (user && block_hold(cuda, block, user, block->used[user->index])) return;
    if (user) cuda_stream_await(cuda, compute, user);
    block_free(cuda, block);
}

void *cuda_scratch(Backend *backend, BackendStream *stream, size_t bytes) {
    return cuda_well(backend) ? pool_alloc((CudaBackend *)backend, stream->handle, bytes) : NULL;
}

void *cuda_scratch_try(Backend *backend, BackendStream *stream, size_t bytes) {
    if (!cuda_well(backend)) return NULL;
    void *array = NULL;
    cudaError_t error = pool_try((CudaBackend *)backend, stream->handle, bytes, &array);
    if (error == cudaErrorMemoryAllocation)
        cudaGetLastError(); // no failure, only no memory
    else
        cuda_check(backend, error, "cudaMallocAsync");
    return error == cudaSuccess ? array : NULL;
}

void cuda_scratch_free(Backend *backend, BackendStream *stream, void *scratch) {
    if (scratch) cuda_check(backend, cudaFreeAsync(scratch, stream->handle), "cudaFreeAsync");
}

// --- Copies

// Through pinned memory, so that the host may go on at once and the copy is done beside kernels.
static cudaError_t upload_stage(CudaBackend *cuda, char *to, const char *from, size_t bytes,
                                cudaStream_t stream) {
    CudaStage *stage = &cuda->stages[cuda->next_stage];
    cuda->next_stage = (cuda->next_stage + 1) % CUDA_NUM_STAGES;
    cudaError_t error = cudaEventSynchronize(stage->done);
    if (error != cudaSuccess) return error;
    memcpy(stage->pinned, from, bytes);
    error = cudaMemcpyAsync(to, stage->pinned, bytes, cudaMemcpyHostToDevice, stream);
    return error == cudaSuccess ? cudaEventRecord(stage->done, stream) : error;
}

void cuda_upload(Backend *backend, void *to, const void *from_host, size_t bytes,
                 BackendStream *stream) {
    const void *arrays[] = {to};
    if (bytes == 0 || !cuda_begin(backend, stream, arrays, 1)) return;
    cudaError_t error = cudaSuccess;
    for (size_t at = 0; at < bytes && error == cudaSuccess; at += CUDA_STAGE_BYTES) {
        size_t part = bytes - at < CUDA_STAGE_BYTES ? bytes - at : CUDA_STAGE_BYTES;
        error = upload_stage((CudaBackend *)backend, (char *)to + at, (const char *)from_host + at,
                             part, stream->handle);
    }
    cuda_end(backend, stream, error, "upload");
}

Status cuda_download(Backend *backend, void *to_host, const void *from, size_t bytes,
                     BackendStream *stream) {
    const void *arrays[] = {from};
    if (!cuda_begin(backend, stream, arrays, 1)) return backend->failure;
    cudaError_t error =
        cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, stream->handle);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream->handle);
    cuda_check(backend, error, "download");
    return backend->failure;
}

void cuda_copy(Backend *backend, void *to, const void *from, size_t bytes, BackendStream *stream) {
    const void *arrays[] = {to, from};
    if (bytes == 0 || to == from || !cuda_begin(backend, stream, arrays, 2)) return;
    cuda_end(backend, stream,
             cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream->handle), "copy");
}

void cuda_zero(Backend *backend, void *to, size_t bytes, BackendStream *stream) {
    const void *arrays[] = {to};
    if (bytes == 0 || !cuda_begin(backend, stream, arrays, 1)) return;
    cuda_end(backend, stream, cudaMemsetAsync(to, 0, bytes, stream->handle), "zero");
}
