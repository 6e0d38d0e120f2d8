// planner/layerwise/layer_stage.h - the layer-wise problem of one pipeline stage
// (planner/layerwise/layerwise.h), with the costs of planner/layerwise/layer_cost.h.
//
// Strategies of a menu are whole plans that differ in tp, cp, dp, micro_batch, ZeRO stage and
// recomputation. They share pp, the split of layers, the GPUs of a stage, the sequences of a
// micro-batch over all of them, ep and etp. One of them is the base: embedding, head, MTP layers
// and messages between stages keep to it, so that stages do not depend on each other. Its memory as
// costmodel/memory/memory.h has it sets what all plans of the stage need beside their layers. A
// layout other than the base's adds, once it is entered, its gather buffer, its placeholders of
// gradients and its communicators.
#pragma once

#include "planner/layerwise/layer_cost.h"
#include "planner/layerwise/layerwise.h"

typedef struct {
    Scenario scenario;         // the memory account's: all that may be cached or kept counts
    const Plan *plans;         // [num_strategies]
    const Workload *workloads; // [num_strategies]
    const LayerCost *costs;    // [num_strategies][num_kinds]
    int num_strategies, num_layouts;
    const int *layout;          // [num_strategies]
    const double *layout_bytes; // [num_layouts] that entering one adds
    const double *change_s;     // [num_layouts][num_layouts] of a micro-batch, there and back
} LayerMenu;

// Prices the plans, which lie in the same arena.
LayerMenu layer_menu(const Scenario *scenario, const Plan *plans, int num_plans, Arena *arena);

typedef struct {
    LayerwiseProblem problem;
    int first_row; // of the problem's layers: the stage's first transformer layer
    int num_rows;  // transformer layers
    int first_layer;
    double beside_bytes;    // needed beside what the problem counts
    double available_bytes; // on the device
    double outside_bytes;   // of these not the allocator's
    double slack_frac;      // of what the allocator caches, what is needed
    double counted_factor;  // of all that, what is counted on (RankMemory)
} LayerStage;

LayerStage layer_stage(const LayerMenu *menu, int base, int rank, Arena *arena);

// RankMemory.counted_bytes of a plan that the problem says needs so many.
double layer_stage_counted_bytes(const LayerStage *stage, double memory_bytes);
