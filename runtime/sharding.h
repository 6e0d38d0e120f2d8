// runtime/sharding.h - ZeRO-2 and ZeRO-3 while a micro-batch goes through a block: weights are
// gathered before it runs, gradients scattered behind its backward (Zhao et al. 2023, "PyTorch
// FSDP", arXiv:2304.11277, section 3.3). With less sharding, nothing is to be done. The experts of
// a layer come and go with it, the matrix of words with the embedding or the head that reads it.
//
// Of a split backward the input part has whole weights, the weight part whole gradients, as the
// Program says. What gradients the input part makes, those of norms, wait for the weight part in an
// array of their own: a few numbers a layer, which the Program's memory leaves out. The embedding
// has no weight part: its gradients are whole, and scattered, in the input part.
#pragma once

#include "plan/work_item.h"
#include "runtime/rank.h"

// A block that one part of a micro-batch's work goes through.
typedef struct {
    ChunkState *chunk;
    int block; // BLOCK_POSITIONS (the embedding), BLOCK_LAYERS + layer, or BLOCK_FINAL_NORM +
               // layers (the head)
    WorkKind work;
    Tensor **vectors; // gradients on their way from the input part to the weight part
} BlockPass;

// Makes a block whole, as far as its work needs that: its weights, and gradients that begin at 0.
// What is whole already stays as it is.
void block_open(Rank *rank, const BlockPass *pass);

// Gives the weights back, and adds the gradients of all ranks to the shard.
void block_close(Rank *rank, const BlockPass *pass);

// Adds up over tp what every tp rank has whole (norms, biases), whose gradients are of its own
// tokens with sequence parallelism; nothing without it.
//   gradients  wide, of the whole of `flat`
void partial_sum(Rank *rank, const FlatState *flat, void *gradients);
