#include "runtime/chunk_state.h"

#include <stdlib.h>

void *wide_at(const Backend *backend, void *array, int64_t element) {
    return array ? (char *)array + element * (int64_t)dtype_bytes(backend->wide) : NULL;
}

void *chunk_weight(const Backend *backend, const ChunkState *chunk, const Parameter *p) {
    if (!p || !chunk->weights) return NULL;
    return (char *)chunk->weights + p->offset * (int64_t)dtype_bytes(backend->act);
}

void *chunk_gradient(const Backend *backend, const ChunkState *chunk, const Parameter *p) {
    return p ? wide_at(backend, chunk->gradients, p->offset) : NULL;
}

enum { PIECE = 1 << 20 }; // elements that are made on the host at once

// Writes the first values of one parameter to a wide buffer of the chunk.
static Status parameter_upload(Backend *backend, const Parameter *p, uint64_t seed, void *buffer,
                               double *values) {
    const int64_t count = parameter_count(p);
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t num = count - first < PIECE ? count - first : PIECE;
        parameter_values(p, seed, first, num, values);
        if (backend->wide == DTYPE_FP32) {
            float *narrow = (float *)values; // element i is read before it is overwritten
            for (int64_t i = 0; i < num; i++) narrow[i] = (float)values[i];
        }
        backend->table->upload(backend, wide_at(backend, buffer, p->offset + first), values,
                               (size_t)num * dtype_bytes(backend->wide), backend->stream);
        TRY(backend_sync(backend));
    }
    return status_ok();
}

static Status values_upload(Backend *backend, const ChunkParameters *list, uint64_t seed,
                            void *buffer) {
    backend->table->zero(backend, buffer, (size_t)list->capacity * dtype_bytes(backend->wide),
                         backend->stream);
    double *values = malloc(PIECE * sizeof *values);
    if (!values) return status_error(STATUS_MACHINE, "no memory for the first values");
    Status status = status_ok();
    for (int i = 0; i < list->num_parameters && status.code == STATUS_OK; i++)
        status = parameter_upload(backend, &list->parameters[i], seed, buffer, values);
    free(values);
    return status;
}

static void *wide_zeroed(Backend *backend, int64_t count) {
    const size_t bytes = (size_t)count * dtype_bytes(backend->wide);
    void *array = backend->table->alloc(backend, bytes);
    if (array) backend->table->zero(backend, array, bytes, backend->stream);
    return array;
}

Status chunk_state_create(Backend *backend, const ChunkParameters *list, Optimizer optimizer,
                          int shard, int num_shards, uint64_t seed, ChunkState *out) {
    const BackendTable *t = backend->table;
    const size_t act = dtype_bytes(backend->act), wide = dtype_bytes(backend->wide);
    ChunkState c = {.list = *list, .masters_are_weights = backend->act == backend->wide};
    c.shard_count = list->capacity / num_shards;
    c.shard_begin = shard * c.shard_count;
    c.weights = t->alloc(backend, (size_t)list->capacity * act);
    c.gradients = t->alloc(backend, (size_t)list->capacity * wide);
    c.moment = wide_zeroed(backend, c.shard_count);
    if (optimizer == OPTIMIZER_ADAM) c.variance = wide_zeroed(backend, c.shard_count);
    if (!c.masters_are_weights) c.masters = t->alloc(backend, (size_t)c.shard_count * wide);
    *out = c;
    TRY(backend->failure); // before first values are made for nothing
    void *first = c.masters_are_weights ? c.weights : c.gradients; // gradients: not in use yet
    TRY(values_upload(backend, list, seed, first));
    void *own = wide_at(backend, first, c.shard_begin);
    if (c.masters_are_weights) {
        c.masters = own;
    } else {
        t->copy(backend, c.masters, own, (size_t)c.shard_count * wide, backend->stream);
        t->cast(backend, c.weights, backend->act, first, backend->wide, false, list->capacity,
                backend->stream);
    }
    t->zero(backend, c.gradients, (size_t)list->capacity * wide, backend->stream);
    *out = c;
    return backend_sync(backend);
}

static void give_back(Backend *backend, void **array, int64_t count, Dtype dtype) {
    if (*array) backend->table->release(backend, *array, (size_t)count * dtype_bytes(dtype));
    *array = NULL;
}

void chunk_state_free(Backend *b, ChunkState *chunk) {
    if (!chunk->masters_are_weights) give_back(b, &chunk->masters, chunk->shard_count, b->wide);
    give_back(b, &chunk->variance, chunk->shard_count, b->wide);
    give_back(b, &chunk->moment, chunk->shard_count, b->wide);
    give_back(b, &chunk->gradients, chunk->list.capacity, b->wide);
    give_back(b, &chunk->weights, chunk->list.capacity, b->act);
}
