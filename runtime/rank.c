#include "runtime/rank.h"

Status rank_reduce(const Rank *rank, double *values, int num, ReduceOp op) {
    Comm *all = rank->world->all;
    Backend *b = rank->backend;
    const bool narrow = b->wide == DTYPE_FP32;
    const size_t bytes = (size_t)num * dtype_bytes(b->wide);
    float floats[RANK_REDUCE_MOST] = {0};
    if (!all || num > RANK_REDUCE_MOST) return b->failure;
    void *host = narrow ? (void *)floats : values, *array = b->table->alloc(b, bytes);
    for (int i = 0; i < num && narrow; i++) floats[i] = (float)values[i];
    b->table->upload(b, array, host, bytes, rank->stream);
    all->table->all_reduce(all, array, num, b->wide, op, rank->stream);
    const Status status = b->table->download(b, host, array, bytes, rank->stream);
    if (array) b->table->release(b, array, bytes);
    for (int i = 0; i < num && narrow; i++) values[i] = (double)floats[i];
    return status;
}
