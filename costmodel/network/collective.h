// costmodel/network/collective.h - how long one collective takes on one group of ranks.
//
// Model:  inside a scale-up domain the measured curves of its link
// (costmodel/kernel/kernel_nccl.h), where
//         there are any; else alpha-beta. A group that spans several domains is paid
//         hierarchically: inside a domain at the scale-up link's rate, across domains at the NIC
//         bandwidth of the group's members in one domain. All groups of a kind communicate at the
//         same time, so a GPU has its share of the node's NICs and no more. docs/models.md,
//         section 4.
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//         workstations", J. Parallel Distrib. Comput. 69(2), 2009; Thakur, Rabenseifner, Gropp,
//         "Optimization of collective communication operations in MPICH", 2005; NCCL tests'
//         PERFORMANCE.md (bus bandwidth).
// Limits: contention with other kinds of groups is modelled in sim/.
#pragma once

#include "config/cluster/cluster.h"
#include "workload/pass/group.h"
#include "workload/pass/operator.h"

// Where a group's ranks lie.
typedef struct {
    int num_ranks;                  // of the group
    int ranks_per_domain;           // of them in one scale-up domain, >= 1
    int num_domains;                // spanned, >= 1; by the worst placed group where they differ
    double nic_bytes_per_s_per_gpu; // one GPU's share of its node's NICs, one direction
} GroupLayout;

GroupLayout group_layout(const Pool *pool, Group group);

// Whether each rank sends to the next only, not to all others.
bool collective_is_ring(CollectiveKind kind);

// Seconds of a collective; 0 for a group of one.
//   message_bytes  as defined beside CollectiveKind, >= 0
// Dispatch and combine are priced as an all-to-all here; costmodel/network/exchange.h knows their
// kernels.
double collective_s(Machines machines, CollectiveKind kind, Group group, double message_bytes);

// Seconds of a collective of the groups of some ranks, such as those of a stage: where links
// between nodes differ it matters which.
double span_collective_s(Machines machines, CollectiveKind kind, Group group, RankSpan ranks,
                         double message_bytes);

// Seconds that the links inside a domain are busy with a collective that spans several; 0 of
// others.
double collective_inside_s(const Pool *pool, CollectiveKind kind, Group group,
                           double message_bytes);

// What each rank of groups of this shape has inside a domain, nominally. It is its port's rate, or
// its part of the domain's wires (config/machine/wires.h). All groups of the shape use the wires
// then, or those of `ranks` alone where these lie within one domain.
double group_bytes_per_s(const Pool *pool, CollectiveKind kind, Group group, RankSpan ranks);

// Whether two GPUs lie in one scale-up domain.
bool gpus_share_domain(const Cluster *cluster, int gpu_a, int gpu_b);

// Seconds of one point-to-point message while every GPU of the stage sends one.
//   same_domain  over the scale-up link, each GPU its own; else over the GPU's share of the NICs
//   returns      latency + bytes / bandwidth; *alpha_s (where not NULL) is the latency part
double p2p_s(const Pool *pool, bool same_domain, double message_bytes, double *alpha_s);
