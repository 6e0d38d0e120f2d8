#include "config/cluster_groups.h"

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

// Every pair of groups has a link of its own in each direction.
static const ClusterSites *groups_sites(const Cluster *groups, int num_groups, int num_nodes,
                                        const Between *between, Arena *arena) {
    int *site_of_node = ARENA_ARRAY(arena, num_nodes, int);
    int *num_nodes_of = ARENA_ARRAY(arena, num_groups, int);
    for (int i = 0, node = 0; i < num_groups; i++) {
        num_nodes_of[i] = groups[i].num_nodes;
        for (int k = 0; k < groups[i].num_nodes; k++) site_of_node[node++] = i;
    }
    double *bytes_per_s = ARENA_ARRAY(arena, num_groups * num_groups, double);
    for (int i = 0; i < num_groups * num_groups; i++) bytes_per_s[i] = between->bytes_per_s;
    ClusterSites *sites = ARENA_NEW(arena, ClusterSites);
    *sites = (ClusterSites){.kind = SITE_GROUP,
                            .num_sites = num_groups,
                            .num_nodes = num_nodes,
                            .site_of_node = site_of_node,
                            .num_nodes_of = num_nodes_of,
                            .bytes_per_s = bytes_per_s,
                            .latency_s = between->latency_s};
    return sites;
}

Status groups_join(const JsonNode *root, const Cluster *groups, int num_groups, Arena *arena,
                   Cluster *out) {
    Between between;
    TRY(between_read(root, num_groups, &between));
    int num_gpus = 0, num_nodes = 0;
    *out = groups[0];
    for (int i = 0; i < num_groups; i++) {
        num_gpus += groups[i].num_gpus;
        num_nodes += groups[i].num_nodes;
        if (!groups_are_alike(&groups[0], &groups[i])) out->groups = groups;
    }
    TRY(num_gpus_check(root, groups, num_groups, num_gpus));
    out->num_gpus = num_gpus;
    out->num_nodes = num_nodes;
    out->whole_node_gpus = out->gpus_per_node;
    out->whole_node_nics = out->nics_per_node;
    out->whole_domain_gpus = out->domain_gpus;
    if (num_groups > 1) out->sites = groups_sites(groups, num_groups, num_nodes, &between, arena);
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
