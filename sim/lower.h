// sim/lower.h - turns a priced Program into the activities that the simulator plays.
//
// Every simulated GPU plays its pipeline rank's instructions. A computation is a timer of its
// price, but for the collectives inside it that are flows (sim/lower_inner.h). A message is a timer
// of its latency, then a flow. A collective is the meeting of its group of ranks, then one flow per
// member and direction of the ring. A flow has the size that takes the price's transfer time at the
// share of the network that the estimate grants it; so the two agree exactly until flows get more
// or less than that.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/cluster/cluster.h"
#include "costmodel/pass/price.h"
#include "plan/plan.h"
#include "sim/dag.h"
#include "sim/fold.h"
#include "sim/lanes.h"
#include "sim/network.h"
#include "workload/step/program.h"

typedef struct Inner Inner; // sim/lower_inner.h

// What is played; all of it outlives the lowering.
typedef struct LowerInput {
    const Cluster *cluster;
    const Plan *plan;
    const Program *program;
    const Prices *prices;
    const Inner *inner; // collectives inside computations; NULL: they stay part of their timers
} LowerInput;

typedef struct {
    Network network;
    Dag dag;
    Lanes lanes;
    int num_lanes; // of them: simulated GPUs per pipeline rank
    // The activities with which instruction i of lane l begins and ends (of messages in a group:
    // its own, and the one that ends the group), as Timeline.start_s and end_s are meant:
    int32_t **begin_node;  // [num_ranks][l x num_instructions + i]
    int32_t **end_node;    // the same
    const bool *plays_all; // [num_ranks][num_lanes] by the first lane of those that meet: whether
                           // their collectives inside domains are flows too; NULL: nowhere
} Lowered;

enum { MAX_ACTIVITIES = 40000000 };

// stepwise: collectives as the single steps of their rings; for checks of the flows.
// Fails (STATUS_INVALID) where there would be more than MAX_ACTIVITIES.
Status program_lower(const LowerInput *input, const Folding *folding, bool stepwise, Arena *arena,
                     Lowered *out);
