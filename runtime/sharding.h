// runtime/sharding.h - ZeRO-2 and ZeRO-3 while a micro-batch goes through a block: weights are
// gathered before it runs, gradients scattered behind its backward (Zhao et al. 2023, "PyTorch
// FSDP", arXiv:2304.11277, section 3.3). With less sharding, nothing is to be done. The experts of
// a layer come and go with it.
#pragma once

#include "runtime/rank.h"

// The blocks of a chunk that is cut into them: the embedding, each layer, the head.
enum { BLOCK_ENDS_FIRST, BLOCK_LAYERS };

// Makes a block whole: its weights and, for a backward, gradients that begin at 0. A block that is
// whole already stays as it is.
void block_open(Rank *rank, ChunkState *chunk, int block, bool backward);

// Gives the weights back; after a backward adds the gradients of all ranks to the shard.
void block_close(Rank *rank, ChunkState *chunk, int block, bool backward);

// Adds up over tp what every tp rank has whole (norms, biases), whose gradients are of its own
// tokens with sequence parallelism; nothing without it.
//   gradients  wide, of the whole of `flat`
void partial_sum(Rank *rank, const FlatState *flat, void *gradients);
