// profiler/memory_reference.h - the operators of MEMORY_OPS on the host, in double and in the
// plainest way: what the GPU's kernels are checked against.
#pragma once

#include "profiler/memory_ops.h"

// Computes what the operator writes from what it reads; buffers as MEMORY_OPS lists them. The mask
// of dropout_add is read: it is the GPU's draw.
void memory_reference(const MemoryOp *op, int64_t rows, int64_t columns, void *const *buffers);
