// costmodel/network/leaf_links.h - what oversubscribed uplinks of leaf switches take from what
// crosses them.
//
// Model:  all groups of a shape communicate at the same time, as in costmodel/network/collective.h,
// each
//         GPU at its share of its node's NICs. Flows between NICs of one leaf
//         (config/cluster/leaves.h) do not leave it; the others share the leaf's uplinks, which
//         hold 1 / oversubscription of what its NICs do. The fullest leaf sets the pace. So a ring
//         over the nodes of a leaf loses nothing, one that goes on from leaf to leaf crosses each
//         once, and messages between stages of whole leaves all cross.
// Limits: other traffic on the uplinks is modelled in sim/.
#pragma once

#include "config/cluster/cluster.h"
#include "plan/plan.h"
#include "workload/pass/group.h"
#include "workload/pass/operator.h"

// How many times as long as over the GPUs' shares of their NICs a collective's transfer across
// domains takes, >= 1.
//   ranks_per_domain  of the group: flows go on to the rank at the same place in another domain
//   ranks             whose groups: all, or those of a stage
double leaves_slowdown(Machines machines, CollectiveKind kind, Group group, int ranks_per_domain,
                       RankSpan ranks);

// By how much flows are slowed that all go on by so many places of their group.
double leaves_step_slowdown(Machines machines, Group group, int places);

// By how much the messages of all GPUs of a pipeline rank to a peer, and back, are slowed; below 1
// where the uplinks have more left.
double ranks_leaves_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer);

// With what links between sites take, too (costmodel/network/site_links.h): the larger of both; or
// what is known of this traffic.
double network_slowdown(Machines machines, CollectiveKind kind, Group group, int ranks_per_domain,
                        RankSpan ranks);
