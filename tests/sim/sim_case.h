// tests/sim/sim_case.h - a cluster of round numbers, and shorthands for what is lowered onto it.
#pragma once

#include "config/cluster/cluster.h"
#include "costmodel/step/timeline.h"
#include "sim/lower.h"
#include "tests/support.h"

// Nodes of 8 GPUs on one NVLink domain (100 GB/s) and 8 NICs (10 GB/s) on rails; collectives reach
// half of that, messages all of it; latencies of 1 ms (collective), 0.1 ms (hop), 1 ms (message).
Cluster sim_cluster(int num_nodes);

// When the activities end if no flow ever slows another; all of them must.
double *sim_ends(const Lowered *lowered, Arena *arena);

// How many instructions of all lanes then begin or end at another time than in the timeline.
int sim_count_differences(const Program *program, const Lowered *lowered, const Timeline *timeline,
                          Arena *arena);

// The names of the links of a route, in order.
const char *sim_route_text(const Network *network, int from_gpu, int to_gpu, Arena *arena);
