// planner/layerwise/layerwise_bound.h - what is left of a chain costs at least this: the limit of
// memory is relaxed with a multiplier, and what remains is a shortest path. Included by
// layerwise*.c only.
#pragma once

#include "planner/layerwise/layerwise.h"

// Least costs of the layers after each, for each layout of its result; cost is
//   time_weight x seconds + bytes_weight x bytes
// in two accounts of bytes, each a lower bound of what a plan needs:
//   held  what is held so far, what later layers last and save until layer `peak_at`, its peak
//   most  the most needed so far, and what later layers last
typedef struct {
    double time_weight, bytes_weight; // s of bound per second, and per byte
    int peak_at;
    double *held;    // [num_layers + 1][num_layouts]; entry 0 is before the first layer, one layout
    double *most;    // the same
    double *held_in; // [num_layers][num_layouts] of a layer in this layout and what follows it
    double *most_in; // the same
} LayerwiseRest;

// Strategies up to this level only.
LayerwiseRest layerwise_rest(const LayerwiseProblem *problem, int level, double time_weight,
                             double bytes_weight, int peak_at, Arena *arena);

// The strategies of least relaxed cost.
void layerwise_rest_path(const LayerwiseProblem *problem, int level, const LayerwiseRest *rest,
                         int *strategy);

// The bound of a multiplier that was found for another level (seconds, without level_s).
typedef struct LayerwiseDual LayerwiseDual;
double layerwise_bound_s(const LayerwiseProblem *problem, int level, const LayerwiseDual *dual);

// The largest bound over all multipliers (seconds, without level_s) and its multiplier.
//   strategy  [num_layers] scratch; afterwards the last path that fits, where *fits
//   returns   INFINITY where nothing fits
struct LayerwiseDual {
    double bound_s;
    double multiplier_s_per_byte;
    int peak_at;
    bool fits;
};
LayerwiseDual layerwise_dual(const LayerwiseProblem *problem, int level, Arena *arena,
                             int *strategy);
