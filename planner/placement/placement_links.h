// planner/placement/placement_links.h - which pairs of nodes the traffic of a plan goes between,
// once it is known where its blocks of ranks stand.
//
// A block is gpus_per_node neighbouring ranks, which one node runs. An edge is what one block sends
// to another at the same time, of all flows of one traffic (costmodel/network/site_links.h). In a
// measured matrix the traffic is as slow as its slowest edge; else as all edges together that cross
// from one group to another, or leave the leaves of a block of nodes
// (costmodel/network/leaf_links.h).
//
// Limits: flows are taken to keep to their rail.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/plan.h"
#include "workload/step/program.h"

typedef struct {
    int traffic;  // whose it is
    int way;      // of it: edges of two ways are not there at the same time
    int from, to; // blocks, not the same
    double wanted_bytes_per_s;
} BlockEdge;

typedef struct {
    SiteTraffic traffic;
    int first_edge, num_edges; // its edges are neighbours
    double floor;              // of its slowdown: what the NICs do
    double least_slowdown;     // that any placement gives it, or less
} PlacedTraffic;

typedef struct {
    const ClusterSites *sites; // of groups or of the matrix, or NULL
    bool is_matrix;
    int num_blocks; // and nodes
    int num_leaves; // sets of leaves with scarce uplinks; 0: none
    const int *leaf_of_node;
    double uplinks_bytes_per_s; // of the leaves of one such set
    const PlacedTraffic *traffics;
    int num_traffics;
    const BlockEdge *edges;
    int num_edges;
    const int *first_of_block; // [num_blocks + 1] into edges_of_block
    const int *edges_of_block; // of each block the edges that begin or end there
    const double *s_per_byte;  // [num_blocks][num_blocks] from node to node; 0 where nothing but
                               // their NICs limits
} PlacementLinks;

// All traffic of a plan that may cross nodes: the collectives of each stage, messages between
// stages, and what groups of any kind do inside layers.
PlacementLinks placement_links(const Scenario *scenario, const Plan *plan, const Program *program,
                               Arena *arena);

// Those links without some of the traffics.
//   keep  [num_traffics]
PlacementLinks placement_links_of(const PlacementLinks *links, const bool *keep, Arena *arena);

// What some traffic at a block takes at least where a node runs it: its best links there and back.
double placement_least_at(const PlacementLinks *links, int traffic, int block, int node);
