#include "costmodel/network/collective.h"

#include <math.h>

#include "costmodel/kernel/kernel_nccl.h"
#include "costmodel/network/leaf_links.h"
#include "costmodel/network/site_links.h"

// Whether every group of this shape fills whole domains or lies within one.
static bool groups_are_aligned(const Pool *pool, Group group) {
    const int64_t span = (int64_t)group.size * group.stride, domain = pool->domain_gpus;
    if (pool->num_gpus <= domain) return true;
    if (span <= domain) return domain % span == 0;
    return group.stride >= domain ? group.stride % domain == 0
                                  : domain % group.stride == 0 && span % domain == 0;
}

GroupLayout group_layout(const Pool *pool, Group group) {
    GroupLayout layout = {.num_ranks = group.size};
    const int domain = pool->domain_gpus;
    if (groups_are_aligned(pool, group)) {
        int inside = group.stride >= domain ? 1 : domain / group.stride;
        layout.ranks_per_domain = inside < group.size ? inside : group.size;
        layout.num_domains = (group.size + layout.ranks_per_domain - 1) / layout.ranks_per_domain;
    } else { // the worst placed: it begins with the last GPU of a domain
        int64_t after = (int64_t)(group.size - 1) * group.stride; // GPUs that follow up to its last
        int64_t domains = 1 + (after + domain - 1) / domain;
        layout.num_domains = (int)(domains < group.size ? domains : group.size);
        layout.ranks_per_domain = group.size / layout.num_domains;
    }
    layout.nic_bytes_per_s_per_gpu =
        pool->nics_per_node * pool->nic_bytes_per_s / pool->gpus_per_node;
    return layout;
}

bool collective_is_ring(CollectiveKind kind) {
    return kind != COLLECTIVE_ALL_TO_ALL && kind != COLLECTIVE_DISPATCH &&
           kind != COLLECTIVE_COMBINE;
}

// Bytes each rank passes on in a ring, of a message of one byte.
static double ring_wire_frac(CollectiveKind kind, double n) {
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case COLLECTIVE_RING_EXCHANGE:
        return n - 1;
    case COLLECTIVE_BROADCAST:
        return 1;
    default:
        return (n - 1) / n;
    }
}

static double ring_steps(CollectiveKind kind, double n) {
    if (kind == COLLECTIVE_ALL_REDUCE) return 2 * (n - 1);
    return kind == COLLECTIVE_ALL_TO_ALL ? 1 : n - 1;
}

// Inside a domain: of a GPU's link, or of the wires that groups of this shape have.
static double inside_rate(const Pool *pool, CollectiveKind kind, Group group, RankSpan ranks) {
    const Link *link = &pool->scale_up;
    return group_bytes_per_s(pool, kind, group, ranks) * link->efficiency_frac;
}

// By the measured curves; on a narrower link than theirs the wire takes longer by as much as the
// bandwidths say. NAN where there are none.
static double measured_s(const Pool *pool, CollectiveKind kind, double n, double message_bytes) {
    static const NcclOp OPS[NUM_COLLECTIVES] = {
        [COLLECTIVE_ALL_REDUCE] = NCCL_ALL_REDUCE,
        [COLLECTIVE_ALL_GATHER] = NCCL_ALL_GATHER,
        [COLLECTIVE_REDUCE_SCATTER] = NCCL_REDUCE_SCATTER,
        [COLLECTIVE_ALL_TO_ALL] = NCCL_ALL_TO_ALL,
    };
    const NcclKernels *curves = pool->scale_up_curves;
    const Link *link = &pool->scale_up;
    if (!curves || kind == COLLECTIVE_RING_EXCHANGE || kind == COLLECTIVE_BROADCAST) return NAN;
    double time_s = kernel_nccl_s(curves, OPS[kind], NCCL_HALF, n, message_bytes);
    double s_per_byte = 1 / link->bandwidth_bytes_per_s - 1 / link->measured_bandwidth_bytes_per_s;
    return time_s + ring_wire_frac(kind, n) * message_bytes * s_per_byte / link->efficiency_frac;
}

