// config/cluster/pool.h - a pool: nodes of one kind, of which a cluster has one or several.
//
// What a rank costs hangs on the pool that it lies on: its GPU with its kernels, the links inside
// a node and its scale-up domain, its NICs and the leaves that they hang on, prices and power.
#pragma once

#include "config/kernels/kernels.h"
#include "config/machine/gpu.h"
#include "config/machine/link.h"
#include "config/machine/wires.h"

#include <stdbool.h>

typedef enum {
    TOPOLOGY_RAIL_FAT_TREE, // NIC i of every node hangs on the leaf switches of rail i
    TOPOLOGY_FAT_TREE,      // a node's NICs hang on one leaf
    TOPOLOGY_RAIL_ONLY,     // no spine between rails
    TOPOLOGY_DRAGONFLY,
    NUM_TOPOLOGIES
} Topology;

extern const char *const TOPOLOGY_NAMES[NUM_TOPOLOGIES + 1]; // ends with NULL

typedef struct {
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
    double nic_bytes_per_s;  // one NIC, one direction
    Topology topology;       // of the pool's own leaves and spine
    double oversubscription; // >= 1, of the leaf uplinks
    double price_usd_per_gpu_hour;
    const char *price_source; // list and date, or who states it; NULL: not known
    bool price_is_stated;     // by the scenario's cluster itself
    double power_watts_per_gpu;
} Pool;

// A pool of such nodes with another number of GPUs, which the caller checked. Of nodes that are
// not all whole as many GPUs of each are used: of 256 GPUs in racks of 72, 64 of each of 4 racks,
// the first, with their share of the NICs; so are those of domains that span nodes. Where that
// does not work out (100 GPUs in nodes of 8) the whole nodes are used, and the others are idle. A
// number below a node's is a partial node.
// Source: NVIDIA, "Unlock Exascale Performance on NVIDIA GB200 NVL72 with Slurm Topology-Aware Job
//         Scheduling", technical blog, 2026: large jobs ask Slurm's topology/block plugin for
//         segments of 16 of a rack's 18 trays (--segment=16), 64 GPUs of each rack.
Pool pool_with_gpus(const Pool *pool, int num_gpus);

// A pool that runs ranks on num_gpus of its GPUs and leaves the others idle: as many of each of
// the fewest nodes that can be used alike, no more than there are.
//   returns  whether there is such a use
bool pool_use(const Pool *pool, int num_gpus, Pool *out);
