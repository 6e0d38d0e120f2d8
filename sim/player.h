// sim/player.h - plays a Dag on the links of a Network in SimGrid. Once per process.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "sim/dag.h"
#include "sim/network.h"

typedef struct {
    double *start_s;        // [num_nodes] when all it waits for has ended
    double *end_s;          // [num_nodes]
    int64_t num_activities; // timers and flows that were started
} Playback;

// Fails (STATUS_MACHINE) where SimGrid does.
Status dag_play(const Network *network, const Dag *dag, Arena *arena, Playback *out);
