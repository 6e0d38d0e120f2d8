// planner/layerwise/layer_cost.h - what one layer costs under one strategy: a plan that has this
// strategy throughout prices it.
//
// Times are those of the operator templates (costmodel/pass/list_price.h), bytes those of
// costmodel/memory/memory.h. A sum over layers is what those say of a chunk, but for this:
//   host         where the host launches a layer more slowly than the device runs it, the layer
//   takes
//                the host's time; in a chunk only the sums meet
//   data-parallel collectives  each layer's own, exposed by what they take longer than the layer's
//                forward (gathers) or backward (reductions) of one micro-batch beside them; in a
//                Program pieces of a chunk follow each other
//   sums over tp  of partial gradients, what its own add to one number's: in a Program a rank adds
//                up all of them at once
#pragma once

#include "costmodel/pass/price.h"
#include "workload/pass/block.h"

typedef struct {
    Price forward, backward; // of a micro-batch
    double edge_s;           // of a micro-batch: ZeRO 3's first gather and last scatter
    double sync_s;           // of a step: exposed collectives of gradients and weights
    double update_s;         // of a step: the optimizer
    double state_bytes;      // weights, gradients, optimizer
    double saved_bytes;      // of a micro-batch in flight
    double peak_bytes;       // above what is held when its forward begins, in forward or backward,
                             // with what it leaves free in pieces too small for others
    double gathered;         // parameters that ZeRO 3 gathers for it; 0 under other stages
} LayerCost;

// Of a block of the plan's workload. The cluster's machines are alike.
LayerCost layer_cost(const Scenario *scenario, const Plan *plan, const Block *block);

// One pass over a block; the host's time where that is more. What of ZeRO 3 has nothing to hide
// behind is added to *edge_s.
Price layer_pass_price(const PricingContext *context, const Block *block, bool forward,
                       double *edge_s);

// Seconds of a whole step with so many micro-batches, without edge_s.
double layer_step_s(const LayerCost *cost, double num_microbatches);

// Adds one price to another, or takes it away (times -1).
void layer_price_add(Price *sum, const Price *part, double times);
