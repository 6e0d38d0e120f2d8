// costmodel/kernel/rising_attention.h - measured attention whose time rises with sequences, tokens
// and heads, but where generation takes another kernel.
//
// Model:  costmodel/kernel/kernel_context.h and kernel_generation.h on a lattice that rises
//         (costmodel/kernel/rising.h) over key-value heads of all sequences, tokens, and query
//         heads for each. The tokens of a prompt have knots at the edges of the first tiles, where
//         the time jumps. Generation has one lattice for each kernel; which one runs is the
//         library's rule (generation_sharing), and with more sequences, keys or heads the time may
//         fall where the rule takes the other. Those sizes are edges.
#pragma once

#include "config/kernels/kernel_attention.h"
#include "costmodel/kernel/kernel_attention.h"
#include "costmodel/kernel/kernel_edge.h"

typedef struct RisingAttention RisingAttention;

// One of the two is there; all must live as long as the arena.
RisingAttention *rising_attention_new(const Gpu *gpu, const ContextKernels *context,
                                      const GenerationKernels *generation, Arena *arena);

// NAN as kernel_context_s and kernel_generation_s have it.
double rising_attention_s(RisingAttention *attention, const AttentionShape *shape);

// Edges of sequences, tokens (of a prompt or all keys of a step) and heads: dimensions batch,
// tokens, heads.
//   heads_alone  there are as many key-value heads as heads, however many
void rising_attention_edges(RisingAttention *attention, const AttentionShape *shape,
                            bool heads_alone, KernelEdges *edges);
