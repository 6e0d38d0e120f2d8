// runtime/global_file.h - numbers of a whole model in one file, whatever the plan: fp64, in the
// order of the model and without padding. Each process reads and writes the part that it has, so
// that a file of one plan is a file of any other. (fp32 goes there and back unchanged.)
#pragma once

#include "runtime/rank.h"

typedef enum {
    GLOBAL_GRADIENTS,
    GLOBAL_WEIGHTS, // in a dump: what the rank has; read from a file: made of the masters in it
    GLOBAL_MASTERS,
    GLOBAL_MOMENT,
    GLOBAL_VARIANCE,
} GlobalKind;

Status global_file_write(const Rank *rank, const char *path, GlobalKind kind);
Status global_file_read(const Rank *rank, const char *path, GlobalKind kind);
