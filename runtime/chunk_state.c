#include "runtime/chunk_state.h"

#include <stdlib.h>
#include <string.h>

static void *element_at(void *array, int64_t element, Dtype dtype) {
    return array ? (char *)array + element * (int64_t)dtype_bytes(dtype) : NULL;
}

void *wide_at(const Backend *backend, void *array, int64_t element) {
    return element_at(array, element, backend->wide);
}

void *act_at(const Backend *backend, void *array, int64_t element) {
    return element_at(array, element, backend->act);
}

void *chunk_weight(const Backend *backend, const ChunkState *chunk, const Parameter *p) {
    if (!p) return NULL;
    const FlatState *f = &chunk->blocks[p->block];
    return act_at(backend, f->whole_weights ? f->whole_weights->data : f->weights, p->offset);
}

void *chunk_gradient(const Backend *backend, const ChunkState *chunk, const Parameter *p) {
    if (!p) return NULL;
    const FlatState *f = &chunk->blocks[p->block];
    if (f->vector_gradients)
        return p->region == REGION_WHOLE_VECTORS
                   ? wide_at(backend, f->vector_gradients->data,
                             p->offset - f->layout.region_begin[REGION_WHOLE_VECTORS])
                   : NULL;
    return wide_at(backend, f->whole_gradients ? f->whole_gradients->data : f->gradients,
                   p->offset);
}

bool shard_cut(const FlatState *f, int64_t *begin, int64_t *end) {
    const int64_t last = f->shard_begin + f->shard_count;
    if (*begin < f->shard_begin) *begin = f->shard_begin;
    if (*end > last) *end = last;
    return *begin < *end;
}

void *gradient_at(const Backend *backend, const FlatState *f, int64_t element) {
    return wide_at(backend, f->gradients, f->zero_stage >= 2 ? element - f->shard_begin : element);
}

// --- First values

enum { PIECE = 1 << 20 }; // elements that are made on the host at once

// Writes the first values of one parameter to a wide buffer of its block.
static Status parameter_upload(Backend *backend, const Parameter *p, uint64_t seed, void *buffer,
                               double *values) {
    const int64_t count = parameter_count(p);
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t num = count - first < PIECE ? count - first : PIECE;
        parameter_values(p, seed, first, num, values);
        for (int64_t i = 0; i < num && backend->wide == DTYPE_FP32; i++) {
            const float narrow = (float)values[i]; // lies in what was read already
            memcpy((char *)values + (size_t)i * sizeof narrow, &narrow, sizeof narrow);
        }
        backend->table->upload(backend, wide_at(backend, buffer, p->offset + first), values,
                               (size_t)num * dtype_bytes(backend->wide), backend->stream);
        TRY(backend_sync(backend));
    }
    return status_ok();
}

static Status values_upload(Backend *backend, const ChunkParameters *list, int block, uint64_t seed,
                            void *buffer) {
    backend->table->zero(backend, buffer,
                         (size_t)list->blocks[block].capacity * dtype_bytes(backend->wide),
                         backend->stream);
    double *values = malloc(PIECE * sizeof *values);
    if (!values) return status_error(STATUS_MACHINE, "no memory for the first values");
    Status status = status_ok();
    for (int i = 0; i < list->num_parameters && status.code == STATUS_OK; i++)
        if (list->parameters[i].block == block)
            status = parameter_upload(backend, &list->parameters[i], seed, buffer, values);
    free(values);
    return status;
}

// --- Memory

static void *get(Backend *backend, int64_t count, Dtype dtype) {
    return backend->table->alloc(backend, (size_t)count * dtype_bytes(dtype));
}

static void *get_zeroed(Backend *backend, int64_t count) {
    void *array = get(backend, count, backend->wide);
    if (array)
        backend->table->zero(backend, array, (size_t)count * dtype_bytes(backend->wide),
                             backend->stream);
    return array;
}

