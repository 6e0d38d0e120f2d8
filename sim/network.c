#include "sim/network.h"

#include <assert.h>
#include <stdbool.h>

// Ports that a leaf switch has for NICs; see the header for the source.
enum { LEAF_NICS = 32, DRAGONFLY_GROUP_NICS = 1024 };

static int min_int(int a, int b) {
    return a < b ? a : b;
}

static bool has_rails(const Network *network) {
    return network->topology == TOPOLOGY_RAIL_FAT_TREE || network->topology == TOPOLOGY_RAIL_ONLY;
}

// Nodes whose NICs (of one rail, where there are rails) share a leaf.
static int leaf_nodes(const Network *network) {
    if (has_rails(network)) return LEAF_NICS;
    int nics = network->topology == TOPOLOGY_DRAGONFLY ? DRAGONFLY_GROUP_NICS : LEAF_NICS;
    return nics > network->nics_per_node ? nics / network->nics_per_node : 1;
}

static int rail_of_gpu(const Network *network, int gpu) {
    int local = gpu % network->gpus_per_node;
    return (int)((int64_t)local * network->nics_per_node / network->gpus_per_node);
}

static int nic_of_gpu(const Network *network, int gpu) {
    return gpu / network->gpus_per_node * network->nics_per_node + rail_of_gpu(network, gpu);
}

static int leaf_of_gpu(const Network *network, int gpu) {
    int block = gpu / network->gpus_per_node / leaf_nodes(network);
    if (!has_rails(network)) return block;
    return block * network->nics_per_node + rail_of_gpu(network, gpu);
}

// Links are numbered in the order: ports out, ports in, NICs out, NICs in, leaves up, leaves down.
static int first_nic_link(const Network *network) {
    return 2 * network->num_gpus;
}

static int first_leaf_link(const Network *network) {
    return first_nic_link(network) + 2 * network->num_nodes * network->nics_per_node;
}

static Network network_shape(const Cluster *cluster) {
    int nics = min_int(cluster->nics_per_node, cluster->gpus_per_node);
    double node_bytes_per_s = cluster->nics_per_node * cluster->nic_bytes_per_s;
    Network network = {
        .topology = cluster->topology,
        .oversubscription = cluster->oversubscription,
        .num_gpus = cluster->num_gpus,
        .gpus_per_node = cluster->gpus_per_node,
        .domain_gpus = cluster->domain_gpus,
        .num_nodes = cluster->num_nodes,
        .nics_per_node = nics,
        .num_folded = 1,
        .scale_up_bytes_per_s = cluster->scale_up.bandwidth_bytes_per_s,
        .nic_share_bytes_per_s = node_bytes_per_s / cluster->gpus_per_node,
    };
    int num_blocks = (cluster->num_nodes - 1) / leaf_nodes(&network) + 1;
    network.num_leaves = has_rails(&network) ? num_blocks * nics : num_blocks;
    network.num_links = first_leaf_link(&network) + 2 * network.num_leaves;
    return network;
}

// How many GPUs of the block that starts at this GPU use its NIC, and its leaf.
static void block_sharing(const Network *network, int first_gpu, int num_folded, int *num_on_nic,
                          int *num_on_leaf) {
    *num_on_nic = *num_on_leaf = 0;
    for (int gpu = first_gpu; gpu < first_gpu + num_folded; gpu++) {
        *num_on_nic += nic_of_gpu(network, gpu) == nic_of_gpu(network, first_gpu);
        *num_on_leaf += leaf_of_gpu(network, gpu) == leaf_of_gpu(network, first_gpu);
    }
}

const char *network_folds(const Cluster *cluster, int num_folded) {
    Network network = network_shape(cluster);
    if (network.num_gpus % num_folded != 0) return "the GPUs do not divide into such blocks";
    if (network.domain_gpus % num_folded != 0 && num_folded % network.domain_gpus != 0) {
        return "its ranks lie across scale-up domains unevenly";
    }
    int num_on_nic, num_on_leaf;
    block_sharing(&network, 0, num_folded, &num_on_nic, &num_on_leaf);
    for (int gpu = num_folded; gpu < network.num_gpus; gpu += num_folded) {
        int on_nic, on_leaf;
        block_sharing(&network, gpu, num_folded, &on_nic, &on_leaf);
        if (on_nic != num_on_nic) return "its ranks share NICs unevenly";
        if (on_leaf != num_on_leaf) return "its ranks share leaf switches unevenly";
    }
    return NULL;
}

