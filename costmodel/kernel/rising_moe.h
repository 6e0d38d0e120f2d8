// costmodel/kernel/rising_moe.h - measured expert layers whose time rises with tokens, hidden and
// inner size but at edges.
//
// Model:  costmodel/kernel/kernel_moe.h on a lattice over tokens and inner size that rises without
// edges
//         (costmodel/kernel/rising.h), one for each layer. Rounding gives the busiest rank of a
//         skewed layer now one row more, now one less. The residual grid may fall with the inner
//         size faster than the formula rises. With the hidden size the formula rises; where it is
//         small, one more tile of columns is an edge.
// Limits: loads of more than 65,536 tokens grow with the tokens.
#pragma once

#include "costmodel/kernel/kernel_edge.h"
#include "costmodel/kernel/kernel_moe.h"

typedef struct RisingMoe RisingMoe;

RisingMoe *rising_moe_new(const Gpu *gpu, Arena *arena); // arena: of all lattices

// NAN as kernel_moe_s has it; the kernel must live as long as the arena.
double rising_moe_s(RisingMoe *moe, const MoeKernel *kernel, const MoeShape *shape);

// Edges of num_tokens, hidden_size and inter_size (before its split over num_splits ranks) of a
// layer that has a price.
void rising_moe_edges(RisingMoe *moe, const MoeKernel *kernel, const MoeShape *shape,
                      double num_splits, KernelEdges *edges);
