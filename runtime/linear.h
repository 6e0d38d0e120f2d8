// runtime/linear.h - a product with weights, split over tp, and the gradients of both.
//
// Column-parallel: a rank has some of the outputs; its input must be whole, the gradient of that is
// summed. Row-parallel: some of the inputs; its output is summed (Shoeybi et al. 2019,
// arXiv:1909.08053, section 3). With sequence parallelism what is outside of the pair is split by
// tokens: gathered before the first, scattered behind the second (Korthikanti et al. 2022,
// arXiv:2205.05198, section 4.2).
#pragma once

#include "runtime/rank.h"

typedef enum {
    LINEAR_COLUMN,
    LINEAR_ROW,
    LINEAR_WHOLE, // not split: every rank multiplies its own tokens, [tokens_sp]
} LinearSplit;

typedef struct {
    LinearSplit split;
    int64_t outputs, inputs; // of this rank
    const void *weight;      // act [outputs][inputs]
    const void *bias;        // act [outputs]; NULL: none, or another tp rank adds it
    // Whose gradients they are, which may lie elsewhere when they are made; dbias NULL: none.
    const ChunkState *chunk;
    const Parameter *dweight, *dbias;
} Linear;

// Matrices of experts, each with rows of its own (runtime/grouped.h).
typedef struct {
    const ChunkState *chunk;
    const Parameter *const *matrices; // [num]
    int num;
    const int64_t *rows;     // [num] of each, one behind the other; NULL after a failure
    int64_t outputs, inputs; // of each matrix
} Grouped;

// The gradient of a weight that is still to be made: it holds what it reads.
typedef struct {
    Linear linear;
    Grouped grouped;  // instead of that where num is not 0
    Tensor *x;        // [tokens] or, of a column with sequence parallelism, [tokens_sp]
    Tensor *dy;       // [tokens][outputs]
    bool dy_gathered; // of all tp ranks' tokens, of a row with sequence parallelism
    int block;        // of the queue
} WeightWork;

// Gradients of weights, made at once or, where a schedule delays them, when asked.
typedef struct {
    bool delayed;
    WeightWork *items; // [capacity]
    int num, capacity;
    int next;  // the first that is not made
    int block; // of the chunk, that adds to it
} WeightQueue;

// Without sizes. The bias of a row is added by one tp rank.
Linear linear_of(const Rank *rank, const ChunkState *chunk, LinearSplit split,
                 const Parameter *weight, const Parameter *bias);

// x [tokens][inputs], of a column [tokens_sp][inputs]; returns [tokens][outputs], of a row
// [tokens_sp][outputs].
Tensor *linear_forward(Rank *rank, const Linear *linear, const Tensor *x);

// dy as what the forward returned; returns the gradient of x, as x.
Tensor *linear_backward(Rank *rank, const Linear *linear, Tensor *x, Tensor *dy,
                        WeightQueue *queue);

// Makes the gradient, now or later. What it holds is given back then.
void weight_queue_add(Rank *rank, WeightQueue *queue, WeightWork work);

// Makes what this block delayed, first in first out; blocks come in the order in which they did.
void weight_queue_run(Rank *rank, WeightQueue *queue, int block);

// Between the tokens of a rank and those of its tp group (no change without sequence parallelism).
Tensor *tokens_gather(Rank *rank, const Tensor *x, int64_t columns); // a new tensor, or NULL
Tensor *tokens_sum(Rank *rank, Tensor **x, int64_t columns); // takes x, returns the sum's part
