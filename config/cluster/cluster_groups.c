#include "config/cluster/cluster_groups.h"

#include "config/cluster/node_order.h"

#include <string.h>

typedef struct {
    double bytes_per_s, latency_s;
} Between;

static Status between_read(const JsonNode *root, int num_groups, Between *out) {
    static const JsonField FIELDS[] = {
        {"bytes_per_s", JSON_FIELD_DOUBLE, offsetof(Between, bytes_per_s), 1e3, 1e14, NULL, true},
        {"latency_s", JSON_FIELD_DOUBLE, offsetof(Between, latency_s), 0, 10, NULL, true},
    };
    JsonNode between = json_get(root, "between");
    *out = (Between){0};
    Arena none = {0};
    if (json_is_present(&between)) return json_read_object(&between, FIELDS, 2, &none, out);
    if (num_groups == 1) return status_ok();
    return json_error(&between, "missing; expected {\"bytes_per_s\": ..., \"latency_s\": ...}");
}

// Of one kind of link and domains of one size.
static bool wires_are_alike(const Wires *a, const Wires *b) {
    if (!a || !b) return a == b;
    if (a->num_links != b->num_links || a->num_switches != b->num_switches) return false;
    for (int i = 0; i < a->num_links; i++)
        if (a->bytes_per_s[i] != b->bytes_per_s[i]) return false;
    return true;
}

// Whether nodes of both are one machine.
static bool groups_are_alike(const Pool *a, const Pool *b) {
    return strcmp(a->gpu.file, b->gpu.file) == 0 &&
           strcmp(a->scale_up.name, b->scale_up.name) == 0 &&
           a->gpus_per_node == b->gpus_per_node && a->domain_gpus == b->domain_gpus &&
           a->nics_per_node == b->nics_per_node && a->nic_bytes_per_s == b->nic_bytes_per_s &&
           a->topology == b->topology && a->oversubscription == b->oversubscription &&
           wires_are_alike(a->wires, b->wires) &&
           a->price_usd_per_gpu_hour == b->price_usd_per_gpu_hour &&
           a->power_watts_per_gpu == b->power_watts_per_gpu;
}

static Status num_gpus_check(const JsonNode *root, const Pool *groups, int num_groups, int total) {
    JsonNode list = json_get(root, "groups"), num_gpus = json_get(root, "num_gpus");
    for (int i = 0; i < num_groups; i++) {
        if (groups[i].num_gpus % groups[i].domain_gpus == 0) continue;
        JsonNode group = json_at(&list, i), own = json_get(&group, "num_gpus");
        return json_error(&own, "%d is not a multiple of domain_gpus %d, as it has to be of groups",
                          groups[i].num_gpus, groups[i].domain_gpus);
    }
    if (!json_is_present(&num_gpus)) return status_ok();
    int stated;
    TRY(json_read_int(&num_gpus, 1, 1 << 30, &stated));
    if (stated == total) return status_ok();
    return json_error(&num_gpus, "%d is not the groups' sum %d", stated, total);
}

// Groups with a link of its own in each direction for every pair.
//   bytes_per_s  [num_groups][num_groups]
static const ClusterSites *groups_sites(const Pool *groups, int num_groups,
                                        const double *bytes_per_s, double latency_s, Arena *arena) {
    int num_nodes = 0;
    for (int i = 0; i < num_groups; i++) num_nodes += groups[i].num_nodes;
    int *site_of_node = ARENA_ARRAY(arena, num_nodes, int);
    int *num_nodes_of = ARENA_ARRAY(arena, num_groups, int);
    for (int i = 0, node = 0; i < num_groups; i++) {
        num_nodes_of[i] = groups[i].num_nodes;
        for (int k = 0; k < groups[i].num_nodes; k++) site_of_node[node++] = i;
    }
    ClusterSites *sites = ARENA_NEW(arena, ClusterSites);
    *sites = (ClusterSites){.kind = SITE_GROUP,
                            .num_sites = num_groups,
                            .num_nodes = num_nodes,
                            .site_of_node = site_of_node,
                            .num_nodes_of = num_nodes_of,
                            .bytes_per_s = bytes_per_s,
                            .latency_s = latency_s};
    return sites;
}

// Whether all of them are one machine: one pool.
static bool all_are_alike(const Pool *groups, int num_groups) {
    for (int i = 1; i < num_groups; i++)
        if (!groups_are_alike(&groups[0], &groups[i])) return false;
    return true;
}

