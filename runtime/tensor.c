#include "runtime/tensor.h"

Tensor *tensor_new(TensorPool *pool, int64_t count, Dtype dtype) {
    Tensor *tensor = pool->unused;
    if (tensor)
        pool->unused = tensor->next;
    else
        tensor = ARENA_NEW(pool->arena, Tensor);
    const size_t bytes = (size_t)count * dtype_bytes(dtype);
    *tensor = (Tensor){.bytes = bytes, .num_holders = 1};
    tensor->data = pool->backend->table->alloc(pool->backend, bytes);
    return tensor;
}

Tensor *tensor_hold(Tensor *tensor) {
    tensor->num_holders++;
    return tensor;
}

void tensor_drop(TensorPool *pool, Tensor **place) {
    Tensor *tensor = *place;
    *place = NULL;
    if (!tensor || --tensor->num_holders > 0) return;
    if (tensor->data) pool->backend->table->release(pool->backend, tensor->data, tensor->bytes);
    tensor->data = NULL;
    tensor->next = pool->unused;
    pool->unused = tensor;
}
