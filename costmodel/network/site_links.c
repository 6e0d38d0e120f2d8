#include "costmodel/network/site_links.h"

#include "config/cluster/node_order.h"
#include "costmodel/network/collective.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static int site_of(const Cluster *cluster, int64_t rank) {
    assert(rank < cluster->num_gpus);
    const int64_t gpu = cluster_gpu_of_rank(cluster, rank);
    return cluster->network.sites->site_of_node[cluster_node_of_gpu(cluster, gpu)];
}

// What a GPU has of its node's NICs when all of the node send.
static double nic_share_bytes_per_s(const Pool *pool) {
    return pool->nics_per_node * pool->nic_bytes_per_s / pool->gpus_per_node;
}

// --- Flows

SiteTraffic collective_traffic(CollectiveKind kind, Group group, int ranks_per_domain,
                               RankSpan ranks) {
    return (SiteTraffic){
        .ranks = ranks,
        .first_peer = -1,
        .size = group.size,
        .stride = group.stride,
        .ranks_per_domain = ranks_per_domain,
        .all_to_all = !collective_is_ring(kind),
    };
}

SiteTraffic message_traffic(const Plan *plan, int rank, int peer) {
    const int low = rank < peer ? rank : peer, high = rank < peer ? peer : rank;
    return (SiteTraffic){.ranks = plan_stage_span(plan, low),
                         .first_peer = high * plan_block_gpus(plan)};
}

// A ring has one flow a rank; in an all-to-all each reaches all ranks of other domains.
static void rank_flows(const SiteTraffic *t, int64_t rank, FlowVisit visit, void *context) {
    const int place = (int)(rank / t->stride % t->size);
    const int64_t first = rank - (int64_t)place * t->stride;
    const int num_steps = t->all_to_all ? t->size - 1 : 1;
    for (int step = 1; step <= num_steps; step++) {
        const int to = (place + (t->all_to_all ? step : t->ranks_per_domain)) % t->size;
        visit(context, rank, first + (int64_t)to * t->stride);
    }
}

// From one rank, to those of its group or to its peer.
static void flows_from(const SiteTraffic *t, int64_t rank, int64_t to_peer, FlowVisit visit,
                       void *context) {
    if (t->first_peer < 0)
        rank_flows(t, rank, visit, context);
    else
        visit(context, rank, rank + to_peer);
}

int traffic_ways(const SiteTraffic *t) {
    return t->first_peer < 0 ? 1 : 2;
}

void traffic_flows(const Cluster *cluster, const SiteTraffic *t, int way, FlowVisit visit,
                   void *context) {
    RankSpan ranks = t->ranks;
    if (way) ranks.first = t->first_peer;
    const int64_t to_peer = t->ranks.first + t->first_peer - 2 * ranks.first;
    if (!cluster->network.order) {
        for (int64_t i = 0; i < ranks.num; i++)
            flows_from(t, span_rank(&ranks, i), to_peer, visit, context);
        return;
    }
    const int node_gpus = cluster_only_pool(cluster)->gpus_per_node;
    for (int node = 0; node < cluster->num_nodes; node++) {
        const int64_t low = cluster_first_rank(cluster, node);
        for (int64_t rank = low; rank < low + node_gpus; rank++)
            if (span_holds(&ranks, rank)) flows_from(t, rank, to_peer, visit, context);
    }
}

static double share_of_gpu(const Cluster *cluster, int64_t gpu) {
    return nic_share_bytes_per_s(&cluster->pools[cluster_pool_of_gpu(cluster, gpu)]);
}

double traffic_flow_bytes_per_s(const Cluster *cluster, const SiteTraffic *t) {
    const double share = share_of_gpu(cluster, t->ranks.first);
    if (t->first_peer < 0) return share / (t->all_to_all ? t->size - t->ranks_per_domain : 1);
    return fmin(share, share_of_gpu(cluster, t->first_peer));
}

// --- What links between sites make of them

// Flows from one site after the other, counted by where they go.
typedef struct {
    const Cluster *cluster;
    double flow_bytes_per_s;
    int site; // -1 at first
    int num_to[MAX_SITES];
    double slowdown; // the largest so far
} SiteFlows;

