// planner/harvest.h - what of a space fits, and how fast each configuration could be at best.
#pragma once

#include "base/arena.h"
#include "costmodel/memory.h"
#include "planner/planner.h"
#include "planner/space.h"

#include <stddef.h>

// A configuration that fits, with bounds that its price cannot be below.
typedef struct {
    Plan plan;
    double value;       // of the objective
    double step_time_s; // also the tie-breaker
    int64_t index;      // order of generation
} Candidate;

typedef enum {
    HARVEST_LEGAL, // end at the first legal configuration
    HARVEST_FIT,   // end at the first that fits
    HARVEST_BOUND, // visit all, bound what fits
} HarvestGoal;

typedef struct {
    Candidate *candidates; // [num_candidates]; of HARVEST_FIT the one found, without bounds
    size_t num_candidates, capacity;
    int64_t considered, pruned_by_memory;
    // The configuration that misses by least; missing_bytes is 0 where there is none
    Plan miss;
    RankMemory miss_memory;
    double missing_bytes;
    Arena arena; // owns the candidates and the chunks of the plans
} Harvest;

// Walks the space. Only objective, max_memory_bytes, num_threads and progress of options matter.
void harvest_run(const Space *space, HarvestGoal goal, const PlannerOptions *options, Harvest *out);

void harvest_free(Harvest *harvest);

// What one GPU may hold.
double memory_limit_bytes(const Scenario *scenario, const PlannerOptions *options);

// Lower bounds of a plan's objective and step time.
//   memory  its worst rank
void plan_bounds(const Scenario *scenario, const Plan *plan, const Workload *workload,
                 const Prices *prices, const RankMemory *memory, PlanObjective objective,
                 Candidate *out);

// The objective's value of a price.
double objective_value(PlanObjective objective, const Estimate *estimate);
