// The pools of a cluster.
#include "config/cluster/cluster.h"

#include <assert.h>
#include <math.h>
#include <string.h>

Cluster cluster_of_pools(const char *name, const Pool *pools, int num_pools,
                         const ClusterNetwork *network) {
    Cluster c = {.name = name, .network = *network, .num_pools = num_pools, .pools = pools};
    for (int i = 0; i < num_pools; i++) {
        c.num_gpus += pools[i].num_gpus;
        c.idle_gpus += pools[i].idle_gpus;
        c.num_nodes += pools[i].num_nodes;
    }
    return c;
}

Machines cluster_machines(const Cluster *cluster, int pool) {
    static const ClusterNetwork OWN; // traffic among the ranks of one of several never leaves it
    return (Machines){&cluster->pools[pool], cluster->num_pools == 1 ? &cluster->network : &OWN};
}

Cluster cluster_of_machines(Machines machines, const char *name) {
    return cluster_of_pools(name, machines.pool, 1, machines.network);
}

const Pool *cluster_only_pool(const Cluster *cluster) {
    assert(cluster->num_pools == 1);
    return &cluster->pools[0];
}

Pool *cluster_own_pools(Cluster *cluster, Arena *arena) {
    Pool *pools = ARENA_ARRAY(arena, cluster->num_pools, Pool);
    memcpy(pools, cluster->pools, (size_t)cluster->num_pools * sizeof *pools);
    cluster->pools = pools;
    return pools;
}

double cluster_most_memory_bytes(const Cluster *cluster) {
    double most = 0;
    for (int i = 0; i < cluster->num_pools; i++)
        most = fmax(most, cluster->pools[i].gpu.memory_available_bytes);
    return most;
}

int cluster_pool_first_gpu(const Cluster *cluster, int pool) {
    int first = 0;
    for (int i = 0; i < pool; i++) first += cluster->pools[i].num_gpus;
    return first;
}

int cluster_pool_first_node(const Cluster *cluster, int pool) {
    int first = 0;
    for (int i = 0; i < pool; i++) first += cluster->pools[i].num_nodes;
    return first;
}

int cluster_pool_of_gpu(const Cluster *cluster, int64_t gpu) {
    int pool = 0;
    for (int64_t end = 0; pool + 1 < cluster->num_pools; pool++) {
        end += cluster->pools[pool].num_gpus;
        if (gpu < end) break;
    }
    return pool;
}

int cluster_pool_of_node(const Cluster *cluster, int node) {
    int pool = 0;
    for (int end = 0; pool + 1 < cluster->num_pools; pool++) {
        end += cluster->pools[pool].num_nodes;
        if (node < end) break;
    }
    return pool;
}

int cluster_node_of_gpu(const Cluster *cluster, int64_t gpu) {
    const int pool = cluster_pool_of_gpu(cluster, gpu);
    const int64_t own = gpu - cluster_pool_first_gpu(cluster, pool);
    return cluster_pool_first_node(cluster, pool) + (int)(own / cluster->pools[pool].gpus_per_node);
}
