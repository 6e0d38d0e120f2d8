// sim/disturb_network.h - degraded, failed and flapping links and the traffic of others: what is
// left of a network.
//
// A link with a bandwidth_factor has that share of its capacity, in both directions. The traffic of
// a failed NIC goes through the next one of its node that works. A flapping link is down for
// down_frac of every period_s, at a phase that is drawn for each repetition: flows stall and go on.
// Background traffic does not yield: it takes its rate from the uplinks of one leaf and the
// downlinks of the other, and between groups from the link that joins them.
// NICs that are played as one, and spines, are parts of the links that are played: such a link has
// the mean of what is left of its parts.
// Source: NCCL, src/graph/topo.cc, ncclTopoGetLocalNet: a GPU takes one of the NICs that it has the
//         best path to, of those that are there. Which one depends on the machine; here the next.
// Limits: a link that comes back continues where it stopped; time-outs, retransmission and failing
//         over are not modelled. PCIe between a GPU and another's NIC does not limit.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "sim/network.h"

// Whether an entry is about the network.
bool disturb_is_network(DisturbKind kind);

// The network with what happens to it: itself where nothing does.
// Refuses (STATUS_INVALID) a leaf or spine that the cluster lacks, traffic that leaves nothing and
// NICs whose traffic no other can take.
Status network_disturb(const Scenario *scenario, const Network *network, Arena *arena,
                       Network *out);

// Draws when the flapping links of a network go down in one repetition.
void network_draw_flaps(const Scenario *scenario, int repetition, Network *network);
