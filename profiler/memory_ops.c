#include "profiler/memory_ops.h"

#include <string.h>

#define BF16 NUMBER_BFLOAT16
#define FP32 NUMBER_FLOAT32
#define READ BUFFER_READ
#define WRITE BUFFER_WRITE
#define BOTH BUFFER_BOTH

const MemoryOp MEMORY_OPS[] = {
    {"copy",
     BF16,
     2,
     {{"x", BF16, EXTENT_ALL, READ, FILL_NORMAL}, {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"add",
     BF16,
     3,
     {{"a", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"b", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"cast_to_float32",
     BF16,
     2,
     {{"x", BF16, EXTENT_ALL, READ, FILL_NORMAL}, {"y", FP32, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"cast_from_float32",
     BF16,
     2,
     {{"x", FP32, EXTENT_ALL, READ, FILL_NORMAL}, {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"rmsnorm_forward",
     BF16,
     4,
     {{"x", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"weight", BF16, EXTENT_COLUMNS, READ, FILL_NORMAL},
      {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO},
      {"rstd", FP32, EXTENT_ROWS, WRITE, FILL_ZERO}},
     false},
    {"rmsnorm_backward",
     BF16,
     7,
     {{"dy", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"x", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"weight", BF16, EXTENT_COLUMNS, READ, FILL_NORMAL},
      {"rstd", FP32, EXTENT_ROWS, READ, FILL_POSITIVE},
      {"dx", BF16, EXTENT_ALL, WRITE, FILL_ZERO},
      {"dweight", FP32, EXTENT_COLUMNS, WRITE, FILL_ZERO},
      {"parts", FP32, EXTENT_PARTS, BUFFER_SCRATCH, FILL_ZERO}},
     false},
    {"layernorm_forward",
     BF16,
     6,
     {{"x", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"weight", BF16, EXTENT_COLUMNS, READ, FILL_NORMAL},
      {"bias", BF16, EXTENT_COLUMNS, READ, FILL_NORMAL},
      {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO},
      {"mean", FP32, EXTENT_ROWS, WRITE, FILL_ZERO},
      {"rstd", FP32, EXTENT_ROWS, WRITE, FILL_ZERO}},
     false},
    {"layernorm_backward",
     BF16,
     8,
     {{"dy", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"x", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"weight", BF16, EXTENT_COLUMNS, READ, FILL_NORMAL},
      {"mean", FP32, EXTENT_ROWS, READ, FILL_NORMAL},
      {"rstd", FP32, EXTENT_ROWS, READ, FILL_POSITIVE},
      {"dx", BF16, EXTENT_ALL, WRITE, FILL_ZERO},
      {"dweight_dbias", FP32, EXTENT_TWO_COLUMNS, WRITE, FILL_ZERO},
      {"parts", FP32, EXTENT_PARTS, BUFFER_SCRATCH, FILL_ZERO}},
     false},
    {"softmax_forward",
     BF16,
     2,
     {{"scores", BF16, EXTENT_ALL, READ, FILL_NORMAL}, {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     true},
    {"softmax_backward",
     BF16,
     3,
     {{"dy", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"y", BF16, EXTENT_ALL, READ, FILL_POSITIVE},
      {"dscores", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     true},
    {"swiglu_forward",
     BF16,
     2,
     {{"gate_up", BF16, EXTENT_TWICE, READ, FILL_NORMAL},
      {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"swiglu_backward",
     BF16,
     3,
     {{"dy", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"gate_up", BF16, EXTENT_TWICE, READ, FILL_NORMAL},
      {"dgate_up", BF16, EXTENT_TWICE, WRITE, FILL_ZERO}},
     false},
    {"gelu_forward",
     BF16,
     2,
     {{"x", BF16, EXTENT_ALL, READ, FILL_NORMAL}, {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"gelu_backward",
     BF16,
     3,
     {{"dy", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"x", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"dx", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"rope",
     BF16,
     4,
     {{"x", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"cosine", FP32, EXTENT_ANGLES, READ, FILL_NORMAL},
      {"sine", FP32, EXTENT_ANGLES, READ, FILL_NORMAL},
      {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"dropout_add",
     BF16,
     4,
     {{"x", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"residual", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO},
      {"mask", NUMBER_UINT8, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"embedding_forward",
     BF16,
     3,
     {{"tokens", NUMBER_INT32, EXTENT_ROWS, READ, FILL_VOCAB},
      {"table", BF16, EXTENT_TABLE, READ, FILL_NORMAL},
      {"y", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"embedding_backward",
     BF16,
     3,
     {{"tokens", NUMBER_INT32, EXTENT_ROWS, READ, FILL_VOCAB},
      {"dy", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"dtable", FP32, EXTENT_TABLE, BOTH, FILL_NORMAL}},
     false},
    {"cross_entropy_forward",
     BF16,
     4,
     {{"logits", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"targets", NUMBER_INT32, EXTENT_ROWS, READ, FILL_COLUMN},
      {"loss", FP32, EXTENT_ROWS, WRITE, FILL_ZERO},
      {"logsumexp", FP32, EXTENT_ROWS, WRITE, FILL_ZERO}},
     false},
    {"cross_entropy_backward",
     BF16,
     5,
     {{"logits", BF16, EXTENT_ALL, READ, FILL_NORMAL},
      {"targets", NUMBER_INT32, EXTENT_ROWS, READ, FILL_COLUMN},
      {"logsumexp", FP32, EXTENT_ROWS, READ, FILL_POSITIVE},
      {"dloss", FP32, EXTENT_ROWS, READ, FILL_NORMAL},
      {"dlogits", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"adamw",
     FP32,
     5,
     {{"gradient", FP32, EXTENT_ALL, READ, FILL_NORMAL},
      {"master", FP32, EXTENT_ALL, BOTH, FILL_NORMAL},
      {"moment1", FP32, EXTENT_ALL, BOTH, FILL_NORMAL},
      {"moment2", FP32, EXTENT_ALL, BOTH, FILL_POSITIVE},
      {"weight", BF16, EXTENT_ALL, WRITE, FILL_ZERO}},
     false},
    {"gradient_norm",
     FP32,
     2,
     {{"gradient", FP32, EXTENT_ALL, READ, FILL_NORMAL},
      {"sum_of_squares", FP32, EXTENT_ONE, BOTH, FILL_ZERO}},
     false},
    {"memset", FP32, 1, {{"x", FP32, EXTENT_ALL, WRITE, FILL_NORMAL}}, false},
};
const int NUM_MEMORY_OPS = sizeof MEMORY_OPS / sizeof *MEMORY_OPS;

const MemoryOp *memory_op_find(const char *name) {
    for (int i = 0; i < NUM_MEMORY_OPS; i++)
        if (strcmp(MEMORY_OPS[i].name, name) == 0) return &MEMORY_OPS[i];
    return NULL;
}

size_t memory_buffer_elements(const MemoryBuffer *buffer, int64_t rows, int64_t columns) {
    switch (buffer->extent) {
    case EXTENT_ALL:
        return (size_t)rows * (size_t)columns;
    case EXTENT_TWICE:
        return 2 * (size_t)rows * (size_t)columns;
    case EXTENT_ROWS:
        return (size_t)rows;
    case EXTENT_COLUMNS:
        return (size_t)columns;
    case EXTENT_TWO_COLUMNS:
        return 2 * (size_t)columns;
    case EXTENT_TABLE:
        return (size_t)MEMORY_VOCAB * (size_t)columns;
    case EXTENT_ANGLES:
        return (size_t)rows * (MEMORY_HEAD / 2);
    case EXTENT_PARTS:
        return 2 * (size_t)MEMORY_NORM_PARTS * (size_t)columns;
    default:
        return 1;
    }
}

// The part of the columns that q queries see: on average columns - (q - 1) / 2.
static double causal_frac(int64_t rows, int64_t columns) {
    double queries = (double)memory_op_queries(rows, columns);
    return 1 - (queries - 1) / (2 * (double)columns);
}

double memory_op_bytes(const MemoryOp *op, int64_t rows, int64_t columns) {
    double bytes = 0;
    for (int i = 0; i < op->num_buffers; i++) {
        const MemoryBuffer *buffer = &op->buffers[i];
        if (buffer->use == BUFFER_SCRATCH) continue;
        double elements = buffer->extent == EXTENT_TABLE
                              ? (double)rows * (double)columns
                              : (double)memory_buffer_elements(buffer, rows, columns);
        if (op->causal && buffer->use == BUFFER_READ) elements *= causal_frac(rows, columns);
        int passes = buffer->use == BUFFER_BOTH ? 2 : 1;
        bytes += passes * elements * (double)number_bytes(buffer->dtype);
    }
    return bytes;
}
