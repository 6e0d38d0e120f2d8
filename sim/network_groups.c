#include "sim/network_groups.h"

#include "config/cluster/cluster_groups.h"

#include <math.h>
#include <string.h>

static const NetworkGroup *group_of_gpu(const Network *network, int gpu) {
    int i = network->sites->num_sites - 1;
    while (gpu < network->groups[i].first_gpu) i--;
    return &network->groups[i];
}

// What comes before a group in the scenario's order.
static void names_set(const Cluster *cluster, NetworkGroup *groups, int num_groups) {
    for (int i = 0; i < num_groups; i++) groups[i].number = cluster_pool_number(cluster, i);
    for (int i = 0; i < num_groups; i++)
        for (int k = 0; k < num_groups; k++) {
            if (groups[k].number >= groups[i].number) continue;
            groups[i].named_gpu += groups[k].network.num_gpus;
            groups[i].named_node += groups[k].network.num_nodes;
            groups[i].named_leaf += groups[k].network.num_leaves;
        }
}

Network groups_build(const Cluster *cluster, int num_folded, Arena *arena) {
    const ClusterSites *sites = cluster->network.sites;
    NetworkGroup *groups = ARENA_ARRAY(arena, sites->num_sites, NetworkGroup);
    Network whole = {
        .num_gpus = cluster->num_gpus, .num_folded = num_folded, .sites = sites, .groups = groups};
    for (int i = 0; i < sites->num_sites; i++) {
        const Cluster alone = cluster_of_machines(cluster_machines(cluster, i), NULL);
        const Network own = network_build(&alone, num_folded, arena);
        groups[i] = (NetworkGroup){.network = own,
                                   .first_gpu = cluster_pool_first_gpu(cluster, i),
                                   .first_node = whole.num_nodes,
                                   .first_leaf = whole.num_leaves,
                                   .first_spine = whole.num_spines,
                                   .first_link = whole.num_links};
        whole.num_nodes += own.num_nodes;
        whole.num_leaves += own.num_leaves;
        whole.num_spines += own.num_spines;
        whole.num_links += own.num_links;
    }
    names_set(cluster, groups, sites->num_sites);
    const int num_own = whole.num_links, num_pairs = sites->num_sites * sites->num_sites;
    whole.num_links += num_pairs;
    whole.link_bytes_per_s = ARENA_ARRAY(arena, whole.num_links, double);
    for (int i = 0; i < sites->num_sites; i++)
        memcpy(whole.link_bytes_per_s + groups[i].first_link, groups[i].network.link_bytes_per_s,
               (size_t)groups[i].network.num_links * sizeof *whole.link_bytes_per_s);
    for (int i = 0; i < num_pairs; i++) // all of a block of folded GPUs are of one group
        whole.link_bytes_per_s[num_own + i] = sites->bytes_per_s[i] / num_folded;
    return whole;
}

const char *groups_fold(const Cluster *cluster, int num_folded) {
    const char *why = NULL;
    for (int i = 0; i < cluster->num_pools && !why; i++) {
        const Cluster alone = cluster_of_machines(cluster_machines(cluster, i), NULL);
        why = network_folds(&alone, num_folded);
    }
    return why;
}

int groups_route(const Network *network, int from_gpu, int to_gpu, int links[MAX_HOPS]) {
    const NetworkGroup *from = group_of_gpu(network, from_gpu), *to = group_of_gpu(network, to_gpu);
    from_gpu -= from->first_gpu;
    to_gpu -= to->first_gpu;
    int n = 0;
    if (from == to) {
        n = network_route(&from->network, from_gpu, to_gpu, links);
        for (int i = 0; i < n; i++) links[i] += from->first_link;
        return n;
    }
    n = network_way_out(&from->network, from_gpu, links);
    for (int i = 0; i < n; i++) links[i] += from->first_link;
    links[n++] =
        network_site_link(network, (int)(from - network->groups), (int)(to - network->groups));
    int num_in = network_way_in(&to->network, to_gpu, links + n);
    for (int i = n; i < n + num_in; i++) links[i] += to->first_link;
    return n + num_in;
}

bool groups_share_domain(const Network *network, int gpu_a, int gpu_b) {
    const NetworkGroup *a = group_of_gpu(network, gpu_a), *b = group_of_gpu(network, gpu_b);
    return a == b && network_share_domain(&a->network, gpu_a - a->first_gpu, gpu_b - a->first_gpu);
}

static double way_out_bytes_per_s(const Network *network) {
    return network->nic_share_bytes_per_s;
}

double groups_share_bytes_per_s(const Network *network, int from_gpu, int to_gpu) {
    const NetworkGroup *from = group_of_gpu(network, from_gpu), *to = group_of_gpu(network, to_gpu);
    if (from == to)
        return network_share_bytes_per_s(&from->network, from_gpu - from->first_gpu,
                                         to_gpu - from->first_gpu);
    return fmin(way_out_bytes_per_s(&from->network), way_out_bytes_per_s(&to->network));
}

const NetworkGroup *groups_find(const Network *network, const LinkName *name, LinkName *own) {
    for (int i = network->sites->num_sites - 1; i >= 0; i--) {
        const NetworkGroup *group = &network->groups[i];
        const int firsts[NUM_LINK_KINDS] = {
            [LINK_NIC] = group->first_node,
            [LINK_NVLINK] = group->first_gpu,
            [LINK_LEAF] = group->first_leaf,
            [LINK_SPINE] = group->first_spine,
        };
        const int index = name->index - firsts[name->kind];
        if (index < 0 || (name->kind == LINK_SPINE && group->network.num_spines == 0)) continue;
        *own = *name;
        own->index = index;
        return group;
    }
    return NULL;
}

SpineSet groups_spine_set(const Network *network, int spine) {
    LinkName own;
    const NetworkGroup *group = groups_find(network, &(LinkName){LINK_SPINE, spine, 0}, &own);
    SpineSet set = network_spine_set(&group->network, own.index);
    set.first_spine += group->first_spine;
    set.first_leaf += group->first_leaf;
    return set;
}

int groups_leaf_site(const Network *network, int leaf) {
    LinkName own;
    return (int)(groups_find(network, &(LinkName){LINK_LEAF, leaf, 0}, &own) - network->groups);
}

void groups_links_of(const Network *network, const LinkName *name, int links[2]) {
    LinkName own;
    const NetworkGroup *group = groups_find(network, name, &own);
    network_links_of(&group->network, &own, links);
    for (int way = 0; way < 2; way++) links[way] += group->first_link;
}

const NetworkGroup *groups_find_link(const Network *network, int *link) {
    const int num_sites = network->sites->num_sites;
    if (*link >= network->num_links - num_sites * num_sites) return NULL;
    int i = num_sites - 1;
    while (*link < network->groups[i].first_link) i--;
    *link -= network->groups[i].first_link;
    return &network->groups[i];
}

bool groups_name_of(const Network *network, int link, LinkName *name, int *way) {
    const NetworkGroup *group = groups_find_link(network, &link);
    if (!group || !network_name_of(&group->network, link, name, way)) return false;
    const int firsts[NUM_LINK_KINDS] = {
        [LINK_NIC] = group->named_node,
        [LINK_NVLINK] = group->named_gpu,
        [LINK_LEAF] = group->named_leaf,
    };
    name->index += firsts[name->kind];
    return true;
}
