// costmodel/network/pricing_context.h - what the price of an operator depends on beside the
// operator: the same for a micro-batch of a training, an encoder and a step of decoding.
#pragma once

#include "base/arena.h"
#include "config/job/calibration.h"
#include "config/job/scenario.h"
#include "workload/pass/split.h"

typedef struct {
    Machines machines;
    const Execution *execution;
    const Calibration *calibration; // NULL: each part of a step takes as long as it is priced
    Split split;
    const Group
        *layer_groups; // [plan_num_group_kinds - NUM_GROUPS] of strategies of layers and of
                       // changes of layout (workload/pass/group.h); NULL: all layers are alike
} PricingContext;

// Of a scenario's training under a plan on one of the cluster's pools; all must outlive it.
//   arena  of layer_groups; NULL is accepted where all layers are alike
PricingContext pricing_context(const Scenario *scenario, const Plan *plan, int pool, Arena *arena);

// The ranks that a collective's operator is of.
Group context_group(const PricingContext *context, GroupKind kind);

// What a calibration multiplies a part by; 1 of none.
double part_factor(const Calibration *calibration, StepPart part);

// The part of a step that collectives of a group are.
StepPart group_part(const Pool *pool, Group group);
