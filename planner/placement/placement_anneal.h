// planner/placement/placement_anneal.h - one chain of simulated annealing over placements.
//
// Moves:  two nodes change places, one of them at an end of the slowest edge of some traffic;
//         within the blocks of a stage a run is turned round or goes one on; two runs of two stages
//         change places; two blocks of one stage change places in every stage, which keeps what
//         the pipeline sends. Each costs what its edges do (planner/placement/placement_state.h).
// Source: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983;
//         Yim et al., "Pipette: automatic fine-grained large language model training configurator
//         for real-world clusters", DATE 2024, section IV (annealing of the nodes of a plan on
//         measured bandwidths, by migration, swap and reversal).
#pragma once

#include "planner/placement/placement_state.h"

typedef struct {
    uint64_t seed;
    uint32_t chain, round; // chains and their rounds draw other numbers
    int stage_blocks;      // of one pipeline stage; all blocks where stages share nodes
    int64_t num_moves;
    double heat;     // of the start, in mean losses of a move
    double enough_s; // a placement as good as that ends the chain
} AnnealOptions;

// Goes on from the state, which it leaves at the best placement it met.
//   best     [num_blocks] that placement
//   returns  moves tried
int64_t placement_anneal(const AnnealOptions *options, PlacementState *state, int *best,
                         PlacementCost *cost);