static void flow_count(void *context, int64_t from_rank, int64_t to_rank) {
    SiteFlows *flows = context;
    const ClusterSites *sites = flows->cluster->network.sites;
    const int from = site_of(flows->cluster, from_rank), to = site_of(flows->cluster, to_rank);
    if (from != flows->site) memset(flows->num_to, 0, (size_t)sites->num_sites * sizeof(int));
    flows->site = from;
    if (from == to) return;
    double wanted_bytes_per_s = ++flows->num_to[to] * flows->flow_bytes_per_s;
    flows->slowdown =
        fmax(flows->slowdown, wanted_bytes_per_s / sites_bytes_per_s(sites, from, to));
}

bool traffic_is(const SiteTraffic *a, const SiteTraffic *b) {
    return spans_are_equal(&a->ranks, &b->ranks) && a->first_peer == b->first_peer &&
           a->size == b->size && a->stride == b->stride &&
           a->ranks_per_domain == b->ranks_per_domain && a->all_to_all == b->all_to_all;
}

const KnownSlowdown *known_slowdown(const ClusterNetwork *network, const SiteTraffic *traffic) {
    for (int i = 0; i < network->num_known; i++)
        if (traffic_is(&network->known[i].traffic, traffic)) return &network->known[i];
    return NULL;
}

double traffic_slowdown(const Cluster *cluster, const SiteTraffic *traffic) {
    const bool message = traffic->first_peer >= 0;
    if (!cluster->network.sites) return message ? 0 : 1;
    SiteFlows flows = {.cluster = cluster};
    flows.flow_bytes_per_s = traffic_flow_bytes_per_s(cluster, traffic);
    for (int way = 0; way < traffic_ways(traffic); way++) {
        flows.site = -1;
        traffic_flows(cluster, traffic, way, flow_count, &flows);
    }
    return message ? flows.slowdown : fmax(1, flows.slowdown);
}

double machines_slowdown(Machines machines, const SiteTraffic *traffic) {
    if (!machines.network->sites) return 1;
    const Cluster cluster = cluster_of_machines(machines, NULL);
    return traffic_slowdown(&cluster, traffic);
}

RankSpan all_ranks(const Pool *pool) {
    return (RankSpan){.num = pool->num_gpus};
}

double sites_slowdown(Machines machines, CollectiveKind kind, Group group, int ranks_per_domain,
                      RankSpan ranks) {
    const SiteTraffic traffic = collective_traffic(kind, group, ranks_per_domain, ranks);
    return machines_slowdown(machines, &traffic);
}

double ranks_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    const SiteTraffic traffic = message_traffic(plan, rank, peer);
    return traffic_slowdown(cluster, &traffic);
}

// --- Latency

// Most crossings between sites in a ring of this shape.
static int num_crossings(const Cluster *cluster, Group group, RankSpan ranks) {
    int most = 0;
    for (int64_t k = 0; k < ranks.num; k++) {
        const int64_t first = span_rank(&ranks, k);
        if (first / group.stride % group.size != 0) continue;
        int num = 0;
        for (int i = 0; i < group.size; i++) {
            int64_t from = first + (int64_t)i * group.stride;
            int64_t to = first + (int64_t)((i + 1) % group.size) * group.stride;
            num += site_of(cluster, from) != site_of(cluster, to);
        }
        if (num > most) most = num;
    }
    return most;
}

double sites_latency_s(Machines machines, CollectiveKind kind, Group group, RankSpan ranks) {
    const ClusterSites *sites = machines.network->sites;
    if (!sites || sites->latency_s == 0) return 0;
    const Cluster cluster = cluster_of_machines(machines, NULL);
    int crossings = num_crossings(&cluster, group, ranks), latencies = crossings;
    if (crossings == 0) return 0;
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        latencies = 2 * crossings;
        break;
    case COLLECTIVE_BROADCAST: // a chain, which does not return to its root
        latencies = crossings - 1;
        break;
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_DISPATCH:
    case COLLECTIVE_COMBINE:
        latencies = 1;
        break;
    default:
        break;
    }
    return latencies * sites->latency_s;
}

double ranks_latency_s(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    if (!cluster->network.sites) return 0;
    const RankSpan ranks = plan_stage_span(plan, rank), peers = plan_stage_span(plan, peer);
    for (int64_t i = 0; i < ranks.num; i++)
        if (site_of(cluster, span_rank(&ranks, i)) != site_of(cluster, span_rank(&peers, i)))
            return cluster->network.sites->latency_s;
    return 0;
}
