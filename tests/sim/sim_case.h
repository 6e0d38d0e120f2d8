// tests/sim/sim_case.h - a cluster of round numbers, and shorthands for what is lowered onto it.
#pragma once

#include "config/cluster.h"

// Nodes of 8 GPUs on one NVLink domain (100 GB/s) and 8 NICs (10 GB/s) on rails; collectives reach
// half of that, messages all of it; latencies of 1 ms (collective), 0.1 ms (hop), 1 ms (message).
Cluster sim_cluster(int num_nodes);
