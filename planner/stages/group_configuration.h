// planner/stages/group_configuration.h - the best split of one configuration's layers, on groups of
// different machines or on machines that are all alike.
#pragma once

#include "base/deadline.h"
#include "costmodel/step/estimate.h"
#include "planner/stages/group_costs.h"

typedef enum { GROUP_ABOVE_LIMIT, GROUP_NO_ROOM, GROUP_PRICED } GroupVerdict;

// Splits of one configuration that are priced.
enum { GROUP_MAX_SPLITS = 512 };

// What is asked of every configuration.
typedef struct {
    bool even;                  // only the plan's own split
    bool exhaustive;            // price every split that fits, by whole estimates
    double limit_s;             // a longer step is of no use
    double least_missing_bytes; // of those looked at before; 0: none missed
    bool fits;                  // known: the bound of a split that fits is not above limit_s
    int max_splits;             // priced in the order of their bounds; 0: GROUP_MAX_SPLITS
    // Splits then priced that differ from the best so far by one layer on another rank, until none
    // of those is faster; 0: none
    int max_steps;
    Deadline *deadline;
} GroupTask;

typedef struct {
    GroupVerdict verdict;
    bool has_room;      // some split fits, though all that do may be above the limit
    Plan plan;          // the best split's; its chunks are in the arena
    double step_time_s; // INFINITY where none was priced below the limit
    double memory_bytes;
    double open_s;      // no split that was left unpriced is below; INFINITY where none was left
    int64_t num_splits; // priced
    // GROUP_NO_ROOM: the split tried that misses by least, where that is less than the task's;
    // else 0
    Plan miss;
    RankMemory miss_memory;
    double missing_bytes;
} GroupSplit;

// No step of this configuration is shorter, whatever its split, as all ranks together have the
// work of the whole model.
double group_configuration_mean_s(GroupPricing *pricing, const Plan *plan);

// No step is shorter either, from where layers may be cut; memory is not asked.
double group_configuration_bound_s(GroupPricing *pricing, const Plan *plan, bool even);

// The best split of a configuration's layers.
//   plan   legal, with the default chunks, or those that the scenario states
//   arena  of the plans in out
Status group_configuration_split(GroupPricing *pricing, const Plan *plan, const GroupTask *task,
                                 Arena *arena, GroupSplit *out);