static double inside_s(const Pool *pool, CollectiveKind kind, Group group, RankSpan ranks,
                       double message_bytes) {
    const Link *link = &pool->scale_up;
    const double n = group.size;
    double time_s = measured_s(pool, kind, n, message_bytes);
    if (!isnan(time_s)) return time_s;
    double wire_bytes = ring_wire_frac(kind, n) * message_bytes;
    double hop_s = kind == COLLECTIVE_BROADCAST ? link->chain_hop_latency_s : link->hop_latency_s;
    return link->latency_s + ring_steps(kind, n) * hop_s +
           (wire_bytes + sqrt(wire_bytes * link->half_bytes)) /
               inside_rate(pool, kind, group, ranks);
}

// Steps of a collective across domains by one protocol: the better of a ring and, for an
// all-reduce, a tree over domains with chains inside (NCCL's two algorithms).
static double protocol_latency_s(const LinkProtocol *p, const GroupLayout *g, CollectiveKind kind) {
    double passes = kind == COLLECTIVE_ALL_REDUCE ? 2 : 1;
    double crossings = g->num_domains, hops = g->num_ranks - g->num_domains;
    double ring =
        passes * (crossings * p->ring_hop_latency_s + hops * p->ring_inside_hop_latency_s);
    if (kind != COLLECTIVE_ALL_REDUCE) return ring;
    double depth = ceil(log2(g->num_domains)), inside = g->ranks_per_domain - 1;
    double tree = passes * (depth * p->tree_hop_latency_s + inside * p->tree_inside_hop_latency_s);
    return fmin(ring, tree);
}

// Seconds of a collective across domains whose bytes take transfer_s at the full rate, by the
// fastest protocol.
static double protocols_s(const Pool *pool, const GroupLayout *g, CollectiveKind kind,
                          double transfer_s) {
    const Link *up = &pool->scale_up, *out = &pool->scale_out;
    if (kind == COLLECTIVE_ALL_TO_ALL)
        return (g->num_domains - 1) * out->hop_latency_s + transfer_s;
    if (kind == COLLECTIVE_BROADCAST)
        return (g->num_ranks - 1) * out->chain_hop_latency_s + transfer_s;
    const LinkProtocol only = {.ring_hop_latency_s = out->hop_latency_s,
                               .ring_inside_hop_latency_s = up->hop_latency_s,
                               .tree_hop_latency_s = out->hop_latency_s,
                               .tree_inside_hop_latency_s = up->hop_latency_s,
                               .bandwidth_frac = 1};
    if (out->num_protocols == 0) return protocol_latency_s(&only, g, kind) + transfer_s;
    double least_s = INFINITY;
    for (int i = 0; i < out->num_protocols; i++) {
        const LinkProtocol *p = &out->protocols[i];
        least_s = fmin(least_s, protocol_latency_s(p, g, kind) + transfer_s / p->bandwidth_frac);
    }
    return least_s;
}

// What moves inside each domain, of a collective across domains.
static double across_inside_s(const Pool *pool, Group group, RankSpan ranks, const GroupLayout *g,
                              CollectiveKind kind, double message_bytes) {
    const Group part = {g->ranks_per_domain, group.stride};
    const double n = g->num_ranks, rate = inside_rate(pool, kind, part, ranks);
    if (kind == COLLECTIVE_ALL_TO_ALL) return message_bytes * (g->ranks_per_domain - 1) / n / rate;
    return g->ranks_per_domain > 1 ? ring_wire_frac(kind, n) * message_bytes / rate : 0;
}

