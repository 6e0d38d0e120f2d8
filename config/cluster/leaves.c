#include "config/cluster/leaves.h"

#include <stdint.h>

// Ports that a leaf switch has for NICs; see the header for the source.
enum { LEAF_NICS = 32, DRAGONFLY_GROUP_NICS = 1024 };

Leaves machines_leaves(Machines machines) {
    const int nics = machines.pool->nics_per_node, gpus = machines.pool->gpus_per_node;
    return (Leaves){machines.pool->topology, gpus, nics < gpus ? nics : gpus,
                    machines.network->sites};
}

bool leaves_exist(const Leaves *leaves) {
    return !leaves->sites || leaves->sites->kind != SITE_NODE;
}

bool leaves_on_rails(const Leaves *leaves) {
    return leaves->topology == TOPOLOGY_RAIL_FAT_TREE || leaves->topology == TOPOLOGY_RAIL_ONLY;
}

int leaves_num_nodes(const Leaves *leaves) {
    if (leaves_on_rails(leaves)) return LEAF_NICS;
    int nics = leaves->topology == TOPOLOGY_DRAGONFLY ? DRAGONFLY_GROUP_NICS : LEAF_NICS;
    return nics > leaves->nics_per_node ? nics / leaves->nics_per_node : 1;
}

int leaves_num_nics(const Leaves *leaves) {
    return leaves_num_nodes(leaves) * (leaves_on_rails(leaves) ? 1 : leaves->nics_per_node);
}

int leaves_block_of_node(const Leaves *leaves, int node) {
    const ClusterSites *sites = leaves->sites;
    const int num_nodes = leaves_num_nodes(leaves);
    int block = 0, first = 0;
    for (int site = 0; sites && site < sites->site_of_node[node]; site++) {
        block += (sites->num_nodes_of[site] - 1) / num_nodes + 1;
        first += sites->num_nodes_of[site];
    }
    return block + (node - first) / num_nodes;
}

int leaves_rail_of_gpu(const Leaves *leaves, int gpu) {
    const int local = gpu % leaves->gpus_per_node;
    return (int)((int64_t)local * leaves->nics_per_node / leaves->gpus_per_node);
}

int leaves_of_nic(const Leaves *leaves, int nic) {
    const int block = leaves_block_of_node(leaves, nic / leaves->nics_per_node);
    if (!leaves_on_rails(leaves)) return block;
    return block * leaves->nics_per_node + nic % leaves->nics_per_node;
}

int leaves_nic_of_gpu(const Leaves *leaves, int gpu) {
    return gpu / leaves->gpus_per_node * leaves->nics_per_node + leaves_rail_of_gpu(leaves, gpu);
}

int leaves_of_gpu(const Leaves *leaves, int gpu) {
    return leaves_of_nic(leaves, leaves_nic_of_gpu(leaves, gpu));
}