Network network_build(const Cluster *cluster, int num_folded, Arena *arena) {
    Network network = network_shape(cluster);
    int num_on_nic, num_on_leaf;
    block_sharing(&network, 0, num_folded, &num_on_nic, &num_on_leaf);
    network.num_folded = num_folded;
    network.link_bytes_per_s = ARENA_ARRAY(arena, network.num_links, double);

    double nic_bytes_per_s =
        network.nic_share_bytes_per_s * network.gpus_per_node / network.nics_per_node;
    double nics_per_leaf = leaf_nodes(&network) * (has_rails(&network) ? 1 : network.nics_per_node);
    for (int i = 0; i < network.num_links; i++) {
        double *capacity = &network.link_bytes_per_s[i];
        if (i < first_nic_link(&network)) {
            *capacity = network.scale_up_bytes_per_s;
        } else if (i < first_leaf_link(&network)) {
            *capacity = nic_bytes_per_s / num_on_nic;
        } else {
            *capacity = nics_per_leaf * nic_bytes_per_s / network.oversubscription / num_on_leaf;
        }
    }
    return network;
}

static bool same_domain(const Network *network, int a, int b) {
    return a / network->domain_gpus == b / network->domain_gpus;
}

// The GPU beside from_gpu, in its node, that hangs on the rail of to_gpu; from_gpu itself where it
// does, or where the rails meet in a spine.
static int rail_proxy(const Network *network, int from_gpu, int to_gpu) {
    if (network->topology != TOPOLOGY_RAIL_ONLY) return from_gpu;
    if (rail_of_gpu(network, from_gpu) == rail_of_gpu(network, to_gpu)) return from_gpu;
    int first_gpu = from_gpu / network->gpus_per_node * network->gpus_per_node;
    return first_gpu + to_gpu % network->gpus_per_node;
}

int network_route(const Network *network, int from_gpu, int to_gpu, int links[MAX_HOPS]) {
    assert(from_gpu != to_gpu);
    int n = 0;
    int proxy =
        same_domain(network, from_gpu, to_gpu) ? to_gpu : rail_proxy(network, from_gpu, to_gpu);
    if (proxy != from_gpu) {
        links[n++] = from_gpu;
        links[n++] = network->num_gpus + proxy;
    }
    if (proxy == to_gpu) return n;

    int nics = first_nic_link(network), num_nics = network->num_nodes * network->nics_per_node;
    int leaves = first_leaf_link(network);
    int from_leaf = leaf_of_gpu(network, proxy), to_leaf = leaf_of_gpu(network, to_gpu);
    links[n++] = nics + nic_of_gpu(network, proxy);
    if (from_leaf != to_leaf) {
        links[n++] = leaves + from_leaf;
        links[n++] = leaves + network->num_leaves + to_leaf;
    }
    links[n++] = nics + num_nics + nic_of_gpu(network, to_gpu);
    return n;
}

double network_share_bytes_per_s(const Network *network, int from_gpu, int to_gpu) {
    if (same_domain(network, from_gpu, to_gpu)) return network->scale_up_bytes_per_s;
    return network->nic_share_bytes_per_s / network->oversubscription;
}

void network_links_of(const Network *network, const LinkName *name, int links[2]) {
    int first = name->index, between = network->num_gpus;
    if (name->kind == LINK_NIC) {
        first = first_nic_link(network) + name->index * network->nics_per_node + name->nic;
        between = network->num_nodes * network->nics_per_node;
    } else if (name->kind == LINK_LEAF) {
        first = first_leaf_link(network) + name->index;
        between = network->num_leaves;
    }
    links[0] = first;
    links[1] = first + between;
}

const char *network_link_name(const Network *network, int link, Arena *arena) {
    int nics = first_nic_link(network), leaves = first_leaf_link(network);
    int num_nics = network->num_nodes * network->nics_per_node;
    if (link < nics) {
        return arena_printf(arena, "nvlink:%d %s", link % network->num_gpus,
                            link < network->num_gpus ? "out" : "in");
    }
    if (link < leaves) {
        int nic = (link - nics) % num_nics;
        return arena_printf(arena, "nic:%d.%d %s", nic / network->nics_per_node,
                            nic % network->nics_per_node, link - nics < num_nics ? "out" : "in");
    }
    int leaf = link - leaves;
    return arena_printf(arena, "leaf:%d %s", leaf % network->num_leaves,
                        leaf < network->num_leaves ? "up" : "down");
}
