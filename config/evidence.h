// config/evidence.h - how well a job's memory is known: the spread of measured memories around
// predicted ones, by software stack and kind of model.
//
// Files:  hw-profiles/memory.json; docs/memory_spreads.py fits it. Spreads are standard deviations
//         of a natural log. A stack that it does not name has `other`.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/cluster.h"
#include "config/model.h"
#include "config/training.h"

typedef struct {
    double memory_spread; // of what a GPU holds at its peak, over the account of it
} Evidence;

// Reads what is bundled and finds what is of this job.
Status evidence_find(const Model *model, const Training *training, Arena *arena,
                     const Evidence **out);
