// config/cluster/cluster.h - the machines of a scenario (CONTRACT.md, section "cluster"), checked.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/kernels/kernels.h"
#include "config/machine/gpu.h"
#include "config/machine/link.h"
#include "config/machine/sites.h"
#include "config/machine/wires.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    TOPOLOGY_RAIL_FAT_TREE, // NIC i of every node hangs on the leaf switches of rail i
    TOPOLOGY_FAT_TREE,      // a node's NICs hang on one leaf
    TOPOLOGY_RAIL_ONLY,     // no spine between rails
    TOPOLOGY_DRAGONFLY,
    NUM_TOPOLOGIES
} Topology;

extern const char *const TOPOLOGY_NAMES[NUM_TOPOLOGIES + 1]; // ends with NULL

typedef struct Cluster {
    const char *name; // preset name, or "custom"
    Gpu gpu;
    const CalibratedKernels *kernels; // of gpu, once a whole scenario is read; NULL:
                                      // costmodel/kernel/compute.h has its compact formula
    int num_gpus;                     // that run ranks: as many in each of num_nodes
    int idle_gpus; // of the scenario's, but no rank runs on them; they are paid for
    int gpus_per_node;
    int num_nodes;
    // Of a whole node, where a part of it is used; 0: as above.
    int whole_node_gpus, whole_node_nics, whole_domain_gpus;
    Link scale_up;                      // inside a domain
    const NcclKernels *scale_up_curves; // measured over scale_up; NULL: its constants are all
    int domain_gpus;                    // GPUs of one scale-up domain; may span nodes
    const Wires *wires; // of a domain without a switch; NULL: each GPU has one port to all others
    const Wires *const *wires_of; // [whole_domain_gpus + 1] of domains of so many GPUs; or NULL
    Link scale_out;               // between domains; bandwidth is nic_bytes_per_s
    int nics_per_node;
    double nic_bytes_per_s; // one NIC, one direction
    Topology topology;
    double oversubscription; // >= 1, of the leaf uplinks
    double price_usd_per_gpu_hour;
    const char *price_source; // list and date, or who states it; NULL: not known
    bool price_is_stated;     // by the scenario's cluster itself
    double power_watts_per_gpu;
    const ClusterSites
        *sites; // joined groups, or a measured matrix; NULL: all nodes are one network
    const struct NodeOrder *order;  // which node runs which ranks (config/cluster/node_order.h);
                                    // NULL: as they are numbered
    const struct NodeOrder *placed; // groups of different machines stand in another order than the
                                    // scenario's: its nodes in the order of theirs; else NULL
    const KnownSlowdown *known;     // [num_known] of this traffic, whatever the links say
    int num_known;
    // Groups of different machines, each as a cluster of its own, with its kernels; what stands
    // above is then the first, with the GPUs and nodes of all. NULL: all nodes are alike.
    const struct Cluster *groups; // [sites->num_sites]
} Cluster;

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

// A cluster of such machines with another number of GPUs, which the caller checked. Of nodes that
// are not all whole as many GPUs of each are used. Of 256 GPUs in racks of 72, for example, these
// are the first 64 of each of 4 racks, with their share of the NICs. The GPUs of domains that span
// nodes are used in this way, too. Where that does not work out (100 GPUs in nodes of 8) the whole
// nodes are used, and the others are idle. A number below a node's is a partial node. With more
// nodes than its sites have it is one network. Nodes run ranks as they are numbered, unless their
// number is the same. Source: NVIDIA, "Unlock Exascale Performance on NVIDIA GB200 NVL72 with Slurm
// Topology-Aware Job
//         Scheduling", technical blog, 2026: large jobs ask Slurm's topology/block plugin for
//         segments of 16 of a rack's 18 trays (--segment=16), 64 GPUs of each rack.
Cluster cluster_with_gpus(const Cluster *cluster, int num_gpus);

// All GPUs of a cluster, idle ones too.
int cluster_total_gpus(const Cluster *cluster);

// A cluster that runs ranks on num_gpus of its GPUs and leaves the others idle: as many of each of
// the fewest nodes that can be used alike, no more than there are.
//   returns  whether there is such a use; never another than the present one of joined groups and
//            of a measured matrix, whose nodes differ
bool cluster_use(const Cluster *cluster, int num_gpus, Cluster *out);

// Of groups of different machines: the one that a GPU (node) is of, and the first GPU (node) of
// one. 0 where all nodes are alike.
int cluster_num_groups(const Cluster *cluster); // 1 where all nodes are alike
int cluster_group_of_gpu(const Cluster *cluster, int64_t gpu);
int cluster_group_first_gpu(const Cluster *cluster, int group);
int cluster_group_of_node(const Cluster *cluster, int node);
int cluster_group_first_node(const Cluster *cluster, int group);

// The machines of a group: the cluster itself where all nodes are alike.
const Cluster *cluster_group(const Cluster *cluster, int group);
