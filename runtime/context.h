// runtime/context.h - attention over sequences that are split over cp ranks.
//
// A sequence is cut into 2 cp slices; rank r has the r-th and the r-th from the end, so that with a
// causal mask all have as much to do (Megatron-LM; Brandon et al. 2023, "Striped attention",
// arXiv:2311.09431, has the problem). By plan.cp_method: keys and values go round a ring (Liu et
// al. 2023, arXiv:2310.01889); or are gathered; or heads are exchanged for tokens (Jacobs et al.
// 2023, arXiv:2309.14509).
#pragma once

#include "runtime/layer.h"

// Place in its sequence of token `i` of the seq_len that rank `index` of `cp` has of one.
int64_t context_position(const RankShape *shape, int cp, int index, int64_t i);

// As runtime/layer.c does it on one rank: makes stash->o and stash->lse of stash->qkv. `base` is
// the attention of this rank's tokens among themselves, which what is made is like.
void context_attend(Rank *rank, const Attention *base, LayerStash *stash);

// Returns the gradient of stash->qkv, still rotated; may take *dout.
Tensor *context_attend_backward(Rank *rank, const Attention *base, const LayerStash *stash,
                                Tensor **dout);
