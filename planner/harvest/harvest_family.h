// planner/harvest/harvest_family.h - workloads, memory and prices that the plans of a family share.
// For harvest.c and harvest_layers.c.
//
// Blocks change only where ZeRO 2 scatters gradients and ZeRO 3 gathers weights in every
// micro-batch; what is kept of activations only with the blocks, the schedule and the number of
// recomputed layers; prices also with split backwards and hidden messages, the optimizer's with
// the shards. tests/planner/test_harvest.c holds this to be true.
#pragma once

#include "costmodel/memory/memory.h"
#include "planner/space/space.h"
#include "planner/stages/pieces.h"

enum { FAMILY_PRICES = 2 * 2 * 2 * 3 };

// What is known of plans with one number of recomputed layers.
typedef struct {
    Workload *workload; // NULL: not made yet
    Workload *floor;    // workload_layers_floor of it
    const double *activations[NUM_SCHEDULES], *floor_activations[NUM_SCHEDULES];
} FamilyLevel;

typedef struct {
    const Scenario *scenario;
    const SpaceFamily *family;
    Pieces *pieces;
    Arena *arena;        // reset for each family
    int blocks_key;      // of the plans looked at last; what follows is of them
    FamilyLevel *levels; // [most_layers + 1]: as the plans are, then by recomputed layers
    bool prices_known[FAMILY_PRICES]; // as the plans are
    Prices prices[FAMILY_PRICES];
} FamilyParts;

// Starts with a family; the arena is empty and stays the caller's.
void family_start(FamilyParts *parts, const SpaceFamily *family);

// A plan of the family, or space_first_layers of one.
const Workload *family_workload(FamilyParts *parts, const Plan *plan);
Prices family_prices(FamilyParts *parts, const Plan *plan);

// The account of the worst rank; *missing_bytes > 0 where that does not fit.
RankMemory family_memory(FamilyParts *parts, const Plan *plan, double *missing_bytes);

// Whether every rank of a plan misses, or of the floor of a plan with some layers recomputed.
bool family_all_miss(FamilyParts *parts, const Plan *plan);
bool family_floor_all_misses(FamilyParts *parts, const Plan *plan);

// Bytes that a plan with some layers recomputed misses by at least, as does each that recomputes
// fewer of them; 0 where it may fit.
double family_floor_missing(FamilyParts *parts, const Plan *plan);
