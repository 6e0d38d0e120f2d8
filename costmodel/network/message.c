#include "costmodel/network/message.h"

#include "config/cluster/leaves.h"
#include "costmodel/network/collective.h"
#include "costmodel/network/leaf_links.h"
#include "costmodel/network/site_links.h"

#include <math.h>
#include <string.h>

// Ranks of a stage that are to be looked at: in blocks, the others lie in nodes and domains as
// these do.
static int64_t num_unlike(const Pool *pool, const RankSpan *ranks) {
    if (ranks->block == 0) return ranks->num;
    const int domain = pool->domain_gpus, node = pool->gpus_per_node;
    const int whole = domain > node ? domain : node; // one is a multiple of the other
    int64_t num = ranks->block;
    while (num < ranks->num && num / ranks->block * ranks->pitch % whole != 0) num += ranks->block;
    return num;
}

bool ranks_share_domain(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    const RankSpan from = plan_stage_span(plan, rank), to = plan_stage_span(plan, peer);
    const Pool *pool = plan_rank_machines(cluster, plan, rank).pool;
    const int64_t block = plan_block_gpus(plan), num = num_unlike(pool, &from);
    for (int64_t i = 0; i < num; i += block) {
        const int first = (int)span_rank(&from, i), other = (int)span_rank(&to, i);
        const int last = (int)block - 1;
        if (!gpus_share_domain(cluster, first, other) ||
            !gpus_share_domain(cluster, first + last, other + last))
            return false;
    }
    return true;
}

// The slower of both ways. Ranks of which all pairs share a domain are in one, or a block of each
// with one of the other.
static double wires_bytes_per_s(const Pool *pool, const RankSpan *ranks, const RankSpan *peers) {
    const Wires *wires = pool->wires;
    const int64_t num = num_unlike(pool, ranks), domain = pool->domain_gpus;
    const RankSpan *const ends[2] = {ranks, peers};
    double least = pool->scale_up.bandwidth_bytes_per_s;
    for (int back = 0; back < 2; back++) {
        int num_on[WIRES_MAX_LINKS] = {0};
        for (int64_t i = 0, last = -1; i < num; i++) {
            const int64_t from = span_rank(ends[back], i), to = span_rank(ends[!back], i);
            if (from / domain != last) memset(num_on, 0, sizeof num_on);
            last = from / domain;
            const WireRoute *route = wires_route(wires, (int)(from % domain), (int)(to % domain));
            for (int k = 0; k < route->num_links; k++) {
                const int link = route->links[k];
                least = fmin(least, wires->bytes_per_s[link] / ++num_on[link]);
            }
        }
    }
    return least;
}

double ranks_near_bytes_per_s(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    const Pool *own = plan_rank_machines(cluster, plan, rank).pool;
    if (!own->wires) return own->scale_up.bandwidth_bytes_per_s;
    const int first = cluster_pool_first_gpu(cluster, plan_rank_pool(cluster, plan, rank));
    RankSpan ranks = plan_stage_span(plan, rank), peers = plan_stage_span(plan, peer);
    ranks.first -= first;
    peers.first -= first;
    return wires_bytes_per_s(own, &ranks, &peers);
}

// GPUs of a rank that send over the same NIC, at most, over those that hang on it. Looks no further
// once it has found a NIC that all of its GPUs send over.
static double nic_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    const Machines own = plan_rank_machines(cluster, plan, rank);
    const Leaves nics = machines_leaves(own);
    const int first = cluster_pool_first_gpu(cluster, plan_rank_pool(cluster, plan, rank));
    const RankSpan from = plan_stage_span(plan, rank), to = plan_stage_span(plan, peer);
    const int64_t num = num_unlike(own.pool, &from);
    const int all_on = (nics.gpus_per_node + nics.nics_per_node - 1) / nics.nics_per_node;
    int nic = -1, num_on = 0, most = 0;
    for (int64_t i = 0; i < num && most < all_on; i++) {
        const int gpu = (int)span_rank(&from, i);
        if (gpus_share_domain(cluster, gpu, (int)span_rank(&to, i))) continue;
        const int gpu_nic = leaves_nic_of_gpu(&nics, gpu - first);
        num_on = gpu_nic == nic ? num_on + 1 : 1;
        nic = gpu_nic;
        if (num_on > most) most = num_on;
    }
    return (double)most * nics.nics_per_node / nics.gpus_per_node;
}

double ranks_network_slowdown(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    const SiteTraffic traffic = message_traffic(plan, rank, peer);
    const KnownSlowdown *known = known_slowdown(&cluster->network, &traffic);
    if (known) return known->slowdown;
    const double nics =
        fmax(nic_slowdown(cluster, plan, rank, peer), nic_slowdown(cluster, plan, peer, rank));
    const double links = fmax(ranks_leaves_slowdown(cluster, plan, rank, peer),
                              ranks_slowdown(cluster, plan, rank, peer));
    return fmax(nics, links);
}

bool stages_share_nics(const Cluster *cluster, const Plan *plan) {
    const Pool *pool = plan_rank_machines(cluster, plan, 0).pool; // stages alternate in one alone
    return plan_stages_alternate(plan) && pool->nics_per_node < pool->gpus_per_node;
}

double ranks_message_s(const Cluster *cluster, const Plan *plan, int rank, int peer,
                       double message_bytes, double *alpha_s) {
    const bool near = ranks_share_domain(cluster, plan, rank, peer);
    const Pool *here = plan_rank_machines(cluster, plan, rank).pool;
    const Pool *there = plan_rank_machines(cluster, plan, peer).pool;
    double time_s = p2p_s(here, near, message_bytes, alpha_s);
    if (near && here->wires)
        return *alpha_s + (time_s - *alpha_s) * here->scale_up.bandwidth_bytes_per_s /
                              ranks_near_bytes_per_s(cluster, plan, rank, peer);
    if (near) return time_s;
    if (there != here) time_s = fmax(time_s, p2p_s(there, near, message_bytes, alpha_s));
    double transfer_s = (time_s - *alpha_s) * ranks_network_slowdown(cluster, plan, rank, peer);
    *alpha_s += ranks_latency_s(cluster, plan, rank, peer);
    return *alpha_s + transfer_s;
}
