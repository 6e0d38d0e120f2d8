// planner/harvest/harvest.h - what of a space fits, and how fast each configuration could be at
// best.
#pragma once

#include "base/arena.h"
#include "base/deadline.h"
#include "costmodel/memory/memory.h"
#include "planner/harvest/loose.h"
#include "planner/planner.h"
#include "planner/space/space.h"
#include "planner/stages/pieces.h"

#include <stddef.h>

// A configuration that fits, with bounds that its price cannot be below.
typedef struct {
    Plan plan;
    double value;        // of the objective
    double step_time_s;  // also the tie-breaker
    double memory_bytes; // exact
    double busy_s;       // exact but for rounding: what the mean rank computes
    int64_t index;       // order of generation
    bool priced;         // the search knows its price already
    // Of a plan that stands for all splits of its layers, until it is priced: its chunks are the
    // default ones, its memory is not known, its bounds are those of any split.
    bool any_split;
    int most_layers; // and for 1 to so many first layers of each stage recomputed; 0: as it says
} Candidate;

// By value, then step time, then order of generation: as qsort wants it.
int candidate_compare(const Candidate *a, const Candidate *b);
void candidates_sort(Candidate *candidates, size_t num_candidates);

typedef enum {
    HARVEST_LEGAL, // end at the first legal configuration
    HARVEST_FIT,   // end at the first that fits
    HARVEST_BOUND, // visit all, bound what fits
} HarvestGoal;

// What is looked for; the same for all splits.
typedef struct {
    const Space *space;
    HarvestGoal goal;
    PlanObjective objective;
    // Of plans that recompute more or fewer first layers in full, and are alike else, the fastest
    // is wanted only. It recomputes fewest of those that fit: each further layer makes the backward
    // of the chunk that holds it longer and nothing shorter, and the end of a step, the longest
    // path through its Program, never falls where a duration rises (costmodel/step/step_time.h: a
    // max-plus linear function of them). The others then count as pruned by their bound, unpriced.
    bool first_layers_by_time;
    double raise_frac;       // by which the ranking's values are above the objective's at least
    const LooseCosts *loose; // NULL: no configuration is passed over by it
    double value_limit;      // a configuration whose bound is above it is passed over; INFINITY
    bool uncounted;          // what is passed over in great numbers does not count as considered
    bool wants_miss;         // where nothing fits, the configuration that misses by least is asked
    Deadline *deadline;      // NULL: none
    // Whether a configuration that fits is of no use whatever its price, which is at least this
    // step time and busy time. Called from all threads. NULL: no.
    bool (*excludes)(const void *context, double memory_bytes, double step_time_s, double busy_s);
    const void *excludes_context;
} HarvestTask;

// What one split holds.
typedef struct {
    Candidate *candidates; // [num_candidates]; of HARVEST_LEGAL and _FIT the one found, without
                           // bounds
    size_t num_candidates, capacity;
    int64_t considered, pruned_by_memory, pruned_by_bound;
    bool any_split; // a configuration stood for all splits of its layers
    bool cut_short; // by the deadline: not all of the split was walked
    // The configuration that misses by least; missing_bytes is 0 where there is none
    Plan miss;
    RankMemory miss_memory;
    double missing_bytes;
    Arena chunks; // owns the chunks of the plans
    Arena arena;  // owns the candidates
} Harvest;

// Walks one split.
//   returns  whether the goal was reached (never for HARVEST_BOUND)
bool harvest_split(const HarvestTask *task, int split, Harvest *out);

void harvest_free(Harvest *harvest);

// Seconds that the mean rank computes in a step, or less: what the energy model counts as busy.
double mean_busy_s(const Plan *plan, const Prices *prices);

// The objective's value of a price, and of the least step time and busy time it could have.
double objective_value(PlanObjective objective, const Estimate *estimate);
double objective_bound(const Scenario *scenario, PlanObjective objective, double step_time_s,
                       double busy_s);
