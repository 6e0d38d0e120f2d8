// planner/layerwise/layerwise_frontier.h - prefixes of a chain of which none beats another.
// Included by layerwise*.c only.
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A prefix: its time, what it holds, and the most that it has needed.
typedef struct {
    double time_s;
    double held_bytes; // lasts and saves
    double most_bytes; // lasts, and the largest peak over what was saved before it
    int32_t before;    // node of the prefix without its last layer; -1
    int32_t strategy;  // of its last layer
} LayerwiseState;

// States by ascending time, then by what they hold; none is at least another in all three figures.
typedef struct {
    LayerwiseState *states; // [num_states]
    size_t num_states, capacity;
} LayerwiseFrontier;

void frontier_clear(LayerwiseFrontier *frontier);
void frontier_append(LayerwiseFrontier *frontier, LayerwiseState state, Arena *arena);

// The states that may not be left out of two ordered lists, in *out, which is neither.
//   stairs  scratch, grown as needed
typedef struct {
    double *held_bytes, *most_bytes; // pairs of which neither beats the other
    size_t num_stairs, capacity;
} LayerwiseStairs;
void frontier_merge(const LayerwiseFrontier *a, const LayerwiseFrontier *b, LayerwiseStairs *stairs,
                    LayerwiseFrontier *out, Arena *arena);
