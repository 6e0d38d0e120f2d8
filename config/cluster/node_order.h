// config/cluster/node_order.h - which node runs which ranks (`parallel.placement`).
//
// A node runs gpus_per_node neighbouring ranks, a rank on each GPU in their order. Where a cluster
// has no order, node i runs the i-th of these blocks, and rank and GPU have one number.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster/cluster.h"

#include <stdint.h>

typedef struct NodeOrder {
    int num_nodes;
    const int *node;  // [num_nodes] that runs a block of ranks
    const int *block; // [num_nodes] of ranks that a node runs
} NodeOrder;

// An order of its own memory.
//   nodes  [num_nodes] each of 0 .. num_nodes - 1 once
const NodeOrder *node_order_new(const int *nodes, int num_nodes, Arena *arena);

// Refuses an order that takes nodes of one scale-up domain apart.
Status node_order_check(const JsonNode *placement, const Cluster *cluster);

// The GPU that runs a rank, the rank that a GPU runs, and the GPUs' first rank of a node.
int64_t cluster_gpu_of_rank(const Cluster *cluster, int64_t rank);
int64_t cluster_rank_of_gpu(const Cluster *cluster, int64_t gpu);
int64_t machines_gpu_of_rank(Machines machines, int64_t rank);
int64_t machines_rank_of_gpu(Machines machines, int64_t gpu);
int64_t cluster_first_rank(const Cluster *cluster, int node);