static void give_back(Backend *backend, void **array, int64_t count, Dtype dtype) {
    if (*array) backend->table->release(backend, *array, (size_t)count * dtype_bytes(dtype));
    *array = NULL;
}

static int64_t weights_count(const FlatState *f) {
    return f->zero_stage >= 3 ? f->shard_count : f->layout.capacity;
}

static int64_t gradients_count(const FlatState *f) {
    return f->zero_stage >= 2 ? f->shard_count : f->layout.capacity;
}

// From first values of the whole block, wide, to weights and masters.
static void values_take(Backend *b, const ChunkState *chunk, FlatState *f, void *first) {
    const BackendTable *t = b->table;
    const int64_t begin = f->zero_stage >= 3 ? f->shard_begin : 0;
    t->cast(b, f->weights, b->act, wide_at(b, first, begin), b->wide, false, weights_count(f),
            b->stream);
    if (!chunk->masters_are_weights)
        t->copy(b, f->masters, wide_at(b, first, f->shard_begin),
                (size_t)f->shard_count * dtype_bytes(b->wide), b->stream);
}

static Status block_create(Backend *b, ChunkState *chunk, int block, const ChunkStart *start) {
    FlatState *f = &chunk->blocks[block];
    f->layout = chunk->list.blocks[block];
    const int num_shards = f->layout.experts ? start->num_expert_shards : start->num_shards;
    f->zero_stage = num_shards > 1 ? start->zero_stage : 0;
    f->shard_count = f->layout.capacity / num_shards;
    f->shard_begin = (f->layout.experts ? start->expert_shard : start->shard) * f->shard_count;
    if (f->layout.capacity == 0) return status_ok();
    f->weights = get(b, weights_count(f), b->act);
    f->gradients = get(b, gradients_count(f), b->wide);
    f->moment = get_zeroed(b, f->shard_count);
    if (start->optimizer == OPTIMIZER_ADAM) f->variance = get_zeroed(b, f->shard_count);
    if (chunk->masters_are_weights)
        f->masters = wide_at(b, f->weights, f->zero_stage >= 3 ? 0 : f->shard_begin);
    else
        f->masters = get(b, f->shard_count, b->wide);
    // Gradients are not in use yet.
    const bool fits = gradients_count(f) == f->layout.capacity;
    void *first = fits ? f->gradients : get(b, f->layout.capacity, b->wide);
    Status status = b->failure; // before first values are made for nothing
    if (status.code == STATUS_OK)
        status = values_upload(b, &chunk->list, block, start->seed, first);
    if (status.code == STATUS_OK) values_take(b, chunk, f, first);
    if (!fits) give_back(b, &first, f->layout.capacity, b->wide);
    TRY(status);
    b->table->zero(b, f->gradients, (size_t)gradients_count(f) * dtype_bytes(b->wide), b->stream);
    return backend_sync(b);
}

Status chunk_state_create(Backend *backend, const ChunkParameters *list, const ChunkStart *start,
                          Arena *arena, ChunkState *out) {
    *out = (ChunkState){.list = *list,
                        .blocks = ARENA_ARRAY(arena, list->num_blocks, FlatState),
                        .masters_are_weights = backend->act == backend->wide};
    for (int i = 0; i < list->num_blocks; i++) TRY(block_create(backend, out, i, start));
    return status_ok();
}

void chunk_state_free(Backend *b, ChunkState *chunk) {
    for (int i = 0; i < chunk->list.num_blocks && chunk->blocks; i++) {
        FlatState *f = &chunk->blocks[i];
        if (!chunk->masters_are_weights) give_back(b, &f->masters, f->shard_count, b->wide);
        give_back(b, &f->variance, f->shard_count, b->wide);
        give_back(b, &f->moment, f->shard_count, b->wide);
        give_back(b, &f->gradients, gradients_count(f), b->wide);
        give_back(b, &f->weights, weights_count(f), b->act);
    }
}
