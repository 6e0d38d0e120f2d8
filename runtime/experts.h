// runtime/experts.h - the experts of a layer: a router gives each token the experts_per_token of
// the largest probabilities, whose results are added up with these as weights (Shazeer et al. 2017,
// arXiv:1701.06538, section 2; GShard, arXiv:2006.16668, has the all-to-all). Weights are divided
// by their sum, as in Mixtral and Qwen3.
//
// The gradient of a weight is that of its row times the row, both as the expert has them before its
// last product. So it is known where what that product reads is kept, and results are not kept or
// sent again for it. It goes back as one number a row.
#pragma once

#include "runtime/grouped.h"
#include "runtime/routes.h"

typedef struct {
    Tensor *probabilities, *weights; // wide [tokens_sp][num_experts], [..][experts_per_token]
    Tensor *chosen;                  // int32 [tokens_sp][experts_per_token]
    Routes routes;                   // in the host's memory until weights have their gradients
    Tensor *rows;                    // [num_rows][hidden] what the experts read
    Tensor *up, *inner;              // [num_rows][expert_up], [num_rows][expert_inner]
} ExpertStash;

// x [tokens_sp][hidden]; returns as much.
//   keeps  what the backward reads stays in the stash; else nothing does
Tensor *experts_forward(Rank *rank, const ChunkState *chunk, const LayerParameters *parameters,
                        const Tensor *x, ExpertStash *stash, bool keeps);

// From the gradient of the result to that of x. The stash is empty then, but for the host's part.
Tensor *experts_backward(Rank *rank, const ChunkState *chunk, const LayerParameters *parameters,
                         Tensor *x, const Tensor *gradient, ExpertStash *stash, WeightQueue *queue);
