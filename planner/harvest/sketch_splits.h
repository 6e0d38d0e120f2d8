// planner/harvest/sketch_splits.h - what a configuration takes and holds at least, however its
// layers are split, from the blocks of its shape: what planner/harvest/sketch.h says of one split,
// of all of them.
//
// Time:   planner/stages/split_bound.h, of the blocks' seconds; without what ZeRO 2 and 3 gather.
// Memory: each rank in turn takes as many layers as it has room for, with the sums of
//         planner/harvest/sketch_held.h; where ranks hold several chunks, of layers that are all
//         alike, a rank's layers lie in the chunk with the fewest micro-batches in flight.
// Tests (tests/planner/test_sketch_splits.c) hold that no split is faster, or fits where none is
// said to. Machines are all alike.
#pragma once

#include "planner/harvest/sketch.h"
#include "planner/stages/group_costs.h"

// A model's layers in a row, as plans of one shape run them, and both ends.
typedef struct {
    GroupCosts costs; // of the blocks' seconds
    // [costs.num_items + 1] of the items before
    const double *dense_parameters, *expert_parameters;
    const double *saved_bytes; // of items that are not recomputed, or all of them
    const double *again_bytes; // <= 0: what an item keeps less where it is of the first layers that
                               // are; NULL: the plan recomputes none or all
    const double *first, *last; // [NUM_SKETCH_SUMS] of the first rank's ends, of the last's
    double backward_peak_bytes; // that a rank's first backward of a layer holds above what is kept
    double head_peak_bytes;     // the same of the last rank
} SketchChain;

//   plan   any of the shape and of one layout of ranks
//   shape  its blocks
//   out    lies in the arena
void sketch_chain(const Scenario *scenario, const Plan *plan, const SketchShape *shape,
                  Arena *arena, SketchChain *out);

// No split of a plan is shorter: from means alone, without a chain.
double sketch_splits_mean_s(const Scenario *scenario, const Plan *plan, const SketchShape *shape);

// Whether every split of a plan takes longer; its chunks are not looked at.
bool sketch_splits_exceed(const Scenario *scenario, const Plan *plan, const SketchChain *chain,
                          double limit_s);

// Whether no split of a plan fits.
bool sketch_splits_miss(const Scenario *scenario, const Plan *plan, const SketchChain *chain);
