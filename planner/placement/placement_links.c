#include "planner/placement/placement_links.h"

#include "config/cluster/leaves.h"
#include "costmodel/network/collective.h"
#include "costmodel/network/message.h"
#include "costmodel/network/site_links.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    Arena *arena;
    PlacedTraffic *traffics;
    int num_traffics;
    BlockEdge *edges;
    int num_edges, max_edges;
    // Of the traffic and block at hand.
    int way, from;
    double flow_bytes_per_s;
    double *wanted_to; // [num_nodes]
} LinksBuilder;

// --- Edges

static void edges_flush(LinksBuilder *b) {
    const int num_nodes = b->scenario->cluster.num_nodes;
    for (int to = 0; to < num_nodes && b->from >= 0; to++) {
        if (b->wanted_to[to] == 0) continue;
        if (b->num_edges == b->max_edges) {
            b->max_edges = b->max_edges ? 2 * b->max_edges : 1024;
            b->edges = arena_grow(b->arena, b->edges, (size_t)b->max_edges * sizeof *b->edges);
        }
        b->edges[b->num_edges++] =
            (BlockEdge){b->num_traffics, b->way, b->from, to, b->wanted_to[to]};
    }
    memset(b->wanted_to, 0, (size_t)num_nodes * sizeof *b->wanted_to);
    b->from = -1;
}

static void flow_add(void *context, int64_t from_rank, int64_t to_rank) {
    LinksBuilder *b = context;
    const int gpus = cluster_only_pool(&b->scenario->cluster)->gpus_per_node;
    const int from = (int)(from_rank / gpus), to = (int)(to_rank / gpus);
    if (from != b->from) edges_flush(b);
    b->from = from;
    if (from != to) b->wanted_to[to] += b->flow_bytes_per_s;
}

// Messages of few of a node's GPUs have more of its NICs each.
static double nics_slowdown(const LinksBuilder *b, const SiteTraffic *traffic) {
    Pool pool = *cluster_only_pool(&b->scenario->cluster);
    pool.oversubscription = 1;
    ClusterNetwork network = b->scenario->cluster.network;
    network.sites = NULL;
    const Cluster alike = cluster_of_pools(NULL, &pool, 1, &network);
    if (traffic->first_peer < 0) return 1;
    const int64_t block = plan_block_gpus(b->plan);
    return ranks_network_slowdown(&alike, b->plan, (int)(traffic->ranks.first / block),
                                  (int)(traffic->first_peer / block));
}

static void traffic_add(LinksBuilder *b, const SiteTraffic *traffic) {
    for (int i = 0; i < b->num_traffics; i++)
        if (traffic_is(&b->traffics[i].traffic, traffic)) return;
    const int first = b->num_edges;
    Cluster in_order = b->scenario->cluster;
    in_order.network.order = NULL;
    b->flow_bytes_per_s = traffic_flow_bytes_per_s(&in_order, traffic);
    for (b->way = 0; b->way < traffic_ways(traffic); b->way++) {
        traffic_flows(&in_order, traffic, b->way, flow_add, b);
        edges_flush(b);
    }
    if (b->num_edges == first) return;
    const double floor = nics_slowdown(b, traffic);
    b->traffics[b->num_traffics++] =
        (PlacedTraffic){*traffic, first, b->num_edges - first, floor, floor};
}

static void collectives_add(LinksBuilder *b, const Program *program) {
    const Pool *pool = cluster_only_pool(&b->scenario->cluster);
    for (int i = 0; i < program->num_collectives; i++) {
        const ProgramCollective *c = &program->collectives[i];
        const Group group = plan_group(b->plan, c->group);
        const GroupLayout layout = group_layout(pool, group);
        if (layout.num_domains == 1) continue;
        const SiteTraffic traffic = collective_traffic(c->kind, group, layout.ranks_per_domain,
                                                       program_collective_ranks(b->plan, c, pool));
        traffic_add(b, &traffic);
    }
}

