// sim/network.h - the cluster as links that flows share: which links a message crosses.
//
// A GPU has one port to its scale-up domain (out and in); where that has no switch, wires of the
// domain lie between ports (config/machine/wires.h). A node has NICs (out and in), GPU g of a
// node uses NIC g * nics / gpus. NICs hang on leaf switches, leaves on a spine that never limits.
// What limits is the sum of a leaf's uplinks, divided by the oversubscription.
//   rail-fat-tree  one leaf per rail and 32 nodes
//   rail-only      as above, but messages between rails first cross to the other rail's GPU
//   fat-tree       one leaf per 32 NICs
//   dragonfly      one leaf stands for a set of 1,024 NICs; inside a set nothing limits
// Spines have 64 ports and are as many as the uplinks need: 4 for 32 nodes of 8 NICs, 16 for 128.
// They are at most one for every uplink of a leaf (beyond that each stands for a plane of
// switches). All leaves are joined to all of them alike, with rail-only all leaves of one rail.
// Groups of machines have spines of their own, one after the other. Sites (config/machine/sites.h)
// are joined by a link per pair and direction. Links of groups of machines join the spines of
// networks of their own; those of a matrix stand in the place of leaves and spines. Groups of
// different machines are networks each by itself (sim/network_groups.h).
//
// Source: NVIDIA, "DGX SuperPOD Reference Architecture (DGX H100)", RA-11333-001, 2023: scalable
//         units of 32 nodes, rail-optimised leaves of 32 ports down and 32 up, spines of 64.
//         Rail-only: Wang et al. 2023, arXiv:2307.12169.
// Limits: adaptive routing is perfect (a leaf's uplinks are one link); PCIe between GPU and NIC is
//         as fast as the GPU's share of the NICs, but where its switches are known. There the
//         traffic crosses the GPU's port and what lies between its switch and the NIC's.
#pragma once

#include "base/arena.h"
#include "config/cluster/cluster.h"
#include "config/job/disturb.h"

#include <stdbool.h>

enum { MAX_HOPS = 13 }; // links of the longest route
enum { LINK_LEFT_OUT = -1 };
enum { GPU_LINKS = 6 }; // of a GPU's traffic: port, NIC and leaf, each in two directions

// A link that comes and goes: down at first_down_s, which may be before the start, and every
// period_s after it, for down_s.
typedef struct {
    int link;
    double bytes_per_s; // that it lacks while it is down
    double period_s, down_s, first_down_s;
    int entry; // of the scenario's `disturb`
} LinkFlap;

struct NetworkGroup; // sim/network_groups.h

typedef struct {
    Topology topology;
    int num_gpus, gpus_per_node, domain_gpus;
    int num_nodes, nics_per_node; // NICs that GPUs use: at most one per GPU, faster ones then
    int num_leaves, num_spines;
    const ClusterSites *sites;    // of the cluster, or NULL
    double oversubscription;      // of the leaves' uplinks
    int num_folded;               // GPUs that each simulated GPU stands for, itself included
    double scale_up_bytes_per_s;  // of one GPU's port
    const char *port_name;        // what that is: "nvlink", "pcie", ... (link_family)
    const Wires *wires;           // of each domain, or NULL
    double nic_share_bytes_per_s; // of one GPU when all of its node send
    int num_links;
    double *link_bytes_per_s; // [num_links]
    const int *nic_taken_by;  // [num_nodes * nics_per_node] the NIC of the node that carries its
                              // traffic; NULL: every NIC works; with groups not NULL where that
                              // of one of them is not
    const int *stand_in;      // [num_links] the link that is played for each, or LINK_LEFT_OUT;
                              // NULL: each itself
    const double *link_unit;  // [num_links] and
    const int *num_alike;     // [num_gpus] with sim/likeness.h; NULL: a flow crosses a link once
    LinkFlap *flaps;          // [num_flaps]
    int num_flaps;
    // Where the machines of groups differ: their networks, whose GPUs, nodes, leaves, spines and
    // links are numbered one group after the other, links between groups last. Of the above, what
    // is said of a node is then nothing. NULL: one network.
    const struct NetworkGroup *groups; // [sites->num_sites]
} Network;

// The links of a cluster, each with the capacity that is left for the simulated GPUs when every
// one of them stands for num_folded neighbours (network_folds was asked before; 1: no folding).
Network network_build(const Cluster *cluster, int num_folded, Arena *arena);

// Whether blocks of num_folded neighbouring GPUs that all do the same can be simulated by their
// first GPU: every block shares NICs and leaves in the same way.
//   returns NULL, or why not
const char *network_folds(const Cluster *cluster, int num_folded);

// Links from one GPU to another.
//   returns how many it wrote to links[MAX_HOPS]
int network_route(const Network *network, int from_gpu, int to_gpu, int links[MAX_HOPS]);

// How often a flow from a GPU crosses a link of its route: for so many that it stands for.
int network_num_crossings(const Network *network, int from_gpu, int link);

// Links from a GPU to what joins its group to others, and from there: NIC and leaf.
//   returns how many it wrote to links[]
int network_way_out(const Network *network, int gpu, int links[]);
int network_way_in(const Network *network, int gpu, int links[]);

// The links of a GPU's side, of a cluster with leaves: port out and in, NIC out and in, leaf up and
// down. stand_in is left aside.
void network_gpu_links(const Network *network, int gpu, int links[GPU_LINKS]);

// The wires of a domain: so many from *first on.
int network_domain_links(const Network *network, int domain, int *first);

bool network_share_domain(const Network *network, int gpu_a, int gpu_b);

// What a flow between two GPUs gets, but for wires and for links between sites. It is so while
// every GPU of the cluster sends one like it, and all of them through the spine where they leave a
// domain. This is the rate that costmodel/ reckons with.
double network_share_bytes_per_s(const Network *network, int from_gpu, int to_gpu);

// Spines that join the same leaves, and these: every `stride` from the first on.
typedef struct {
    int first_spine, num_spines;
    int first_leaf, stride, num_leaves;
} SpineSet;

SpineSet network_spine_set(const Network *network, int spine);

// The site that a leaf is of; 0 where there are none.
int network_leaf_site(const Network *network, int leaf);

// The link from one site to another.
int network_site_link(const Network *network, int from_site, int to_site);

// The two directions of a link of the cluster (no spine): out and in, or up and down. GPUs that
// share several NICs as one (more NICs than GPUs) all lose where one of these does.
void network_links_of(const Network *network, const LinkName *name, int links[2]);

// A link as one of the two of a name (0: out, up), where it has one: not between sites, no wire.
//   returns  false where it has none
bool network_name_of(const Network *network, int link, LinkName *name, int *way);

// "nvlink:17 out" (of other kinds "xgmi:17 out", "pcie:17 out", "shm:17 out"), "nic:3.2 in",
// "leaf:0 up", "node:3-node:5", "group:0-group:1", "nvlink:0-nvlink:3", "switch:0.1 up",
// "socket:0.0-socket:0.1".
const char *network_link_name(const Network *network, int link, Arena *arena);
