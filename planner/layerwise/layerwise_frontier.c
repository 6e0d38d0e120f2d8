#include "planner/layerwise/layerwise_frontier.h"

#include <string.h>

void frontier_clear(LayerwiseFrontier *frontier) {
    frontier->num_states = 0;
}

void frontier_append(LayerwiseFrontier *frontier, LayerwiseState state, Arena *arena) {
    if (frontier->num_states == frontier->capacity) {
        frontier->capacity = frontier->capacity ? 2 * frontier->capacity : 64;
        frontier->states =
            arena_grow(arena, frontier->states, frontier->capacity * sizeof *frontier->states);
    }
    frontier->states[frontier->num_states++] = state;
}

static void stairs_reserve(LayerwiseStairs *stairs, Arena *arena) {
    if (stairs->num_stairs < stairs->capacity) return;
    stairs->capacity = stairs->capacity ? 2 * stairs->capacity : 64;
    const size_t size = stairs->capacity * sizeof(double);
    stairs->held_bytes = arena_grow(arena, stairs->held_bytes, size);
    stairs->most_bytes = arena_grow(arena, stairs->most_bytes, size);
}

// Stairs go down: the more is held, the less was the most. Whether one of them is at most the
// state in both; else the state becomes one, in place of those that it is at most.
static bool stairs_beat(LayerwiseStairs *stairs, const LayerwiseState *state, Arena *arena) {
    size_t low = 0, high = stairs->num_stairs; // the first that holds more
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (stairs->held_bytes[middle] > state->held_bytes)
            high = middle;
        else
            low = middle + 1;
    }
    if (low > 0 && stairs->most_bytes[low - 1] <= state->most_bytes) return true;
    size_t from = low, to = low; // those it is at most
    if (from > 0 && stairs->held_bytes[from - 1] == state->held_bytes) from--;
    while (to < stairs->num_stairs && stairs->most_bytes[to] >= state->most_bytes) to++;
    stairs_reserve(stairs, arena);
    const size_t left = stairs->num_stairs - to;
    memmove(&stairs->held_bytes[from + 1], &stairs->held_bytes[to], left * sizeof(double));
    memmove(&stairs->most_bytes[from + 1], &stairs->most_bytes[to], left * sizeof(double));
    stairs->held_bytes[from] = state->held_bytes;
    stairs->most_bytes[from] = state->most_bytes;
    stairs->num_stairs = from + 1 + left;
    return false;
}

static bool comes_first(const LayerwiseState *a, const LayerwiseState *b) {
    if (a->time_s != b->time_s) return a->time_s < b->time_s;
    if (a->held_bytes != b->held_bytes) return a->held_bytes < b->held_bytes;
    return a->most_bytes <= b->most_bytes;
}

void frontier_merge(const LayerwiseFrontier *a, const LayerwiseFrontier *b, LayerwiseStairs *stairs,
                    LayerwiseFrontier *out, Arena *arena) {
    frontier_clear(out);
    stairs->num_stairs = 0;
    size_t i = 0, j = 0;
    while (i < a->num_states || j < b->num_states) {
        const bool first =
            j == b->num_states || (i < a->num_states && comes_first(&a->states[i], &b->states[j]));
        const LayerwiseState *next = first ? &a->states[i++] : &b->states[j++];
        if (!stairs_beat(stairs, next, arena)) frontier_append(out, *next, arena);
    }
}