static void messages_add(LinksBuilder *b) {
    const Plan *plan = b->plan;
    for (int rank = 0; rank < plan->pp && plan->pp > 1; rank++) {
        const int peers[2] = {(rank + 1) % plan->pp, plan->pp - 1 - rank};
        for (int k = 0; k < (plan_is_dual(plan) ? 2 : 1); k++) {
            if (peers[k] == rank || ranks_share_domain(&b->scenario->cluster, plan, rank, peers[k]))
                continue;
            const SiteTraffic traffic = message_traffic(plan, rank, peers[k]);
            traffic_add(b, &traffic);
        }
    }
}

static void inner_add(LinksBuilder *b) {
    static const CollectiveKind PATTERNS[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_ALL_TO_ALL};
    const Pool *pool = cluster_only_pool(&b->scenario->cluster);
    for (int kind = 0; kind < NUM_GROUPS; kind++) {
        const Group group = plan_group(b->plan, (GroupKind)kind);
        const GroupLayout layout = group_layout(pool, group);
        const bool pairs = kind == GROUP_TP || kind == GROUP_CP || kind == GROUP_EP ||
                           kind == GROUP_ETP; // what exchanges tokens
        if (group.size == 1 || layout.num_domains == 1) continue;
        for (int k = 0; k < (pairs ? 2 : 1); k++) {
            const SiteTraffic traffic =
                collective_traffic(PATTERNS[k], group, layout.ranks_per_domain, all_ranks(pool));
            traffic_add(b, &traffic);
        }
    }
}

// --- What follows from them

static void leaves_find(PlacementLinks *links, Machines machines, Arena *arena) {
    const Pool *pool = machines.pool;
    const Leaves leaves = machines_leaves(machines);
    int *leaf_of_node = ARENA_ARRAY(arena, links->num_blocks, int);
    links->leaf_of_node = leaf_of_node;
    if (pool->oversubscription <= 1 || !leaves_exist(&leaves)) return;
    for (int i = 0; i < links->num_blocks; i++) leaf_of_node[i] = leaves_block_of_node(&leaves, i);
    links->num_leaves = leaf_of_node[links->num_blocks - 1] + 1;
    links->uplinks_bytes_per_s = leaves_num_nodes(&leaves) * pool->nics_per_node *
                                 pool->nic_bytes_per_s / pool->oversubscription;
}

static const double *s_per_byte(const PlacementLinks *links, Arena *arena) {
    const ClusterSites *sites = links->sites;
    const int n = links->num_blocks;
    double *out = ARENA_ARRAY(arena, n * n, double);
    for (int i = 0; i < n * n; i++) {
        const int from = sites ? sites->site_of_node[i / n] : 0;
        const int to = sites ? sites->site_of_node[i % n] : 0;
        if (from != to) out[i] = 1 / sites_bytes_per_s(sites, from, to);
        if (links->leaf_of_node[i / n] != links->leaf_of_node[i % n])
            out[i] = fmax(out[i], 1 / links->uplinks_bytes_per_s);
    }
    return out;
}

static void blocks_index(PlacementLinks *links, Arena *arena) {
    int *first = ARENA_ARRAY(arena, links->num_blocks + 1, int);
    int *edges = ARENA_ARRAY(arena, 2 * links->num_edges, int);
    for (int e = 0; e < links->num_edges; e++) {
        first[links->edges[e].from]++;
        first[links->edges[e].to]++;
    }
    for (int i = 0; i < links->num_blocks; i++) first[i + 1] += first[i];
    for (int e = links->num_edges - 1; e >= 0; e--) {
        edges[--first[links->edges[e].from]] = e;
        edges[--first[links->edges[e].to]] = e;
    }
    links->first_of_block = first;
    links->edges_of_block = edges;
}

// The link of a node that is best one way.
static double least_s_per_byte(const PlacementLinks *links, int node, bool out) {
    const int n = links->num_blocks;
    double least = INFINITY;
    for (int other = 0; other < n; other++)
        if (other != node)
            least = fmin(least, links->s_per_byte[out ? node * n + other : other * n + node]);
    return least;
}