// Across domains a ring crosses each domain's edge once per channel, and the channels together
// use the NICs of all the group's ranks there. An all-to-all sends from every rank's own share. In
// a ring exchange one rank of each domain sends out, over the shares of those that do not, up to a
// NIC.
static double across_s(Machines machines, Group group, RankSpan ranks, const GroupLayout *g,
                       CollectiveKind kind, double message_bytes) {
    const Pool *pool = machines.pool;
    const Link *out = &pool->scale_out;
    double n = g->num_ranks, edge = g->nic_bytes_per_s_per_gpu * out->efficiency_frac;
    edge /= network_slowdown(machines, kind, group, g->ranks_per_domain, ranks);
    double up_s = across_inside_s(pool, group, ranks, g, kind, message_bytes), out_s;
    if (kind == COLLECTIVE_ALL_TO_ALL) {
        out_s = message_bytes * (n - g->ranks_per_domain) / n / edge;
    } else {
        double wire_bytes = ring_wire_frac(kind, n) * message_bytes;
        double shares = g->ranks_per_domain;
        if (kind == COLLECTIVE_RING_EXCHANGE)
            shares = fmax(1, fmin(shares, pool->nic_bytes_per_s / g->nic_bytes_per_s_per_gpu));
        out_s = (wire_bytes + sqrt(wire_bytes * out->half_bytes)) / (edge * shares);
    }
    return out->latency_s + sites_latency_s(machines, kind, group, ranks) +
           protocols_s(pool, g, kind, fmax(out_s, up_s));
}

// The GPUs of a domain that some ranks have there: all, unless they have the same of each domain.
static RankSpan domain_span(int domain, RankSpan ranks) {
    const int64_t first = ranks.first % domain;
    const bool alike = ranks.block == 0 ? first + ranks.num <= domain
                                        : domain % ranks.pitch == 0 || ranks.pitch % domain == 0;
    if (!alike) return (RankSpan){.num = domain};
    ranks.first = first;
    return ranks;
}

double group_bytes_per_s(const Pool *pool, CollectiveKind kind, Group group, RankSpan ranks) {
    if (!pool->wires) return pool->scale_up.bandwidth_bytes_per_s;
    const WireRates rates =
        wires_rates(pool->wires, group.size, group.stride, domain_span(pool->domain_gpus, ranks));
    return kind == COLLECTIVE_ALL_TO_ALL ? rates.pairs_bytes_per_s : rates.ring_bytes_per_s;
}

double collective_s(Machines machines, CollectiveKind kind, Group group, double message_bytes) {
    return span_collective_s(machines, kind, group, all_ranks(machines.pool), message_bytes);
}

double span_collective_s(Machines machines, CollectiveKind kind, Group group, RankSpan ranks,
                         double message_bytes) {
    if (group.size <= 1 || message_bytes <= 0) return 0;
    if (kind == COLLECTIVE_DISPATCH || kind == COLLECTIVE_COMBINE) kind = COLLECTIVE_ALL_TO_ALL;
    GroupLayout layout = group_layout(machines.pool, group);
    if (layout.num_domains == 1) return inside_s(machines.pool, kind, group, ranks, message_bytes);
    return across_s(machines, group, ranks, &layout, kind, message_bytes);
}

double collective_inside_s(const Pool *pool, CollectiveKind kind, Group group,
                           double message_bytes) {
    GroupLayout layout = group_layout(pool, group);
    return layout.num_domains == 1
               ? 0
               : across_inside_s(pool, group, all_ranks(pool), &layout, kind, message_bytes);
}

bool gpus_share_domain(const Cluster *cluster, int gpu_a, int gpu_b) {
    const int pool = cluster_pool_of_gpu(cluster, gpu_a);
    if (cluster_pool_of_gpu(cluster, gpu_b) != pool) return false;
    const int first = cluster_pool_first_gpu(cluster, pool);
    const int domain = cluster->pools[pool].domain_gpus;
    return (gpu_a - first) / domain == (gpu_b - first) / domain;
}

double p2p_s(const Pool *pool, bool same_domain, double message_bytes, double *alpha_s) {
    const Link *link = same_domain ? &pool->scale_up : &pool->scale_out;
    double rate = link->bandwidth_bytes_per_s;
    if (!same_domain) rate = pool->nics_per_node * pool->nic_bytes_per_s / pool->gpus_per_node;
    if (alpha_s) *alpha_s = link->p2p_latency_s;
    return link->p2p_latency_s + message_bytes / (rate * link->p2p_efficiency_frac);
}
