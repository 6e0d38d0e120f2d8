// runtime/model_ends.h - what stands before and behind the layers: the word table, and the head
// with the loss. Both are split by rows of the vocabulary over tp (Shoeybi et al. 2019,
// arXiv:1909.08053, section 3).
#pragma once

#include "runtime/layer.h"

// The tokens of one micro-batch, on the device.
typedef struct {
    const int32_t *tokens, *targets; // [tokens] of a micro-batch
} MicroBatch;

MicroBatch rank_microbatch(const Rank *rank, int microbatch);

// Returns [tokens_sp][hidden].
Tensor *embedding_forward(Rank *rank, const ChunkState *chunk, const MicroBatch *batch);

// Takes the gradient of that.
void embedding_backward(Rank *rank, const ChunkState *chunk, const MicroBatch *batch,
                        Tensor **gradient);

typedef struct {
    Tensor *x, *statistics, *norm; // as of a layer
    Tensor *dlogits;               // [tokens][logits]: the gradient, in the place of the logits
} HeadStash;

// Adds to the rank's loss and makes the gradient of the logits.
void head_forward(Rank *rank, const ChunkState *chunk, const MicroBatch *batch, Residual *stream,
                  HeadStash *stash);

// Returns the gradient of the stream; the stash is empty then.
Tensor *head_backward(Rank *rank, const ChunkState *chunk, HeadStash *stash, WeightQueue *queue);
