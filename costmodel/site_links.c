#include "costmodel/site_links.h"

#include "costmodel/collective.h"

#include <math.h>
#include <string.h>

static int site_of(const Cluster *cluster, int64_t gpu) {
    if (cluster->groups) return cluster_group_of_gpu(cluster, gpu);
    return cluster->sites->site_of_node[gpu / cluster->gpus_per_node];
}

// What a GPU has of its node's NICs when all of the node send.
static double nic_share_bytes_per_s(const Cluster *cluster) {
    return cluster->nics_per_node * cluster->nic_bytes_per_s / cluster->gpus_per_node;
}

// Flows from the GPUs of one site after the other, counted by where they go.
typedef struct {
    const Cluster *cluster;
    double flow_bytes_per_s; // that each would have over the NICs
    int site;                // -1 at first
    int num_to[MAX_SITES];
    double slowdown; // the largest so far
} SiteFlows;

static void flow_count(SiteFlows *flows, int64_t from_gpu, int64_t to_gpu) {
    const ClusterSites *sites = flows->cluster->sites;
    int from = site_of(flows->cluster, from_gpu), to = site_of(flows->cluster, to_gpu);
    if (from != flows->site) memset(flows->num_to, 0, (size_t)sites->num_sites * sizeof(int));
    flows->site = from;
    if (from == to) return;
    double wanted_bytes_per_s = ++flows->num_to[to] * flows->flow_bytes_per_s;
    flows->slowdown =
        fmax(flows->slowdown, wanted_bytes_per_s / sites_bytes_per_s(sites, from, to));
}

double sites_slowdown(const Cluster *cluster, CollectiveKind kind, Group group,
                      int ranks_per_domain) {
    if (!cluster->sites) return 1;
    SiteFlows flows = {.cluster = cluster, .site = -1};
    // A ring has one flow a rank; in an all-to-all each reaches all ranks of other domains.
    const bool ring = collective_is_ring(kind);
    int num_steps = ring ? 1 : group.size - 1;
    flows.flow_bytes_per_s =
        nic_share_bytes_per_s(cluster) / (ring ? 1 : group.size - ranks_per_domain);
    for (int64_t gpu = 0; gpu < cluster->num_gpus; gpu++) {
        int place = (int)(gpu / group.stride % group.size);
        int64_t first = gpu - (int64_t)place * group.stride;
        for (int step = 1; step <= num_steps; step++) {
            int to = (place + (ring ? ranks_per_domain : step)) % group.size;
            flow_count(&flows, gpu, first + (int64_t)to * group.stride);
        }
    }
    return fmax(1, flows.slowdown);
}

// Most crossings between sites in a ring of this shape.
static int num_crossings(const Cluster *cluster, Group group) {
    int most = 0;
    for (int64_t first = 0; first < cluster->num_gpus; first++) {
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

double sites_latency_s(const Cluster *cluster, CollectiveKind kind, Group group) {
    if (!cluster->sites || cluster->sites->latency_s == 0) return 0;
    int crossings = num_crossings(cluster, group), latencies = crossings;
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
    return latencies * cluster->sites->latency_s;
}

double ranks_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    if (!cluster->sites) return 0;
    const int64_t num_gpus = plan_stage_gpus(plan);
    const int64_t ends[2] = {rank * num_gpus, peer * num_gpus};
    SiteFlows flows = {.cluster = cluster};
    flows.flow_bytes_per_s = fmin(nic_share_bytes_per_s(plan_rank_cluster(cluster, plan, rank)),
                                  nic_share_bytes_per_s(plan_rank_cluster(cluster, plan, peer)));
    for (int back = 0; back < 2; back++) {
        flows.site = -1;
        for (int i = 0; i < num_gpus; i++) flow_count(&flows, ends[back] + i, ends[!back] + i);
    }
    return flows.slowdown;
}

double ranks_latency_s(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    if (!cluster->sites) return 0;
    const int64_t num_gpus = plan_stage_gpus(plan);
    for (int i = 0; i < num_gpus; i++)
        if (site_of(cluster, rank * num_gpus + i) != site_of(cluster, peer * num_gpus + i))
            return cluster->sites->latency_s;
    return 0;
}
