// costmodel/network/message.h - how long a message between pipeline ranks takes.
//
// Model:  every GPU of a rank sends one to its counterpart: over the scale-up links where all
//         these pairs share a domain, else over their parts of the NICs, which those that send
//         share, and of what lies between. Between different machines the slower end sets the pace.
#pragma once

#include "config/cluster/cluster.h"
#include "plan/plan.h"

#include <stdbool.h>

bool ranks_share_domain(const Cluster *cluster, const Plan *plan, int rank, int peer);

// What each pair of GPUs of two ranks that share a domain has, nominally: the GPUs' ports, or, on
// wires of their own (config/machine/wires.h), what the slowest pair gets while all send, either
// way.
double ranks_near_bytes_per_s(const Cluster *cluster, const Plan *plan, int rank, int peer);

// How many times as long the transfer of a message to another domain takes as over the GPUs' shares
// of their NICs. It is less than 1 where few of the GPUs that share a NIC send. It is more where
// leaves (costmodel/network/leaf_links.h) or links between sites (costmodel/network/site_links.h)
// have less left.
double ranks_network_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer);

// Whether GPUs of several stages that alternate (plan/rank_place.h) may share a NIC. A collective
// is priced as if all of them sent, so it is faster wherever they do not: what the simulation then
// finds spare is no error of the estimate.
bool stages_share_nics(const Cluster *cluster, const Plan *plan);

// Seconds of one message of message_bytes per GPU; *alpha_s is its latency part.
double ranks_message_s(const Cluster *cluster, const Plan *plan, int rank, int peer,
                       double message_bytes, double *alpha_s);
