// config/cluster/leaves.h - which NICs of a cluster hang on the same leaf switch.
//
//   rail-fat-tree, rail-only  one leaf per rail and 32 nodes
//   fat-tree                  one leaf per 32 NICs
//   dragonfly                 one leaf stands for a group of 1,024 NICs
// Every group of nodes (config/machine/sites.h) begins with leaves of its own; a measured matrix
// stands in the place of leaves.
//
// Source: NVIDIA, "DGX SuperPOD Reference Architecture (DGX H100)", RA-11333-001, 2023: scalable
//         units of 32 nodes, rail-optimised leaves of 32 ports down and 32 up.
//         Rail-only: Wang et al. 2023, arXiv:2307.12169.
#pragma once

#include "config/cluster/cluster.h"

#include <stdbool.h>

typedef struct {
    Topology topology;
    int gpus_per_node;
    int nics_per_node;         // that GPUs use: at most one per GPU
    const ClusterSites *sites; // or NULL
} Leaves;

Leaves machines_leaves(Machines machines);

// Not with a measured matrix: nothing below is asked of such a cluster.
bool leaves_exist(const Leaves *leaves);

bool leaves_on_rails(const Leaves *leaves);

// Nodes whose NICs (of one rail, where there are rails) share a leaf, and NICs of a leaf.
int leaves_num_nodes(const Leaves *leaves);
int leaves_num_nics(const Leaves *leaves);

// Which set of nodes that share leaves a node is in.
int leaves_block_of_node(const Leaves *leaves, int node);

// NICs are numbered node by node, leaves block by block.
int leaves_rail_of_gpu(const Leaves *leaves, int gpu);
int leaves_nic_of_gpu(const Leaves *leaves, int gpu);
int leaves_of_nic(const Leaves *leaves, int nic);
int leaves_of_gpu(const Leaves *leaves, int gpu);
