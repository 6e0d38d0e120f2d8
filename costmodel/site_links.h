// costmodel/site_links.h - what links between sites (config/sites.h) take from what crosses them.
//
// Model:  all groups of a shape communicate at the same time, as in costmodel/collective.h; the
//         GPUs whose traffic goes from one site to another share the link between these equally.
//         The slowest such link that some group crosses sets the pace of all. A ring pays the
//         latency of every crossing in each of its passes.
//         Collectives of groups of different machines lie within one (plan/plan_check.c), and are
//         priced on it alone.
// Limits: other traffic on these links is modelled in sim/.
#pragma once

#include "config/cluster.h"
#include "plan/plan.h"
#include "workload/group.h"
#include "workload/operator.h"

// How many times as long as over the GPUs' shares of their NICs a collective's transfer across
// domains takes; 1 where nothing between sites is slower.
//   ranks_per_domain  of the group: a ring goes on to the rank at the same place in the next domain
double sites_slowdown(const Cluster *cluster, CollectiveKind kind, Group group,
                      int ranks_per_domain);

// Seconds of latency that crossing sites adds to a collective.
double sites_latency_s(const Cluster *cluster, CollectiveKind kind, Group group);

// The same two for the messages of all GPUs of a pipeline rank to a peer, and back; the slowdown is
// below 1 where such a link has more left. Of groups of
// different machines the slowdown is that of the smaller of both ends' shares.
double ranks_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer);
double ranks_latency_s(const Cluster *cluster, const Plan *plan, int rank, int peer);
