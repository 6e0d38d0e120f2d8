// costmodel/network/site_links.h - what links between sites (config/machine/sites.h) take from what
// crosses them.
//
// Model:  all groups of a shape communicate at the same time, as in costmodel/network/collective.h;
// the
//         GPUs whose traffic goes from one site to another share the link between these equally.
//         The slowest such link that some group crosses sets the pace of all: of all of a stage in
//         the collectives of gradients and weights, of all there are inside layers. A ring pays the
//         latency of every crossing in each of its passes. `placement` says which node a rank is
//         on. Collectives of groups of different machines lie within one (plan/plan_check.c), and
//         are priced on it alone.
// Limits: other traffic on these links is modelled in sim/.
#pragma once

#include "config/cluster/cluster.h"
#include "plan/plan.h"
#include "workload/pass/group.h"
#include "workload/pass/operator.h"

// All ranks of a cluster.
RankSpan all_ranks(const Pool *pool);

// The traffic of a collective of all groups of a shape among some ranks (all, or those of a stage).
// Also the traffic of the messages of all GPUs of a pipeline rank to a peer, and back.
//   ranks_per_domain  of the group: a ring goes on to the rank at the same place in the next domain
SiteTraffic collective_traffic(CollectiveKind kind, Group group, int ranks_per_domain,
                               RankSpan ranks);
SiteTraffic message_traffic(const Plan *plan, int rank, int peer);

// Calls visit for each flow of some traffic one way (of traffic_ways: messages go there and back,
// not at the same time), whatever it crosses: those from one site's ranks follow each other.
typedef void (*FlowVisit)(void *context, int64_t from_rank, int64_t to_rank);
void traffic_flows(const Cluster *cluster, const SiteTraffic *traffic, int way, FlowVisit visit,
                   void *context);
int traffic_ways(const SiteTraffic *traffic);

// Whether both are the same.
bool traffic_is(const SiteTraffic *a, const SiteTraffic *b);

// What each of these flows would have over the NICs. Of messages between different machines the
// smaller of both ends' shares.
double traffic_flow_bytes_per_s(const Cluster *cluster, const SiteTraffic *traffic);

// What is known of some traffic (Cluster.known); NULL: nothing.
const KnownSlowdown *known_slowdown(const ClusterNetwork *network, const SiteTraffic *traffic);

// Whether both are the same.
bool traffic_is(const SiteTraffic *a, const SiteTraffic *b);

// How many times as long as that the traffic takes; 1 where nothing between sites is slower. That
// of messages is below 1 where such a link has more left.
double traffic_slowdown(const Cluster *cluster, const SiteTraffic *traffic);
double machines_slowdown(Machines machines, const SiteTraffic *traffic);
double sites_slowdown(Machines machines, CollectiveKind kind, Group group, int ranks_per_domain,
                      RankSpan ranks);
double ranks_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer);

// Seconds of latency that crossing sites adds to a collective, and to a message.
double sites_latency_s(Machines machines, CollectiveKind kind, Group group, RankSpan ranks);
double ranks_latency_s(const Cluster *cluster, const Plan *plan, int rank, int peer);
