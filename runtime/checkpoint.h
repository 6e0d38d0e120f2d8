// runtime/checkpoint.h - a training to be gone on with, by any plan of the same model.
//
// A folder (runtime/checkpoint_folder.h): masters.f64, moment.f64 and (of AdamW) variance.f64 as
// runtime/global_file.h has them, and checkpoint.json (runtime/checkpoint_head.h): step, seed,
// model, checksums of the others and of itself. It is written aside, as FOLDER.new, and takes
// its place when it is whole; until then the one before stays.
#pragma once

#include "runtime/rank.h"

// Refuses to replace a checkpoint of another model. A folder that is not there is legal.
Status checkpoint_check_model(const Scenario *scenario, const char *folder, Arena *arena);

// All processes save at the same time; they fail together.
//   seed  of first weights and data
Status checkpoint_save(const Rank *rank, const char *folder, uint64_t seed, int64_t step);

// Refuses a checkpoint of another model, optimizer or seed, and one that is truncated or damaged.
//   step  that it was saved behind
Status checkpoint_load(const Rank *rank, const char *folder, uint64_t seed, Arena *arena,
                       int64_t *step);
