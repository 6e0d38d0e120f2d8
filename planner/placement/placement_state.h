// planner/placement/placement_state.h - a placement, how slow it makes each traffic, and what the
// model says of it; changed and undone a few blocks at a time.
//
// Only the edges of blocks that move are looked at again; the edges of a traffic all together only
// where its slowest got faster.
#pragma once

#include "planner/placement/placement_price.h"

// What says how far a placement is from a good one.
typedef struct {
    double step_s;  // by the model
    double guide_s; // the same with a share of how slow edges are in the mean, so that it falls
                    // before the slowest edge of a traffic does
} PlacementCost;

typedef struct {
    const PlacementLinks *links;
    const PlacementModel *model;
    int *node_of_block; // [num_blocks]
    double *edge_slow;  // [num_edges]; without a matrix its share of what it crosses
    double *most, *sum; // [num_traffics] of its edges
    int *worst;         // [num_traffics] the edge that is slowest
    double *load;       // of pairs of groups and of leaves, 0 between uses; NULL in a matrix
    double step_s[PLACEMENT_MAX_PLANES], guide_s[PLACEMENT_MAX_PLANES]; // of each plane
    // What undoing needs.
    struct PlacementLog *log;
} PlacementState;

// At a placement.
PlacementState placement_state(const PlacementLinks *links, const PlacementModel *model,
                               const int *node_of_block, Arena *arena);

// Takes another placement, or a model that got more planes.
void placement_state_reset(PlacementState *state, const PlacementModel *model,
                           const int *node_of_block);

PlacementCost placement_cost(const PlacementState *state);

// Puts nodes on blocks: all changes of one move, which may be undone until the next begins.
void placement_begin(PlacementState *state);
void placement_put(PlacementState *state, int block, int node);
void placement_end(PlacementState *state);
void placement_undo(PlacementState *state);
