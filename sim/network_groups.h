// sim/network_groups.h - groups of different machines, each with a network of its own, as one.
//
// Inside a group everything is as sim/network.h says of the group alone. Between two groups a route
// is: NIC and leaf of the sender's GPU, the link of the pair in that direction, leaf and NIC of the
// receiver's; rails of different machines do not correspond, so every GPU uses its own NIC.
#pragma once

#include "sim/network.h"

typedef struct NetworkGroup {
    Network network;                                                // by itself, numbered from 0
    int first_gpu, first_node, first_leaf, first_spine, first_link; // in the whole
    int number, named_gpu, named_node,
        named_leaf; // the scenario's, where groups have another order
} NetworkGroup;

// What sim/network.h declares, for networks with groups.
Network groups_build(const Cluster *cluster, int num_folded, Arena *arena);
const char *groups_fold(const Cluster *cluster, int num_folded);
int groups_route(const Network *network, int from_gpu, int to_gpu, int links[MAX_HOPS]);
bool groups_share_domain(const Network *network, int gpu_a, int gpu_b);
double groups_share_bytes_per_s(const Network *network, int from_gpu, int to_gpu);
SpineSet groups_spine_set(const Network *network, int spine);
int groups_leaf_site(const Network *network, int leaf);
void groups_links_of(const Network *network, const LinkName *name, int links[2]);
bool groups_name_of(const Network *network, int link, LinkName *name, int *way);

// The group that a link is of, which gets its number there; NULL between groups.
const NetworkGroup *groups_find_link(const Network *network, int *link);

// The group that a link's end is of, with its name there; false for a spine or leaf beyond all.
const NetworkGroup *groups_find(const Network *network, const LinkName *name, LinkName *own);
