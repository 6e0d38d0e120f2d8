// runtime/dump.h - gradients and weights of a step as files, for those who compare runs.
//
// DIR/gradients-STEP.f64 and DIR/weights-STEP.f64 are the numbers of the whole model, fp64, in its
// order and without padding, whatever the plan: each process writes its part. DIR/parameters.txt
// lists "NAME ROWS COLUMNS OFFSET".
#pragma once

#include "runtime/global_file.h"

// kind: GLOBAL_GRADIENTS or GLOBAL_WEIGHTS
Status dump_write(const Rank *rank, const char *folder, GlobalKind kind, int64_t step);

// The list of this rank's parameters is added to the file.
Status dump_list(const Rank *rank, const char *folder);