// All nodes of groups that are alike.
static const Pool *pool_of_all(const Pool *groups, int num_groups, Arena *arena) {
    Pool *all = ARENA_NEW(arena, Pool);
    *all = groups[0];
    all->num_gpus = all->idle_gpus = all->num_nodes = 0;
    for (int i = 0; i < num_groups; i++) {
        all->num_gpus += groups[i].num_gpus;
        all->idle_gpus += groups[i].idle_gpus;
        all->num_nodes += groups[i].num_nodes;
    }
    all->whole_node_gpus = all->gpus_per_node;
    all->whole_node_nics = all->nics_per_node;
    all->whole_domain_gpus = all->domain_gpus;
    return all;
}

Status groups_join(const JsonNode *root, const Pool *groups, int num_groups, Arena *arena,
                   Cluster *out) {
    Between between;
    ClusterNetwork network = {0};
    TRY(between_read(root, num_groups, &between));
    if (num_groups > 1) {
        double *bytes_per_s = ARENA_ARRAY(arena, num_groups * num_groups, double);
        for (int i = 0; i < num_groups * num_groups; i++) bytes_per_s[i] = between.bytes_per_s;
        network.sites = groups_sites(groups, num_groups, bytes_per_s, between.latency_s, arena);
    }
    *out = all_are_alike(groups, num_groups)
               ? cluster_of_pools("custom", pool_of_all(groups, num_groups, arena), 1, &network)
               : cluster_of_pools("custom", groups, num_groups, &network);
    return num_gpus_check(root, groups, num_groups, out->num_gpus);
}

// --- Some of them, in another order

bool pools_are_interchangeable(const Pool *a, const Pool *b) {
    return a->num_gpus == b->num_gpus && groups_are_alike(a, b);
}

// The nodes of the pools in this order, as the scenario numbers them.
static const NodeOrder *placed_nodes(const Cluster *cluster, const int *order, Arena *arena) {
    const NodeOrder *placed = cluster->network.placed;
    const int num_nodes = cluster->num_nodes;
    int *nodes = ARENA_ARRAY(arena, num_nodes, int), num = 0;
    bool moved = false;
    for (int i = 0; i < cluster->num_pools; i++) {
        const int first = cluster_pool_first_node(cluster, order[i]);
        for (int k = 0; k < cluster->pools[order[i]].num_nodes; k++)
            nodes[num++] = placed ? placed->node[first + k] : first + k;
    }
    for (int i = 0; i < num_nodes; i++) moved |= nodes[i] != i;
    return moved ? node_order_new(nodes, num_nodes, arena) : NULL;
}

Cluster cluster_with_pools(const Cluster *cluster, const int *order, int num_pools, Arena *arena) {
    const ClusterSites *sites = cluster->network.sites;
    ClusterNetwork network = {0};
    if (num_pools == 1)
        return cluster_of_pools(cluster->name, &cluster->pools[order[0]], 1, &network);
    Pool *pools = ARENA_ARRAY(arena, num_pools, Pool);
    double *bytes_per_s = ARENA_ARRAY(arena, num_pools * num_pools, double);
    for (int i = 0; i < num_pools; i++) {
        pools[i] = cluster->pools[order[i]];
        for (int k = 0; k < num_pools; k++)
            bytes_per_s[i * num_pools + k] = sites_bytes_per_s(sites, order[i], order[k]);
    }
    network.sites = groups_sites(pools, num_pools, bytes_per_s, sites->latency_s, arena);
    if (num_pools == cluster->num_pools) network.placed = placed_nodes(cluster, order, arena);
    if (all_are_alike(pools, num_pools))
        return cluster_of_pools(cluster->name, pool_of_all(pools, num_pools, arena), 1, &network);
    return cluster_of_pools(cluster->name, pools, num_pools, &network);
}

static int own_first_node(const Cluster *cluster, int pool) {
    const int first = cluster_pool_first_node(cluster, pool);
    const NodeOrder *placed = cluster->network.placed;
    return placed ? placed->node[first] : first;
}

int cluster_pool_number(const Cluster *cluster, int pool) {
    int number = 0;
    for (int i = 0; i < cluster->num_pools; i++)
        number += own_first_node(cluster, i) < own_first_node(cluster, pool);
    return number;
}

const int *pools_order_of(const Cluster *cluster, const int *nodes, Arena *arena) {
    int *order = ARENA_ARRAY(arena, cluster->num_pools, int);
    for (int i = 0, n = 0; i < cluster->num_pools; i++) {
        const int pool = cluster_pool_of_node(cluster, nodes[n]);
        const int first = cluster_pool_first_node(cluster, pool);
        for (int k = 0; k < cluster->pools[pool].num_nodes; k++, n++)
            if (n == cluster->num_nodes || nodes[n] != first + k) return NULL;
        order[i] = pool;
    }
    return order;
}
