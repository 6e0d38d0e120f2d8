#include "config/cluster/node_order.h"

#include <string.h>

const NodeOrder *node_order_new(const int *nodes, int num_nodes, Arena *arena) {
    NodeOrder *order = ARENA_NEW(arena, NodeOrder);
    int *node = ARENA_ARRAY(arena, num_nodes, int), *block = ARENA_ARRAY(arena, num_nodes, int);
    memcpy(node, nodes, (size_t)num_nodes * sizeof *node);
    for (int i = 0; i < num_nodes; i++) block[nodes[i]] = i;
    *order = (NodeOrder){num_nodes, node, block};
    return order;
}

Status node_order_check(const JsonNode *placement, const Cluster *cluster) {
    const NodeOrder *order = cluster->network.order;
    if (!order) return status_ok();
    const Pool *pool = cluster_only_pool(cluster);
    const int domain_nodes = pool->domain_gpus / pool->gpus_per_node;
    if (domain_nodes < 2) return status_ok();
    for (int i = 0; i < order->num_nodes; i++) {
        const int first = order->node[i - i % domain_nodes];
        if (order->node[i] / domain_nodes == first / domain_nodes) continue;
        const JsonNode entry = json_at(placement, i);
        return json_error(&entry,
                          "%d is not of the scale-up domain of node %d; expected its %d nodes one "
                          "after the other",
                          order->node[i], first, domain_nodes);
    }
    return status_ok();
}

// The number at the same place in another block of as many.
static int64_t moved(int64_t number, int block_size, const int *to) {
    return (int64_t)to[number / block_size] * block_size + number % block_size;
}

int64_t cluster_gpu_of_rank(const Cluster *cluster, int64_t rank) {
    return cluster->network.order ? machines_gpu_of_rank(cluster_machines(cluster, 0), rank) : rank;
}

int64_t cluster_rank_of_gpu(const Cluster *cluster, int64_t gpu) {
    return cluster->network.order ? machines_rank_of_gpu(cluster_machines(cluster, 0), gpu) : gpu;
}

int64_t machines_gpu_of_rank(Machines machines, int64_t rank) {
    const NodeOrder *order = machines.network->order;
    return order ? moved(rank, machines.pool->gpus_per_node, order->node) : rank;
}

int64_t machines_rank_of_gpu(Machines machines, int64_t gpu) {
    const NodeOrder *order = machines.network->order;
    return order ? moved(gpu, machines.pool->gpus_per_node, order->block) : gpu;
}

int64_t cluster_first_rank(const Cluster *cluster, int node) {
    const NodeOrder *order = cluster->network.order;
    const int block = order ? order->block[node] : node;
    return (int64_t)block * cluster_only_pool(cluster)->gpus_per_node;
}
