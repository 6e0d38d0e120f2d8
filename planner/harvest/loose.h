// planner/harvest/loose.h - a bound of the step time that needs neither memory account nor chunks.
//
// All ranks together run every block of the model once per micro-batch; the busiest rank has at
// least the mean. What a micro-batch costs in all does not depend on pp, vpp, the chunks, dp or
// (but for what ZeRO 3 adds) the ZeRO stage: it is priced once per shape and shared by thousands
// of configurations.
#pragma once

#include "base/arena.h"
#include "base/deadline.h"
#include "planner/harvest/price_shelf.h"
#include "planner/harvest/sketch.h"
#include "planner/space/space.h"

typedef struct LooseEntry LooseEntry;

// Costs of shapes, by (tp, cp, ep, etp, micro_batch, recompute, cp_method).
typedef struct {
    const Scenario *scenario;
    LooseEntry *entries; // [num_entries]
    int num_entries, entry_capacity;
    int *slots; // [num_slots] open addressing: index into entries + 1; 0 is free
    size_t num_slots;
    struct LooseLocks *locks;
    const Deadline *deadline;
    const PriceSource *source; // to lay prices down; NULL: none
    Arena arena;
} LooseCosts;

// Prices the shapes of a space that recompute nothing, and those of which there is no such; the
// others are priced when they are asked for: that they take no less bounds most of them.
//   deadline       what is not priced by then is bounded by 0; NULL: none
//   source         of prices that are known already; NULL: none is
//   split_bound_s  [num_splits] the least bound of each split's configurations
void loose_build(const Space *space, int num_threads, const Deadline *deadline,
                 const PriceSource *source, LooseCosts *out, double *split_bound_s);

void loose_free(LooseCosts *costs);

// Whether the shape of a plan is in the table: of every one that some legal configuration has.
bool loose_has(const LooseCosts *costs, const Plan *plan);

// loose_bound_s of the plan without recomputation, which is no more, where the table has that one;
// else of the plan.
double loose_first_bound_s(const LooseCosts *costs, const Plan *plan);

// Less than any step of this plan can take. Its shape must be in the table.
double loose_bound_s(const LooseCosts *costs, const Plan *plan);

// The blocks of a plan's shape, and of the one that recomputes nothing where the plan recomputes
// the first layers of each stage.
//   returns  false where the table has not both
bool loose_sketch(const LooseCosts *costs, const Plan *plan, SketchShape *out);

// The splits in the order of their bounds: [num_splits] in the arena.
int *loose_order(const double *split_bound_s, int num_splits, Arena *arena);
