// config/cluster/cluster.h - the machines of a scenario (CONTRACT.md, section "cluster"), checked.
//
// A cluster is a list of pools, each of machines of one kind, and the network that joins its nodes.
// Where all nodes are alike there is one pool; each group of a scenario is one where they differ.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster/pool.h"
#include "config/machine/sites.h"

#include <stdbool.h>
#include <stdint.h>

// What joins the nodes, beside the leaves and the spine of each pool.
typedef struct {
    const ClusterSites
        *sites; // joined groups, or a measured matrix; NULL: all nodes are one network
    const struct NodeOrder *order;  // which node runs which ranks (config/cluster/node_order.h), of
                                    // one pool; NULL: as they are numbered
    const struct NodeOrder *placed; // several pools stand in another order than the scenario's: its
                                    // nodes in the order of theirs; else NULL
    const KnownSlowdown *known;     // [num_known] of this traffic, whatever the links say
    int num_known;
} ClusterNetwork;

typedef struct {
    const char *name;                   // preset name, or "custom"
    int num_gpus, idle_gpus, num_nodes; // of all pools together
    ClusterNetwork network;
    int num_pools;     // >= 1
    const Pool *pools; // [num_pools] whose nodes and GPUs are numbered one pool after the other; of
                       // several, each is one of the network's sites
} Cluster;

// Nodes of one kind, and the network that the traffic among them takes. What is priced is priced
// on these: of the traffic between pools none is in them.
typedef struct {
    const Pool *pool;
    const ClusterNetwork *network;
} Machines;

// A cluster's pool as traffic among its own ranks sees it, whose ranks are numbered from 0.
Machines cluster_machines(const Cluster *cluster, int pool);

// Such machines as a cluster of their own, which shares the pool.
Cluster cluster_of_machines(Machines machines, const char *name);

// The pool of a cluster that has no other.
const Pool *cluster_only_pool(const Cluster *cluster);

// A cluster of these pools, which it shares.
Cluster cluster_of_pools(const char *name, const Pool *pools, int num_pools,
                         const ClusterNetwork *network);

// Gives a cluster pools of its own, as they were, which the caller may change.
//   returns  [num_pools] in the arena
Pool *cluster_own_pools(Cluster *cluster, Arena *arena);

// Reads a scenario's cluster: "PRESET:NODES", the path of a file with an object (relative to the
// file of value), or an object.
Status cluster_load(const JsonNode *value, Arena *arena, Cluster *out);

// Reads one that takes its measured kernels from a shelf (config/software/kernel_shelf.h), which
// must outlive it.
struct KernelShelf;
Status cluster_load_shared(const JsonNode *value, struct KernelShelf *shelf, Arena *arena,
                           Cluster *out);

typedef struct {
    const char *name;
    const char *title;
    const char *gpu;
    int gpus_per_node;
    int domain_gpus;
    const char *link;
    int nics_per_node;
    double nic_bytes_per_s;
} ClusterSummary;

// All bundled cluster presets, sorted by name.
Status cluster_list(Arena *arena, ClusterSummary **out, int *num_clusters);

// A cluster of one pool with another number of GPUs (pool_with_gpus). With more nodes than its
// sites have it is one network. Nodes run ranks as they are numbered, unless their number is the
// same.
Cluster cluster_with_gpus(const Cluster *cluster, int num_gpus, Arena *arena);

// All GPUs of a cluster, idle ones too.
int cluster_total_gpus(const Cluster *cluster);

// A cluster that runs ranks on num_gpus of its GPUs and leaves the others idle (pool_use).
//   returns  whether there is such a use; never another than the present one of several pools,
//            joined groups and a measured matrix, whose nodes differ
bool cluster_use(const Cluster *cluster, int num_gpus, Arena *arena, Cluster *out);
bool cluster_can_use(const Cluster *cluster, int num_gpus);

// What the driver gives to one process on a GPU of the pool where that is most: no rank has more.
double cluster_most_memory_bytes(const Cluster *cluster);

// The pool that a GPU (node) is of, and the first GPU (node) of a pool.
int cluster_pool_of_gpu(const Cluster *cluster, int64_t gpu);
int cluster_pool_first_gpu(const Cluster *cluster, int pool);
int cluster_pool_of_node(const Cluster *cluster, int node);
int cluster_pool_first_node(const Cluster *cluster, int pool);

// The node that a GPU is in.
int cluster_node_of_gpu(const Cluster *cluster, int64_t gpu);
