// profiler/cpu_shapes.h - which shapes are measured on this computer's CPUs, and the columns of
// their tables: those of small models as a computer of a few cores trains them.
//
// Each operator is one function of backend/backend.h. `bytes` of the memory-bound ones is what the
// Program says that they move (workload/block_*.c, workload/pass/workload.c; optimizer: costmodel/
// price.c), so that a rate fitted to it prices the Program's operators.
#pragma once

#include "backend/backend.h"
#include "base/arena.h"

// In the order in which they are measured.
typedef enum {
    CPU_KIND_LAUNCH,        // a call that does nothing
    CPU_KIND_GEMM_OTHER,    // forward products
    CPU_KIND_GEMM_BACKWARD, // both gradients; that of weights is added up
    CPU_KIND_ATTENTION,
    CPU_KIND_MEMORY,
    CPU_KIND_COMM,    // what ranks do together
    CPU_KIND_SHARING, // the same on one core alone and on all at once
    NUM_CPU_KINDS
} CpuKind;

// As --kind and the files spell them.
extern const char *const CPU_KIND_NAMES[NUM_CPU_KINDS + 1]; // ends with NULL

typedef enum {
    CPU_OP_CALL,
    CPU_OP_PRODUCT,
    CPU_OP_ATTENTION_FORWARD,
    CPU_OP_ATTENTION_BACKWARD,
    CPU_OP_COPY,
    CPU_OP_ADD,
    CPU_OP_CAST,
    CPU_OP_RMSNORM_FORWARD,
    CPU_OP_RMSNORM_BACKWARD,
    CPU_OP_LAYERNORM_FORWARD,
    CPU_OP_LAYERNORM_BACKWARD,
    CPU_OP_SWIGLU_FORWARD,
    CPU_OP_SWIGLU_BACKWARD,
    CPU_OP_GELU_FORWARD,
    CPU_OP_GELU_BACKWARD,
    CPU_OP_ROPE,
    CPU_OP_EMBEDDING_FORWARD,
    CPU_OP_EMBEDDING_BACKWARD,
    CPU_OP_CROSS_ENTROPY, // loss and gradient
    CPU_OP_OPTIMIZER,     // the norm's sum of squares, AdamW, and zeroing the gradient
    CPU_OP_ALL_REDUCE,
    CPU_OP_ALL_GATHER,
    CPU_OP_REDUCE_SCATTER,
    CPU_OP_ALL_TO_ALL,
    CPU_OP_EXCHANGE,  // every rank sends to the next and receives from the one before
    CPU_OP_SEND_RECV, // one way: half of there and back
    NUM_CPU_OPS
} CpuOp;

extern const char *const CPU_OP_NAMES[NUM_CPU_OPS + 1]; // ends with NULL

enum { CPU_ROPE_HEAD_DIM = 64, CPU_VOCAB = 4096 };

typedef struct {
    CpuKind kind;
    CpuOp op;
    Dtype dtype; // DTYPE_FP32 or DTYPE_FP64
    // of products
    ProductLayout layout;
    int64_t m, n, k;
    // of attention, causal
    int batch, tokens, heads, kv_heads, head_dim;
    // of memory-bound operators; rows are tokens
    int64_t rows, columns;
    // of what ranks do together: workload/pass/operator.h says of what
    int64_t message_bytes;
    int num_ranks; // of the group, and of CPU_KIND_SHARING
} CpuShape;

typedef struct {
    CpuShape *shapes; // [num_shapes]
    int num_shapes;
} CpuShapes;

// num_ranks: of the run.
CpuShapes cpu_shapes(CpuKind kind, bool quick, int num_ranks, Arena *arena);

double cpu_shape_bytes(const CpuShape *shape); // of a memory-bound operator
double cpu_shape_flops(const CpuShape *shape); // of a product or attention, as the Program counts

// "float32", "float64": of the tables.
const char *cpu_dtype_name(Dtype dtype);

// The header of a kind's table, whose first num_keys columns say what was measured, and a shape's
// cells of them.
const char *cpu_header(CpuKind kind, int *num_keys);
const char *cpu_key(const CpuShape *shape, Arena *arena);
