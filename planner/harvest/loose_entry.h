// planner/harvest/loose_entry.h - one shape and its prices. For loose.c and price_shelf.c.
#pragma once

#include "plan/plan.h"
#include "planner/harvest/sketch.h"

#include <stdatomic.h>

// Where ZeRO 3, and 2 of some stacks, scatters the gradients of each micro-batch, products do not
// add them to those of the last one, which may take less time and room. Where ZeRO 3 adds them up
// over a step they do. What scatters them is not in the bound.
typedef enum { GRADIENTS_ADDED, GRADIENTS_SCATTERED, NUM_GRADIENTS } Gradients;

typedef struct {
    int tp, cp, ep, etp, micro_batch, recompute, cp_method;
} LooseShape;

typedef struct {
    double microbatch_s;
    SketchBlock blocks[SKETCH_MAX_BLOCKS];
} LoosePrice;

struct LooseEntry {
    LooseShape shape;
    Plan plan;                        // the first of this shape
    bool wanted[2][NUM_GRADIENTS];    // without a pipeline, with one
    atomic_bool known[NUM_GRADIENTS]; // else not asked for yet, or the deadline came first
    LoosePrice *prices;               // [NUM_GRADIENTS] 0 where not known
};
