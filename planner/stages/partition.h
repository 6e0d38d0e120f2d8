// planner/stages/partition.h - exact splits of unequal layers over pipeline chunks.
//
// Model:  a chunk costs the sum of its layers; the first chunk also holds the embedding, the last
//         the head. The pipeline's period is the cost of its busiest rank.
// Source: Bokhari, "Partitioning problems in parallel, pipelined, and distributed computing", IEEE
//         Trans. Computers 37(1), 1988 (chains on chains); Pinar and Aykanat, "Fast optimal load
//         balancing algorithms for 1D partitioning", J. Parallel Distrib. Comput. 64(8), 2004
//         (dynamic program with bisection).
#pragma once

#include "base/arena.h"

typedef struct {
    const double *layer_s; // [num_layers] >= 0
    int num_layers;
    double first_s; // beside the layers of the first chunk, >= 0
    double last_s;  // beside the layers of the last chunk, >= 0
} PartitionCosts;

// The contiguous split whose largest chunk is smallest; among those, the one whose squared chunk
// costs add up to the least.
//   num_chunks  >= 1; chunks may stay empty
//   out         [num_chunks] layers of each
//   returns     the cost of the largest chunk
double partition_chunks(const PartitionCosts *costs, int num_chunks, Arena *arena, int *out);

// The split for an interleaved pipeline, chunk c on rank c % pp: the busiest rank has the least
// work. Exact where all layers cost the same; otherwise the split of partition_chunks.
//   out      [pp * vpp]
//   returns  the cost of the busiest rank
double partition_interleaved(const PartitionCosts *costs, int pp, int vpp, Arena *arena, int *out);

// The cost of the busiest rank under a given split.
double partition_cost(const PartitionCosts *costs, int pp, int vpp, const int *layers);
