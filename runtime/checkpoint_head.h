// runtime/checkpoint_head.h - checkpoint.json: what a checkpoint is of.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "config/scenario.h"

typedef struct {
    int64_t elements; // numbers of each file
    int64_t step;     // that it was saved behind
    uint64_t seed;    // of first weights and data
} CheckpointHead;

// The document without its checksums; free with cJSON_Delete.
cJSON *checkpoint_head_tree(const Scenario *scenario, const CheckpointHead *head);

// Refuses one of another model.
Status checkpoint_head_check_model(const Scenario *scenario, const JsonNode *root, Arena *arena);

// Reads it, and refuses one of another model (by the first size or function that differs) or seed.
//   head  with the elements and the seed of this run; its step is set
Status checkpoint_head_read(const Scenario *scenario, const JsonNode *root, Arena *arena,
                            CheckpointHead *head);
