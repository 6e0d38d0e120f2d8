// tests/planner/space_case.h - every configuration of a space, walked through.
#pragma once

#include "tests/planner/planner_case.h"

typedef struct {
    const Scenario *scenario;
    Arena *arena;
    const char **keys; // [num_keys] case_key of each, sorted
    int num_keys, capacity;
    int num_illegal, num_not_kept, num_default_chunks, num_out_of_order;
    int last_micro_batch[SPACE_MAX_SERIES];
} SpaceWalk;

// All of a scenario.
SpaceWalk *space_walk(const Scenario *scenario, Arena *arena);

// All of Llama-3.1-8B on 16 H100 with these constraints (NULL: none).
const SpaceWalk *space_walk_given(const char *parallel, Arena *arena);

// Whether the key of some configuration holds the text.
bool space_walk_has(const SpaceWalk *walk, const char *text);

// Two stages of its 32 layers.
#define SPACE_CASE_STAGES                                                                          \
    "[{\"layers\": 15, \"embedding\": true}, {\"layers\": 17, \"loss\": true}]"
