// sim/hand_made.h - a network and its activities written by hand, to check the simulator itself.
//
// {"link_bytes_per_s": [1e9, 2e9],
//  "activities": [{"delay_s": 1e-3},
//                 {"bytes": 1e6, "links": [0, 1], "after": [0]}],
//  "flaps": [{"link": 0, "period_s": 1, "down_s": 0.1, "first_down_s": 0.5}]}
// An activity waits for those of `after` (indices), then for delay_s, then moves bytes. A flap
// takes its link away: sim/network.h.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "sim/dag.h"
#include "sim/network.h"

Status hand_made_read(const JsonNode *root, Arena *arena, Network *network, Dag *dag);
