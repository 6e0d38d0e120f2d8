// workload/pass/block_scan.h - what mixers that keep a state share: the exchange of tokens for
// heads over cp ranks, the short convolution, the gated norm behind the scan.
//
// Source: NVIDIA/Megatron-LM, megatron/core/ssm/mamba_context_parallel.py; Dao-AILab/causal-conv1d.
#pragma once

#include "workload/pass/builder.h"

// cp ranks trade tokens for heads before the convolution, and back behind the scan.
//   values  numbers of a token that a rank sends
void build_heads_exchange(Builder *b, bool before, double values);

// What it takes of a layer's FLOPs and bytes is small; it reads rows of tokens, so that its input
// and its results are transposed.
//   values  numbers that it reads, of all of the rank's tokens
void build_short_conv(Builder *b, double values);
