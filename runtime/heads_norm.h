// runtime/heads_norm.h - a norm over each head of queries and keys before they are rotated (Qwen3;
// Dehghani et al. 2023, "Scaling vision transformers to 22 billion parameters", arXiv:2302.05442,
// section 2): RMSNorm, with one vector for the heads of queries and one for those of keys.
//
// A tp rank has some of the heads: the vectors' gradients are added up over tp with those of
// whatever every tp rank has whole, which is done with sequence parallelism alone.
#pragma once

#include "runtime/layer.h"

// Norms stash->qkv in place and keeps what it was; nothing where the model has no such norm.
void heads_norm(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash);

// Makes the gradient before of that behind, in place, and gives back what was kept.
void heads_norm_backward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash,
                         Tensor *dqkv);

void heads_norm_drop(Rank *rank, LayerStash *stash);
