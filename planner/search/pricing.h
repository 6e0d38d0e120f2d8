// planner/search/pricing.h - prices candidates on threads and keeps the best.
//
// Method: first the step time alone of each (costmodel/step/step_time.h), which excludes nearly
// all.
//         What it does not exclude waits for the end, when a handful is left that may be the best
//         K: these get their whole estimates, and are ranked by them. The two agree to about 1e-12,
//         and only what is worse by more than 1e-9 is excluded (planner/harvest/best.c).
// Of a candidate that stands for all splits of its layers the best is found first
//         (planner/harvest/split_search.h), and the candidate becomes that plan.
// Which thread prices what changes nothing: what is excluded depends on the lists alone.
#pragma once

#include "base/deadline.h"
#include "planner/harvest/best.h"
#include "planner/harvest/harvest.h"
#include "planner/harvest/split_memo.h"

enum { PRICING_ROUND = 64 }; // most candidates of a list; worth starting threads for

// Zero-initialise what is not set by the caller.
typedef struct {
    const Scenario *scenario;
    PlanObjective objective;
    int num_threads;
    bool exhaustive; // whole estimates of all at once
    bool robust;     // ranked by the upper end of the interval (planner/why/robust.h), which only a
                     // whole estimate has
    Deadline *deadline; // armed as soon as one is known
    Best quick;      // the best by step time alone; of their estimates only what ranks them is set
    Best best;       // by whole estimates
    Candidate *open; // [num_open] that may be among the best: no whole estimate yet
    size_t num_open, open_capacity;
    Arena *arena; // of the open ones
    SplitMemo splits;
    // Of candidates that stood for all splits:
    int64_t num_without_room, num_above; // none fits, or none that does is of use by its bound
    double open_s; // no step of a split that was left out is shorter; INFINITY
    Plan miss;     // the plan that misses by least where no split fits; missing_bytes 0: none
    RankMemory miss_memory;
    double missing_bytes;
} Pricing;

// Prices a list and sets `priced` of its members.
//   list  [num_candidates <= PRICING_ROUND]; is put in another order
Status pricing_run(Pricing *pricing, Candidate **list, size_t num_candidates);

// Makes the whole estimates that are still to be made; then pricing->best is complete.
Status pricing_finish(Pricing *pricing);

// Replaces the bounds of a candidate by what the step time of its plan says, the objective's value
// among it. pieces and scratch are of the calling thread; scratch is reset.
//   returns  false where that is not known: the bounds stay
bool candidate_raise(PlanObjective objective, Candidate *candidate, Pieces *pieces, Arena *scratch);
