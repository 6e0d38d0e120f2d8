// planner/harvest_walker.h - the walk over one split. For harvest.c and harvest_layers.c.
#pragma once

#include "planner/harvest.h"
#include "planner/harvest_family.h"

// The last plan of a family with one schedule that does not fit.
typedef struct {
    int zero_stage;
    bool known;
} GroupMiss;

// The plans of a family that recomputes nothing, and those that differ from it in that only.
typedef struct {
    const PlanChunk *chunks;
    int micro_batch;
    CpMethod cp_method;
    bool *fits; // [capacity] by the plan's place in its family
    int capacity;
} FitsWithout;

// How many layers the family's last plan with one schedule recomputes at least.
typedef struct {
    int zero_stage; // that it is known of
    int least;      // 1 + most_layers where none suffice
} LeastLayers;

typedef struct {
    const HarvestTask *task;
    int split;
    double available_bytes; // on one GPU
    Harvest *out;
    Pieces pieces;
    Arena scratch; // of one family
    FamilyParts parts;
    GroupMiss group_misses[NUM_SCHEDULES];
    LeastLayers least[NUM_SCHEDULES];
    FitsWithout without;
    bool some_fit; // recomputing some layers suffices for the plan looked at last
    Arena layers_arena;
    // Bit 10 zero_stage + schedule: not even what does not shrink with a larger micro_batch fits.
    uint64_t missed[SPACE_MAX_SERIES];
} HarvestWalker;

_Static_assert(4 * NUM_SCHEDULES <= 64, "a bit for each ZeRO stage and schedule");

// Whether a plan fits; keeps what it misses by otherwise.
bool plan_fits(HarvestWalker *w, const Plan *plan, RankMemory *memory);

// Adds what was looked for; whether that ends the walk.
bool fit_add(HarvestWalker *w, const Plan *plan);

// Bounds a plan that fits; keeps it unless the bound is above the limit.
void plan_bound(HarvestWalker *w, const Plan *plan, const RankMemory *memory);

// Whether the loose bound of a plan is above the limit.
bool loosely_excluded(const HarvestTask *task, const Plan *plan);

// Whether, of plans that differ in their zero_group only, those with a smaller one never need less
// memory.
bool smaller_groups_hold_more(const HarvestWalker *w, const Plan *plan);

// Whether it is known from a smaller micro_batch that what lasts does not fit.
bool is_missed(const HarvestWalker *w, const SpaceFamily *family, const Plan *plan);

// --- harvest_layers.c

void layers_start(HarvestWalker *w, const SpaceFamily *family);

// A plan that recomputes nothing, or all layers, fits.
void layers_note_fit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan);

// Visits what recomputes the first layers of each stage of a plan.
//   returns  false to end the walk
bool layers_visit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan);

// Whether a plan that recomputes all layers is not wanted: recomputing fewer suffices.
bool layers_beat(const HarvestWalker *w, const SpaceFamily *family, const Plan *plan);
