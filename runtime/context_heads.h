// runtime/context_heads.h - context parallelism by exchanging heads for tokens: each cp rank has
// some heads of all tokens while it attends (Jacobs et al. 2023, arXiv:2309.14509, section 3.1).
#pragma once

#include "runtime/layer.h"

// As context_attend and context_attend_backward of runtime/context.h. The stash then has queries,
// keys and values after the exchange, and the output before and behind it.
void heads_attend(Rank *rank, const Attention *base, LayerStash *stash);

Tensor *heads_attend_backward(Rank *rank, const Attention *base, const LayerStash *stash,
                              Tensor **dout);
