// sim/disturb_network.h - degraded links and the traffic of others: what is left of the capacities.
//
// A link with a bandwidth_factor has that share of its capacity, in both directions. Background
// traffic does not yield: it takes its rate from the uplinks of one leaf and the downlinks of the
// other.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/scenario.h"
#include "sim/network.h"

// Whether an entry is about the network.
bool disturb_is_network(DisturbKind kind);

// The capacities of all links: network->link_bytes_per_s where nothing is about the network.
// Refuses (STATUS_INVALID) a leaf that the cluster lacks and traffic that leaves nothing.
Status network_disturb(const Scenario *scenario, const Network *network, Arena *arena,
                       double **link_bytes_per_s);
