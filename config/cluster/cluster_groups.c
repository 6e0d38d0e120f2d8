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
static bool groups_are_alike(const Cluster *a, const Cluster *b) {
    return strcmp(a->gpu.file, b->gpu.file) == 0 &&
           strcmp(a->scale_up.name, b->scale_up.name) == 0 &&
           a->gpus_per_node == b->gpus_per_node && a->domain_gpus == b->domain_gpus &&
           a->nics_per_node == b->nics_per_node && a->nic_bytes_per_s == b->nic_bytes_per_s &&
           a->topology == b->topology && a->oversubscription == b->oversubscription &&
           wires_are_alike(a->wires, b->wires) &&
           a->price_usd_per_gpu_hour == b->price_usd_per_gpu_hour &&
           a->power_watts_per_gpu == b->power_watts_per_gpu;
}

static Status num_gpus_check(const JsonNode *root, const Cluster *groups, int num_groups,
                             int total) {
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
static const ClusterSites *groups_sites(const Cluster *groups, int num_groups,
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

// What stands for all of them is the first, with the GPUs and nodes of all.
static Cluster whole_of(const Cluster *groups, int num_groups) {
    Cluster whole = groups[0];
    whole.num_gpus = whole.num_nodes = 0;
    for (int i = 0; i < num_groups; i++) {
        whole.num_gpus += groups[i].num_gpus;
        whole.num_nodes += groups[i].num_nodes;
        if (!groups_are_alike(&groups[0], &groups[i])) whole.groups = groups;
    }
    whole.whole_node_gpus = whole.gpus_per_node;
    whole.whole_node_nics = whole.nics_per_node;
    whole.whole_domain_gpus = whole.domain_gpus;
    return whole;
}

Status groups_join(const JsonNode *root, const Cluster *groups, int num_groups, Arena *arena,
                   Cluster *out) {
    Between between;
    TRY(between_read(root, num_groups, &between));
    *out = whole_of(groups, num_groups);
    TRY(num_gpus_check(root, groups, num_groups, out->num_gpus));
    if (num_groups == 1) return status_ok();
    double *bytes_per_s = ARENA_ARRAY(arena, num_groups * num_groups, double);
    for (int i = 0; i < num_groups * num_groups; i++) bytes_per_s[i] = between.bytes_per_s;
    out->sites = groups_sites(groups, num_groups, bytes_per_s, between.latency_s, arena);
    return status_ok();
}

int cluster_num_groups(const Cluster *cluster) {
    return cluster->groups ? cluster->sites->num_sites : 1;
}

const Cluster *cluster_group(const Cluster *cluster, int group) {
    return cluster->groups ? &cluster->groups[group] : cluster;
}

int cluster_group_first_gpu(const Cluster *cluster, int group) {
    int first = 0;
    for (int i = 0; i < group; i++) first += cluster->groups[i].num_gpus;
    return first;
}

int cluster_group_first_node(const Cluster *cluster, int group) {
    int first = 0;
    for (int i = 0; i < group; i++) first += cluster->groups[i].num_nodes;
    return first;
}

int cluster_group_of_gpu(const Cluster *cluster, int64_t gpu) {
    if (!cluster->groups) return 0;
    int group = 0;
    for (int64_t end = cluster->groups[0].num_gpus; gpu >= end; group++)
        end += cluster->groups[group + 1].num_gpus;
    return group;
}

int cluster_group_of_node(const Cluster *cluster, int node) {
    return cluster->groups ? cluster->sites->site_of_node[node] : 0;
}

// --- Some of them, in another order

bool groups_are_interchangeable(const Cluster *a, const Cluster *b) {
    return a->num_gpus == b->num_gpus && groups_are_alike(a, b);
}

// The nodes of the groups in this order, as the scenario numbers them.
static const NodeOrder *placed_nodes(const Cluster *cluster, const int *order, Arena *arena) {
    const int num_nodes = cluster->num_nodes;
    int *nodes = ARENA_ARRAY(arena, num_nodes, int), num = 0;
    bool moved = false;
    for (int i = 0; i < cluster_num_groups(cluster); i++) {
        const int first = cluster_group_first_node(cluster, order[i]);
        for (int k = 0; k < cluster->groups[order[i]].num_nodes; k++)
            nodes[num++] = cluster->placed ? cluster->placed->node[first + k] : first + k;
    }
    for (int i = 0; i < num_nodes; i++) moved |= nodes[i] != i;
    return moved ? node_order_new(nodes, num_nodes, arena) : NULL;
}

Cluster cluster_with_groups(const Cluster *cluster, const int *order, int num_groups,
                            Arena *arena) {
    const ClusterSites *sites = cluster->sites;
    if (num_groups == 1) return cluster->groups[order[0]];
    Cluster *groups = ARENA_ARRAY(arena, num_groups, Cluster);
    double *bytes_per_s = ARENA_ARRAY(arena, num_groups * num_groups, double);
    for (int i = 0; i < num_groups; i++) {
        groups[i] = cluster->groups[order[i]];
        for (int k = 0; k < num_groups; k++)
            bytes_per_s[i * num_groups + k] = sites_bytes_per_s(sites, order[i], order[k]);
    }
    Cluster out = whole_of(groups, num_groups);
    out.sites = groups_sites(groups, num_groups, bytes_per_s, sites->latency_s, arena);
    if (num_groups == sites->num_sites) out.placed = placed_nodes(cluster, order, arena);
    return out;
}

static int own_first_node(const Cluster *cluster, int group) {
    const int first = cluster_group_first_node(cluster, group);
    return cluster->placed ? cluster->placed->node[first] : first;
}

int cluster_group_number(const Cluster *cluster, int group) {
    int number = 0;
    for (int i = 0; i < cluster_num_groups(cluster); i++)
        number += own_first_node(cluster, i) < own_first_node(cluster, group);
    return number;
}

const int *groups_order_of(const Cluster *cluster, const int *nodes, Arena *arena) {
    const int num_groups = cluster_num_groups(cluster);
    int *order = ARENA_ARRAY(arena, num_groups, int);
    for (int i = 0, n = 0; i < num_groups; i++) {
        const int group = cluster_group_of_node(cluster, nodes[n]);
        const int first = cluster_group_first_node(cluster, group);
        for (int k = 0; k < cluster->groups[group].num_nodes; k++, n++)
            if (n == cluster->num_nodes || nodes[n] != first + k) return NULL;
        order[i] = group;
    }
    return order;
}
