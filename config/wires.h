// config/wires.h - the links inside a scale-up domain whose GPUs are not on one switch: which of
// them a message takes, which rings a collective makes, and what both get.
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
// Limits: rings are the first that a search in lexical order finds; NCCL's are others of the same
//         number.
#pragma once

#include "base/arena.h"
#include "config/link.h"

enum { WIRES_MAX_ROUTE = 2 }; // links of the longest route

typedef struct {
    int num_links;
    int links[WIRES_MAX_ROUTE];
} WireRoute;

// The rings of one group. Two members: one ring, which is both ways.
typedef struct {
    int num_rings;
    const int *members; // [num_rings][size] in the order of sending, as numbers in the domain
} WireRings;

// Groups of one size and stride that fill a domain, all communicating at the same time.
typedef struct {
    double ring_bytes_per_s;  // of what a member passes on, over all its rings
    double pairs_bytes_per_s; // of what it sends, to all others alike
    const WireRings *rings;   // [num_gpus] by the first member
} WireShape;

typedef struct Wires {
    int num_gpus;              // of a domain
    int num_links;             // one direction each
    const double *bytes_per_s; // [num_links]
    const int (*ends)[2];      // [num_links] GPUs that it leads from and to
    const WireRoute *routes;   // [num_gpus][num_gpus]
    const WireShape *shapes;   // [num_gpus + 1][num_gpus + 1] by size and stride
} Wires;

// The wires of a mesh.
//   num_gpus  of the domain: the first so many of the mesh
const Wires *wires_mesh(const Link *link, int num_gpus, Arena *arena);

// Of a message between two GPUs of a domain.
const WireRoute *wires_route(const Wires *wires, int from, int to);

// NULL where groups of that shape do not lie within a domain.
const WireShape *wires_shape(const Wires *wires, int size, int stride);
