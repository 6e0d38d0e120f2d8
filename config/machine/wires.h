// config/machine/wires.h - the links inside a scale-up domain whose GPUs are not on one switch:
// which of them a message takes, which rings a collective makes, and what both get.
//
// Hybrid cube mesh: GPUs are joined in pairs by one or more NVLinks of their own, or not at all. A
// message takes the NVLinks of its pair, or goes over the intermediate GPU with the widest way.
// A collective makes as many rings as its members have NVLinks for, edge-disjoint, each run both
// ways: three over all 8 GPUs, two over 4 of a quad, one per NVLink of a pair. Members that no ring
// joins are taken in their order, over intermediate GPUs.
// Source: NVIDIA, "DGX-1 With Tesla V100 System Architecture", WP-08437-002, 2017 (the mesh is
//         three interwoven rings of single NVLinks); NCCL, src/graph/paths.cc, ncclTopoSetPaths
//         (one GPU at most on the way, the widest) and src/transport/p2p.cc (P2P_INTERMEDIATE);
//         src/graph/search.cc (rings); NVIDIA/nccl issue 713 (6 channels over 4 V100 of which every
//         pair has 2 NVLinks: 3 rings both ways).
//
// Tree of PCIe switches: GPUs hang on switches, each by a port of its own, which is not among the
// wires. Switches hang on the root complex of their socket by a link of the GPUs' kind. Sockets are
// joined to each other. A root complex does not limit. A collective is one ring in the members'
// order. Source: PCI-SIG: switches forward between their ports; NCCL, src/graph/topo.h, for what
// sockets
//         pass on (docs/simulation.md); rings in the order of PCIe: src/graph/search.cc.
// Limits: rings are the first that a search in lexical order finds; NCCL's are others of the same
//         number.
#pragma once

#include "base/arena.h"
#include "config/machine/link.h"
#include "config/machine/rank_span.h"

enum { WIRES_MAX_ROUTE = 3, WIRES_MAX_GPUS = 16, WIRES_MAX_LINKS = 64 };

enum { WIRES_ROOT = -1 };

typedef struct {
    int num_links;
    int links[WIRES_MAX_ROUTE];
} WireRoute;

// The rings of one group.
typedef struct {
    int num_rings;
    const int *members; // [num_rings][size] in the order of sending, as numbers in the domain
} WireRings;

// What the members of groups have while all of these groups communicate at the same time: by the
// group that has least.
typedef struct {
    double ring_bytes_per_s;  // of what a member passes on, over all its rings
    double pairs_bytes_per_s; // of what it sends, to all others alike
} WireRates;

// Groups of one size and stride that fill a domain.
typedef struct {
    WireRates rates;        // all of them together
    const WireRings *rings; // [num_gpus] by the first member
} WireShape;

typedef struct Wires {
    int num_gpus;              // of a domain
    int num_links;             // one direction each
    const double *bytes_per_s; // [num_links]
    const int (*ends)[2];      // [num_links] of a mesh: GPUs that it leads from and to; of a tree:
                               // switches, or WIRES_ROOT, or sockets where neither is that
    int num_switches;          // of a tree, whose links with a root are the first; 0: a mesh
    const WireRoute *routes;   // [num_gpus][num_gpus]
    const WireShape *shapes;   // [num_gpus + 1][num_gpus + 1] by size and stride
    double port_bytes_per_s;   // of a GPU, which has all that it sends
} Wires;

// The wires of a mesh.
//   num_gpus  of the domain: the first so many of the mesh
const Wires *wires_mesh(const Link *link, int num_gpus, Arena *arena);

typedef struct {
    int gpus_per_switch, num_sockets;
    double socket_bytes_per_s; // from one socket to another, all traffic together
} PcieTree;

// The wires of a tree.
//   whole_gpus  of all of it, of which the domain is the first num_gpus
const Wires *wires_tree(const PcieTree *tree, double port_bytes_per_s, int whole_gpus, int num_gpus,
                        Arena *arena);

// Of a message between two GPUs of a domain.
const WireRoute *wires_route(const Wires *wires, int from, int to);

// NULL where groups of that shape do not lie within a domain.
const WireShape *wires_shape(const Wires *wires, int size, int stride);

// What the groups of that shape have that begin with one of some GPUs, such as those of a pipeline
// stage: GPUs of a quad may be joined better than those of the next. Of all, where none begins
// there.
//   gpus  by their numbers in the domain; those beyond it do not count
WireRates wires_rates(const Wires *wires, int size, int stride, RankSpan gpus);
