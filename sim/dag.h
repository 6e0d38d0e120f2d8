// sim/dag.h - what the simulator plays: activities and which of them wait for which.
//
// An activity begins when all it waits for has ended, then takes delay_s, then moves bytes along
// its route, then ends. Either part may be nothing; an activity of neither is a mere meeting point.
#pragma once

#include "base/arena.h"
#include "sim/network.h"

#include <stdint.h>

enum { NO_ROUTE = -1 };

typedef struct {
    double delay_s; // computation, or the latency of a message
    double bytes;   // moved after it
    int32_t route;  // index into routes, or NO_ROUTE
} DagNode;

typedef struct {
    int num_links;
    int links[MAX_HOPS];
    uint16_t more[MAX_HOPS];  // times that it crosses a link beyond once: for flows like it
    double share_bytes_per_s; // what a flow gets where the estimate expects it
    int from_gpu, to_gpu;     // both 0 where it was made by dag_add_links
    int inner; // 1 + the GroupKind whose collectives inside computations it carries; 0: none
} DagRoute;

typedef struct {
    DagNode *nodes;
    int num_nodes;
    DagRoute *routes;
    int num_routes;
    // Who waits for node i: successors[first_successor[i]] up to first_successor[i + 1].
    int32_t *first_successor; // [num_nodes + 1]
    int32_t *successors;
    int32_t *num_waits; // [num_nodes]
} Dag;

// A Dag in the making. Zero-initialise, with the arena that shall own all of it; its arrays move as
// they grow.
typedef struct {
    Arena *arena;
    DagNode *nodes;
    DagRoute *routes;
    int32_t (*edges)[2]; // before, after
    int num_nodes, num_routes, num_edges;
    int max_nodes, max_routes, max_edges;
} DagBuilder;

// Each returns the index of what it added.
int dag_add_timer(DagBuilder *builder, double delay_s);
int dag_add_flow(DagBuilder *builder, double delay_s, double bytes, int route);
int dag_add_links(DagBuilder *builder, const DagRoute *route);
// slowdown: what links between sites take from the share of a flow that crosses domains.
int dag_add_route(DagBuilder *builder, const Network *network, int from_gpu, int to_gpu,
                  double slowdown);

// Makes `after` wait for `before`; a negative `before` is nothing to wait for.
void dag_add_wait(DagBuilder *builder, int before, int after);

Dag dag_finish(DagBuilder *builder);

// Finds all routes anew on a network on which NICs have failed.
void dag_reroute(Dag *dag, const Network *network);

// Seconds that the flow of an activity takes where the estimate's share of its links is free.
double dag_flow_s(const Dag *dag, int node);

// How long an activity takes in a replay, >= 0.
typedef double (*DagDuration)(const void *context, int node);

// When every activity ends: end_s[num_nodes].
//   returns how many activities are reached; fewer than num_nodes where some wait in a circle
int dag_replay(const Dag *dag, DagDuration duration_s, const void *context, double *end_s);

// When every activity would end if no flow ever slowed another.
int dag_critical_path(const Dag *dag, double *end_s);
