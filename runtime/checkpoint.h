// runtime/checkpoint.h - a training to be gone on with, by any plan of the same model.
//
// A folder (runtime/checkpoint_folder.h): masters.f64, moment.f64 and (of AdamW) variance.f64 as
// runtime/global_file.h has them, and checkpoint.json (runtime/checkpoint_head.h): step, seed,
// data, model, checksums of the others and of itself. It is written aside, as FOLDER.new, and takes
// its place when it is whole; until then the one before stays.
#pragma once

#include "runtime/checkpoint_head.h"
#include "runtime/rank.h"

// Refuses to replace a checkpoint of another model. A folder that is not there is legal.
Status checkpoint_check_model(const Scenario *scenario, const char *folder, Arena *arena);

// All processes save at the same time; they fail together, when those that failed have said why on
// standard error: the answer is then without a sentence.
Status checkpoint_save(const Rank *rank, const char *folder, const TrainedOn *on, int64_t step);

// Refuses a checkpoint of another model, optimizer or seed, and one that is truncated or damaged.
// Of other data, or with other steps, it is gone on with; the first process says so on standard
// error.
//   step  that it was saved behind
Status checkpoint_load(const Rank *rank, const char *folder, const TrainedOn *on, Arena *arena,
                       int64_t *step);