double placement_least_at(const PlacementLinks *links, int traffic, int block, int node) {
    double least = 0;
    if (!links->is_matrix) return least;
    const double out_s = least_s_per_byte(links, node, true);
    const double in_s = least_s_per_byte(links, node, false);
    for (int i = links->first_of_block[block]; i < links->first_of_block[block + 1]; i++) {
        const BlockEdge *edge = &links->edges[links->edges_of_block[i]];
        if (edge->traffic != traffic) continue;
        least = fmax(least, edge->wanted_bytes_per_s * (edge->from == block ? out_s : in_s));
    }
    return least;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// k blocks send in some traffic, so one of them is run by a node that is no better than the k-th
// best at sending; the same for what they receive.
static double least_slowdown(const PlacementLinks *links, const PlacedTraffic *traffic,
                             const double *best_s, bool out, bool *seen) {
    double wanted = INFINITY;
    int num = 0;
    memset(seen, 0, (size_t)links->num_blocks * sizeof *seen);
    for (int e = traffic->first_edge; e < traffic->first_edge + traffic->num_edges; e++) {
        const BlockEdge *edge = &links->edges[e];
        const int block = out ? edge->from : edge->to;
        wanted = fmin(wanted, edge->wanted_bytes_per_s);
        num += !seen[block];
        seen[block] = true;
    }
    return wanted * best_s[num - 1];
}

static void least_find(PlacementLinks *links, PlacedTraffic *traffics, Arena *arena) {
    const int n = links->num_blocks;
    bool *seen = ARENA_ARRAY(arena, n, bool);
    double *best_s = ARENA_ARRAY(arena, n, double); // of each node's best link, in order
    for (int out = 0; out < 2 && links->is_matrix; out++) {
        for (int node = 0; node < n; node++) best_s[node] = least_s_per_byte(links, node, out);
        qsort(best_s, (size_t)n, sizeof *best_s, compare_doubles);
        for (int i = 0; i < links->num_traffics; i++)
            traffics[i].least_slowdown = fmax(
                traffics[i].least_slowdown, least_slowdown(links, &traffics[i], best_s, out, seen));
    }
}

PlacementLinks placement_links(const Scenario *scenario, const Plan *plan, const Program *program,
                               Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    const ClusterSites *sites = cluster->network.sites;
    LinksBuilder b = {.scenario = scenario, .plan = plan, .arena = arena, .from = -1};
    b.traffics =
        ARENA_ARRAY(arena, program->num_collectives + 2 * plan->pp + 2 * NUM_GROUPS, PlacedTraffic);
    b.wanted_to = ARENA_ARRAY(arena, cluster->num_nodes, double);
    collectives_add(&b, program);
    messages_add(&b);
    inner_add(&b);
    PlacementLinks links = {
        .sites = sites,
        .is_matrix = sites && sites->kind == SITE_NODE,
        .num_blocks = cluster->num_nodes,
        .traffics = b.traffics,
        .num_traffics = b.num_traffics,
        .edges = b.edges,
        .num_edges = b.num_edges,
    };
    leaves_find(&links, cluster_machines(cluster, 0), arena);
    links.s_per_byte = s_per_byte(&links, arena);
    blocks_index(&links, arena);
    least_find(&links, b.traffics, arena);
    return links;
}

PlacementLinks placement_links_of(const PlacementLinks *links, const bool *keep, Arena *arena) {
    PlacementLinks out = *links;
    PlacedTraffic *traffics = ARENA_ARRAY(arena, links->num_traffics, PlacedTraffic);
    BlockEdge *edges = ARENA_ARRAY(arena, links->num_edges, BlockEdge);
    out.num_traffics = out.num_edges = 0;
    for (int i = 0; i < links->num_traffics; i++) {
        if (!keep[i]) continue;
        PlacedTraffic *traffic = &traffics[out.num_traffics];
        *traffic = links->traffics[i];
        for (int k = 0; k < traffic->num_edges; k++) {
            edges[out.num_edges + k] = links->edges[traffic->first_edge + k];
            edges[out.num_edges + k].traffic = out.num_traffics;
        }
        traffic->first_edge = out.num_edges;
        out.num_edges += traffic->num_edges;
        out.num_traffics++;
    }
    out.traffics = traffics;
    out.edges = edges;
    blocks_index(&out, arena);
    return out;
}
