// planner/harvest/sketch.h - what a configuration takes and holds at least, from sums over its
// blocks.
//
// A search asks millions of configurations whether they can be among the best and whether they can
// fit. Most answers need no workload: the seconds and bytes of each kind of block are the same for
// all configurations of a shape (planner/harvest/loose.h), and a rank has so many of each. What is
// left out only takes longer or holds more: messages, gathers and scatters of ZeRO 2 and 3, the
// optimizer, buffers, placeholders, what a backward or a forward holds beside the last block.
//
// Time:   the bound of estimate_lower_bound_s, without messages and the optimizer.
// Memory: what lasts, what is in flight when the first backward begins, and the peak of the block
//         with which it begins (costmodel/memory/memory.h has the sources).
// Tests (tests/planner/test_sketch.c) hold that no price and no account is below.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "costmodel/pass/price.h"
#include "plan/plan.h"

enum {
    SKETCH_EMBEDDING,
    SKETCH_MTP,
    SKETCH_HEAD,
    SKETCH_FIRST_LAYER, // and one for each further kind of layer
    SKETCH_MAX_BLOCKS = SKETCH_FIRST_LAYER + MODEL_MAX_LAYER_KINDS
};

// What adds up over blocks: seconds of a pass forward and one back on the device, and to launch
// them; bytes kept after the forward; parameters that a rank holds before ZeRO.
enum {
    SKETCH_FORWARD_S,
    SKETCH_BACKWARD_S,
    SKETCH_FORWARD_HOST_S,
    SKETCH_BACKWARD_HOST_S,
    SKETCH_SAVED_BYTES,
    SKETCH_DENSE_PARAMETERS,
    SKETCH_EXPERT_PARAMETERS,
    NUM_SKETCH_SUMS
};

typedef struct {
    double sums[NUM_SKETCH_SUMS];
    double backward_peak_bytes; // above what is kept
} SketchBlock;

// The blocks of a shape.
//   plan      one chunk with all layers; ZeRO 0, or 3 with shards on one rank
//   workload  of it
//   blocks    their prices, filled in
//   out       [SKETCH_MAX_BLOCKS]
void sketch_blocks(const Scenario *scenario, const Plan *plan, const Workload *workload,
                   BlockPrices *blocks, SketchBlock *out);

// By how much less than the plan the host may take for its one chunk where weights are gathered.
double sketch_host_less_s(const Scenario *scenario, const Plan *plan, const Workload *workload);

// How many blocks of each kind there are on the ranks of one way to cut the layers.
typedef struct SketchLayout SketchLayout;

//   plan  any with these chunks, schedule included: it says which rank has which chunk
//   returns  NULL of dual pipelines and a spread vocabulary, of which a sketch knows nothing
const SketchLayout *sketch_layout(const Scenario *scenario, const Plan *plan, Arena *arena);

// The blocks of a plan's shape, [SKETCH_MAX_BLOCKS] each: of layers that are recomputed, and of
// those that are not (alike where it recomputes all or none); embedding, MTP layers and head.
typedef struct {
    const SketchBlock *kept, *recomputed, *ends;
} SketchShape;

// No step of the plan is shorter.
double sketch_bound_s(const Scenario *scenario, const Plan *plan, const SketchLayout *layout,
                      const SketchShape *shape);

// Bytes that the plan lacks on some rank at least; 0 where it may fit. Of plans that differ in how
// many first layers they recompute in full, it is less for more, or the same, if a recomputed layer
// keeps no more than another (sketch_falls).
double sketch_missing_bytes(const Scenario *scenario, const Plan *plan, const SketchLayout *layout,
                            const SketchShape *shape);

bool sketch_falls(const Scenario *scenario, const SketchShape *shape);
