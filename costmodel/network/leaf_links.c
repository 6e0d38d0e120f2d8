#include "costmodel/network/leaf_links.h"

#include "config/cluster/leaves.h"
#include "config/cluster/node_order.h"
#include "costmodel/network/collective.h"
#include "costmodel/network/site_links.h"

#include <math.h>

// Flows out of one set of leaves after the other, in the order of their GPUs. Rails are alike: what
// leaves the leaves of a block shares all their uplinks.
typedef struct {
    Leaves leaves;
    double uplinks_in_nics; // of all leaves of a block
    double nics_per_gpu;    // whose rate a GPU has
    int block;              // -1 at first
    double leaving;         // GPUs' worth of flows
    double slowdown;        // the largest so far
} LeafFlows;

static LeafFlows flows_start(Machines machines) {
    LeafFlows flows = {.leaves = machines_leaves(machines), .block = -1};
    const Leaves *leaves = &flows.leaves;
    const double nics = leaves_num_nodes(leaves) * (double)leaves->nics_per_node;
    flows.uplinks_in_nics = nics / machines.pool->oversubscription;
    flows.nics_per_gpu = (double)leaves->nics_per_node / leaves->gpus_per_node;
    return flows;
}

static bool uplinks_matter(Machines machines) {
    const Leaves leaves = machines_leaves(machines);
    return machines.pool->oversubscription > 1 && leaves_exist(&leaves);
}

// Counts a flow at a part of its GPU's rate. Where a to_gpu is below 0, it lies beyond the leaves.
static void flow_count(LeafFlows *flows, int from_gpu, int to_gpu, double part) {
    const Leaves *leaves = &flows->leaves;
    const int block = leaves_block_of_node(leaves, from_gpu / leaves->gpus_per_node);
    if (block != flows->block) flows->leaving = 0;
    flows->block = block;
    if (to_gpu >= 0 && leaves_of_gpu(leaves, from_gpu) == leaves_of_gpu(leaves, to_gpu)) return;
    flows->leaving += part;
    flows->slowdown =
        fmax(flows->slowdown, flows->leaving * flows->nics_per_gpu / flows->uplinks_in_nics);
}

// Each rank of groups of this shape sends to those `places` and twice, .. num_steps times as many
// on.
static double steps_slowdown(Machines machines, Group group, RankSpan ranks, int places,
                             int num_steps) {
    LeafFlows flows = flows_start(machines);
    for (int gpu = 0; gpu < machines.pool->num_gpus; gpu++) {
        const int rank = (int)machines_rank_of_gpu(machines, gpu);
        const int place = rank / group.stride % group.size, first = rank - place * group.stride;
        if (!span_holds(&ranks, rank)) continue;
        for (int step = 1; step <= num_steps; step++) {
            const int to = first + (place + step * places) % group.size * group.stride;
            flow_count(&flows, gpu, (int)machines_gpu_of_rank(machines, to), 1.0 / num_steps);
        }
    }
    return fmax(1, flows.slowdown);
}

// A ring goes on to the next domain, an all-to-all to each of the others.
double leaves_slowdown(Machines machines, CollectiveKind kind, Group group, int ranks_per_domain,
                       RankSpan ranks) {
    if (!uplinks_matter(machines) || group.size <= ranks_per_domain) return 1;
    const int domains = (group.size + ranks_per_domain - 1) / ranks_per_domain;
    return steps_slowdown(machines, group, ranks, ranks_per_domain,
                          collective_is_ring(kind) ? 1 : domains - 1);
}

double leaves_step_slowdown(Machines machines, Group group, int places) {
    return uplinks_matter(machines)
               ? steps_slowdown(machines, group, all_ranks(machines.pool), places, 1)
               : 1;
}

// Of the machines that a pipeline rank is on, messages to the peer.
typedef struct {
    LeafFlows flows;
    const Cluster *cluster;
    int first_gpu; // of these machines
    bool together; // the peer is on them too
} EndFlows;

static void message_count(void *context, int64_t from_rank, int64_t to_rank) {
    EndFlows *end = context;
    const int from = (int)cluster_gpu_of_rank(end->cluster, from_rank);
    const int to = (int)cluster_gpu_of_rank(end->cluster, to_rank);
    if (gpus_share_domain(end->cluster, from, to)) return;
    flow_count(&end->flows, from - end->first_gpu, end->together ? to - end->first_gpu : -1, 1);
}

static double end_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    const Machines own = plan_rank_machines(cluster, plan, rank);
    if (!uplinks_matter(own)) return 0;
    const int pool = plan_rank_pool(cluster, plan, rank);
    EndFlows end = {
        .flows = flows_start(own),
        .cluster = cluster,
        .first_gpu = cluster_pool_first_gpu(cluster, pool),
        .together = plan_rank_pool(cluster, plan, peer) == pool,
    };
    const SiteTraffic traffic = message_traffic(plan, rank, peer);
    traffic_flows(cluster, &traffic, rank < peer ? 0 : 1, message_count, &end);
    return end.flows.slowdown;
}

double ranks_leaves_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    return fmax(end_slowdown(cluster, plan, rank, peer), end_slowdown(cluster, plan, peer, rank));
}

double network_slowdown(Machines machines, CollectiveKind kind, Group group, int ranks_per_domain,
                        RankSpan ranks) {
    const SiteTraffic traffic = collective_traffic(kind, group, ranks_per_domain, ranks);
    const KnownSlowdown *known = known_slowdown(machines.network, &traffic);
    if (known) return known->slowdown;
    return fmax(leaves_slowdown(machines, kind, group, ranks_per_domain, ranks),
                machines_slowdown(machines, &traffic));
}
