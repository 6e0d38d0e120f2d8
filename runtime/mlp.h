// runtime/mlp.h - the second half of a layer behind its norm: a dense MLP, split over tp; or
// experts, and the MLP of those that every token goes to, added up.
#pragma once

#include "runtime/layer.h"

// Of stash->norm[1]; returns [tokens_sp][hidden].
//   keeps  what the backward reads stays; else nothing does, the norm's result neither
Tensor *mlp_forward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash, bool keeps);

// From the gradient of that to the gradient of the norm's result.
Tensor *mlp_backward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash,
                     Tensor *gradient, WeightQueue *queue);

// The activation between two products, of `width` values a row behind it.
Activation activation_of(const Rank *rank, const Tensor *x, int64_t rows, int64_t width);
