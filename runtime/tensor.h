// runtime/tensor.h - memory of the device with several holders: given back by the last.
//
// What a forward keeps for its backward is held by the stash, what a delayed weight gradient reads
// by that too: nobody has to know who is last. Work is queued in the order of the program, so that
// memory may be given out again as soon as the work that used it is queued (backend/backend.h).
#pragma once

#include "backend/backend.h"
#include "base/arena.h"

typedef struct Tensor {
    void *data; // of the device; NULL after a failure of the backend
    size_t bytes;
    int num_holders;
    struct Tensor *next; // of those that are not in use
} Tensor;

typedef struct {
    Backend *backend;
    Arena *arena;
    Tensor *unused;
} TensorPool;

// A new one with one holder; not cleared.
Tensor *tensor_new(TensorPool *pool, int64_t count, Dtype dtype);

// One holder more. Returns the same tensor.
Tensor *tensor_hold(Tensor *tensor);

// One holder less; the place of the caller becomes NULL. NULL is accepted.
void tensor_drop(TensorPool *pool, Tensor **tensor);
