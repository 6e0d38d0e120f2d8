// planner/harvest/split_search.h - the best of all splits of a configuration's layers, on machines
// that are all alike, and of all numbers of first layers that each stage recomputes.
//
// Method: planner/stages/group_configuration.h: splits in the order of their bounds, the most
// promising
//         ones priced, then those that differ from the best by one layer. More recomputed layers
//         make every split slower, and fit where fewer do not: numbers are taken from the fewest
//         that fit on, until the next one's bound is above the best.
#pragma once

#include "planner/stages/group_configuration.h"

// Splits of a configuration that are priced in the order of their bounds, and then one layer from
// the best.
enum {
    SPLIT_MAX_PRICED = 24,
    SPLIT_MAX_STEPS = 64,
    SPLIT_MIN_STEPS = 8,
    SPLIT_STEPS_CHUNKS = 1024, // steps times chunks, between the two
};

typedef struct {
    int most_layers; // of each stage that may be recomputed alone; 0: the plan says how many are
    double limit_s;  // what cannot be as short is not looked at; what is found is the same for all
    Deadline *deadline;
} SplitTask;

//   pricing  of a scenario whose machines are all alike
//   plan     of a family with any_split (planner/space/space.h)
//   arena    of the plans in out
Status split_search(GroupPricing *pricing, const Plan *plan, const SplitTask *task, Arena *arena,
                    GroupSplit *out);

// Whether no split is below the limit, as far as is known before any is priced.
bool split_is_out(GroupPricing *pricing, const Plan *plan, const SplitTask *task);

// Whether any split fits; of first layers that are recomputed the fewest that suffice.
//   most_layers  as in SplitTask
//   found        a plan that fits; its chunks are in the arena
bool split_fits(GroupPricing *pricing, const Plan *plan, int most_layers, Arena *arena,
                Plan *found);
