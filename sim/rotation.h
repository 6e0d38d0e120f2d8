// sim/rotation.h - the symmetry by which data-parallel replicas are folded.
//
// A rotation puts every replica of every stage in the place of the one `period` further on, and the
// last in the places of the first. It may turn the groups of ranks of a job and its network into
// themselves, each route into a route, each link into one of the same capacity. Then replicas that
// are multiples of the period apart see the same at the same time, in lockstep. Of max-min shares
// there is one solution, so it has the symmetry of the problem. Then the first `period` replicas of
// each stage show what happens to all. Of links that are turned into one another the first is kept.
// For each flow that is played it also carries those of the other replicas that cross the same
// link. That is to divide its capacity by their number.
#pragma once

#include "base/arena.h"
#include "sim/network.h"

// A GPU plays a replica of a stage as plan/rank_place.h says.
typedef struct {
    int num_stages, multiplicity, block_gpus;
    int period; // divides multiplicity
} Rotation;

// Whether a rotation turns the network into itself.
//   returns NULL, or why not
const char *network_rotates(const Network *network, const Rotation *rotation);

// Leaves the links that the first `period` replicas of each stage need, with what is left to them.
// network_rotates was asked before.
void network_rotate(Network *network, const Rotation *rotation, Arena *arena);
