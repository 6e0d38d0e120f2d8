// runtime/checkpoint_head.h - checkpoint.json: what a checkpoint is of.
//
// Its last member is the checksum (runtime/checksum.h) of all its bytes, with zeros for the 16
// digits of that checksum: one byte that is another is found, blanks included. A file without it is
// refused, since it may be one that has lost it.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "config/job/scenario.h"
#include "runtime/corpus.h"

// What a run is trained on.
typedef struct {
    uint64_t seed; // of first weights and data
    DataMark data;
    int64_t seq_len, global_batch; // of a step
} TrainedOn;

typedef struct {
    int64_t elements; // numbers of each file
    int64_t step;     // that it was saved behind
    TrainedOn on;
} CheckpointHead;

// The document without the checksums; free with cJSON_Delete.
cJSON *checkpoint_head_tree(const Scenario *scenario, const CheckpointHead *head);

// Adds the document's own checksum and writes it.
Status checkpoint_head_write(cJSON *tree, const char *path);

// Refuses a file that is not, to the last byte, what was written.
Status checkpoint_head_open(const char *path, Arena *arena, JsonNode *root);

// Refuses one of another model.
Status checkpoint_head_check_model(const Scenario *scenario, const JsonNode *root, Arena *arena);

// Reads it, and refuses one of another model (by the first size or function that differs) or seed.
//   head  with the elements and the seed of this run; its step, its data and what a step takes of
//   them are set
Status checkpoint_head_read(const Scenario *scenario, const JsonNode *root, Arena *arena,
                            CheckpointHead *head);
