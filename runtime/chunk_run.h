// runtime/chunk_run.h - one chunk of the pipeline on one micro-batch: what an instruction of the
// Program computes.
#pragma once

#include "runtime/model_ends.h"

// What is kept from the forward of a chunk and micro-batch to its (last) backward.
typedef struct {
    LayerStash *layers; // [num_layers]
    int num_layers;
    HeadStash head;
    WeightQueue queue;
    Tensor **vectors; // [num_layers + 2] by block, between the parts of a split backward
} ChunkStash;

// Takes the chunk's input (of the first chunk: NULL) and returns its output (of the last: NULL).
// *stash is made.
Status chunk_forward(Rank *rank, int chunk, int microbatch, Tensor *input, ChunkStash **stash,
                     Tensor **output);

// Takes the gradient of the output (of the last chunk: NULL) and returns that of the input (of the
// first: NULL). Where the backward is split, chunk_weights makes the gradients of the weights.
Tensor *chunk_backward(Rank *rank, int chunk, int microbatch, ChunkStash *stash, Tensor *gradient,
                       bool split);

// What a split backward left; then, as after one that is not split, nothing is kept.
void chunk_weights(Rank *rank, int chunk, ChunkStash *stash);

void chunk_stash_free(Rank *rank, ChunkStash **stash);
