// runtime/linear.h - a product with weights, split over tp, and the gradients of both.
//
// Column-parallel: a rank has some of the outputs; its input must be whole, the gradient of that is
// summed. Row-parallel: some of the inputs; its output is summed (Shoeybi et al. 2019,
// arXiv:1909.08053, section 3). With sequence parallelism what is outside of the pair is split by
// tokens: gathered before the first, scattered behind the second (Korthikanti et al. 2022,
// arXiv:2205.05198, section 4.2).
#pragma once

#include "runtime/rank.h"

typedef enum { LINEAR_COLUMN, LINEAR_ROW } LinearSplit;

typedef struct {
    LinearSplit split;
    int64_t outputs, inputs; // of this rank
    const void *weight;      // act [outputs][inputs]
    const void *bias;        // act [outputs]; NULL: none, or another tp rank adds it
    void *dweight, *dbias;   // wide, added to; dbias NULL: none
} Linear;

// The gradient of a weight that is still to be made: it holds what it reads.
typedef struct {
    Linear linear;
    Tensor *x;      // [tokens] or, of a column with sequence parallelism, [tokens_sp]
    Tensor *dy;     // [tokens][outputs]
    Tensor *dy_own; // of a row: before it was gathered
} WeightWork;

// Gradients of weights, made at once or, where a schedule delays them, when asked.
typedef struct {
    bool delayed;
    WeightWork *items; // [capacity]
    int num, capacity;
} WeightQueue;

// x [tokens][inputs], of a column [tokens_sp][inputs]; returns [tokens][outputs], of a row
// [tokens_sp][outputs].
Tensor *linear_forward(Rank *rank, const Linear *linear, const Tensor *x);

// dy as what the forward returned; returns the gradient of x, as x.
Tensor *linear_backward(Rank *rank, const Linear *linear, Tensor *x, Tensor *dy,
                        WeightQueue *queue);

// Makes all that was delayed, first in first out.
void weight_queue_run(Rank *rank, WeightQueue *queue);

// Between the tokens of a rank and those of its tp group (no change without sequence parallelism).
Tensor *tokens_gather(Rank *rank, const Tensor *x, int64_t columns); // a new tensor, or NULL
Tensor *tokens_sum(Rank *rank, Tensor **x, int64_t columns); // takes x, returns the sum's part
