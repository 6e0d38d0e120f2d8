// planner/layerwise/layer_uniform.h - the strategies of a menu, each throughout: the fastest, and
// those that embedding and head may keep to.
#pragma once

#include "costmodel/step/estimate.h"
#include "planner/layerwise/layer_stage.h"

typedef struct {
    double *bound_s;   // [num_strategies] of the step; INFINITY where it does not fit
    double *bytes;     // [num_strategies] on the worst device
    int best;          // the fastest; -1 where none fits
    Estimate estimate; // of it; step_time_s is INFINITY where none fits
} LayerUniforms;

// Prices in the order of the bounds until the next is above the best.
LayerUniforms layer_uniforms(const Scenario *scenario, const LayerMenu *menu, Arena *arena);

// The bases to be tried, of each of the best pairs of layout and ZeRO stage the best: what layers
// do hardly depends on the base's recomputation. Where nothing fits throughout, the leanest.
//   bases    [most] filled, the best first
//   returns  how many
int layer_bases(const LayerMenu *menu, const LayerUniforms *uniforms, int most, int *bases);
