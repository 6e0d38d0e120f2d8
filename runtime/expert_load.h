// runtime/expert_load.h - how unevenly a router spreads a step's tokens over the ranks that hold
// experts.
//
// The rank with most rows of a layer is waited for at the layer's all-to-all. The rank with most of
// all its layers holds most of them. So there are two figures, both relative to even routing. The
// estimate takes them as training.moe_routing.imbalance. Micro-batches of a step are added up
// before.
#pragma once

#include "base/arena.h"
#include "base/status.h"

struct Rank;

typedef struct {
    int num_layers;      // of the model; 0: nothing is counted
    double *rows, *even; // [num_layers] of this rank's experts in this step, and were they even
} ExpertLoad;

typedef struct {
    double of_layers; // the busiest rank of each layer over even, mean over layers; 0: not known
    double of_rank;   // the rank busiest over all its layers
} ExpertImbalance;

ExpertLoad expert_load_new(int num_layers, Arena *arena);

// Rows of a forward of a layer, counted from the model's first.
void expert_load_add(ExpertLoad *load, int layer, double rows, double even);

// Over all processes, which all call; begins anew.
Status expert_load_of_step(struct Rank *rank, ExpertImbalance *out);
