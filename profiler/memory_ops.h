// profiler/memory_ops.h - the operators that memory bounds: which arrays each reads and writes.
//
// One table serves the GPU (what to allocate and fill), the figure `bytes` of a row, and the check
// against the reference on the host.
#pragma once

#include "profiler/number.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MEMORY_MAX_BUFFERS = 8,
    MEMORY_VOCAB = 32000,    // rows of an embedding's table
    MEMORY_HEAD = 128,       // columns of a head that rope turns
    MEMORY_NORM_PARTS = 512, // partial sums of the gradient of a norm's weights, at most
};

// How many elements an array of an operator on [rows][columns] has.
typedef enum {
    EXTENT_ALL,         // rows x columns
    EXTENT_TWICE,       // rows x 2 columns
    EXTENT_ROWS,        // rows
    EXTENT_COLUMNS,     // columns
    EXTENT_TWO_COLUMNS, // 2 columns
    EXTENT_TABLE,       // MEMORY_VOCAB x columns; rows x columns of them are touched
    EXTENT_ANGLES,      // rows x MEMORY_HEAD / 2
    EXTENT_ONE,         // 1
    EXTENT_PARTS,       // 2 x MEMORY_NORM_PARTS x columns
} MemoryExtent;

typedef enum { BUFFER_READ, BUFFER_WRITE, BUFFER_BOTH, BUFFER_SCRATCH } BufferUse;

typedef enum {
    FILL_NORMAL,   // standard normal
    FILL_POSITIVE, // |normal|
    FILL_VOCAB,    // whole numbers from 0 to MEMORY_VOCAB - 1
    FILL_COLUMN,   // whole numbers from 0 to columns - 1
    FILL_ZERO,
} BufferFill;

typedef struct {
    const char *name;
    Number dtype;
    MemoryExtent extent;
    BufferUse use;
    BufferFill fill;
} MemoryBuffer;

typedef struct {
    const char *name;
    Number dtype; // of the operator, as the column dtype says
    int num_buffers;
    MemoryBuffer buffers[MEMORY_MAX_BUFFERS];
    bool causal; // queries see only columns up to their own: memory_op_queries
} MemoryOp;

extern const MemoryOp MEMORY_OPS[];
extern const int NUM_MEMORY_OPS;

// By name, or NULL.
const MemoryOp *memory_op_find(const char *name);

// Rows of causal scores are queries, as many as columns or all rows where these are fewer; row r
// sees columns 0 to columns - queries + r % queries.
static inline int64_t memory_op_queries(int64_t rows, int64_t columns) {
    return rows < columns ? rows : columns;
}

// Elements that an array has.
size_t memory_buffer_elements(const MemoryBuffer *buffer, int64_t rows, int64_t columns);

// Bytes that an ideal kernel reads and writes, each array once (BUFFER_BOTH: read and written).
double memory_op_bytes(const MemoryOp *op, int64_t rows, int64_t columns);

// The constants of the operators, one set for the GPU and for the reference.
#define MEMORY_EPSILON 1e-5f
#define MEMORY_SOFTMAX_SCALE 0.125f
#define MEMORY_DROPOUT_KEEP 0.9f
#define MEMORY_ADAM_RATE 1e-3f
#define MEMORY_ADAM_BETA1 0.9f
#define MEMORY_ADAM_BETA2 0.95f
#define MEMORY_ADAM_EPSILON 1e-8f
#define MEMORY_ADAM_DECAY 0.1f
#define MEMORY_ADAM_CORRECTION1 0.1f  // 1 - beta1^t at step 1
#define MEMORY_ADAM_CORRECTION2 0.05f // 1 - beta2^t at step 1
