// planner/harvest/harvest_walker.h - the walk over one split. For harvest.c and harvest_layers.c.
#pragma once

#include "planner/harvest/harvest.h"
#include "planner/harvest/harvest_family.h"
#include "planner/harvest/sketch_splits.h"
#include "planner/stages/group_costs.h"

// The last plan of a family with one schedule that does not fit.
typedef struct {
    int zero_level;
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
    int zero_level; // that it is known of
    int least;      // 1 + most_layers where none suffice
} LeastLayers;

// Layouts of the ways to cut the layers that a split has, and what is known of the family.
enum { SKETCH_SLOTS = 512 };

// The chain of the shape asked for last.
typedef struct {
    SketchShape shape; // NULL: none is known
    SketchChain chain;
    Arena arena;
} ShapeChain;

typedef struct {
    struct {
        const PlanChunk *chunks; // NULL: free
        bool is_v;
        const SketchLayout *layout;
    } slots[SKETCH_SLOTS];
    int num_layouts;
    unsigned other_schedules; // bits of those that are V, dual or split backwards
    Arena arena;              // of the layouts
    // Of the family by whether plans recompute the first layers and by ZeRO level
    bool asked[2][NUM_ZERO_LEVELS], known[2][NUM_ZERO_LEVELS];
    SketchShape shape[2][NUM_ZERO_LEVELS];
    double bound_s[NUM_ZERO_LEVELS][2]
                  [2]; // by whether plans are V and split backwards; -1: not asked yet
    // By recomputation, whether plans recompute the first layers, and ZeRO level
    ShapeChain chains[NUM_RECOMPUTES][2][NUM_ZERO_LEVELS];
} HarvestSketch;

typedef struct {
    const HarvestTask *task;
    int split;
    double available_bytes; // on one GPU
    Harvest *out;
    GroupPricing pricing; // its pieces are those of all families
    Arena scratch;        // of one family
    FamilyParts parts;
    GroupMiss group_misses[NUM_SCHEDULES];
    LeastLayers least[NUM_SCHEDULES];
    FitsWithout without;
    HarvestSketch sketch;
    bool some_fit; // recomputing some layers suffices for the plan looked at last
    Arena layers_arena;
    // Bit NUM_SCHEDULES zero_level + schedule: not even what does not shrink with a larger
    // micro_batch fits.
    uint64_t missed[SPACE_MAX_SERIES];
} HarvestWalker;

_Static_assert(NUM_ZERO_LEVELS *NUM_SCHEDULES <= 64, "a bit for each ZeRO level and schedule");

// Whether a plan fits; keeps what it misses by otherwise.
bool plan_fits(HarvestWalker *w, const Plan *plan, RankMemory *memory);

// Adds what was looked for; whether that ends the walk.
bool fit_add(HarvestWalker *w, const Plan *plan);

// Bounds a plan that fits; keeps it unless the bound is above the limit.
void plan_bound(HarvestWalker *w, const Plan *plan, const RankMemory *memory);

// Keeps a plan that may be wanted.
void candidate_keep(HarvestWalker *w, const Candidate *candidate);

// The least that a plan can have of what the search ranks by.
double least_value(const HarvestTask *task, double step_time_s, double busy_s);

// The longest step that may be wanted; INFINITY where there is no limit.
double step_limit_s(const HarvestTask *task);

// Whether the loose bound of a plan is above the limit.
bool loosely_excluded(const HarvestTask *task, const Plan *plan);

// Whether, of plans that differ in their zero_group only, those with a smaller one never need less
// memory.
bool smaller_groups_hold_more(const HarvestWalker *w, const Plan *plan);

// Whether it is known from a smaller micro_batch that what lasts does not fit.
bool is_missed(const HarvestWalker *w, const SpaceFamily *family, const Plan *plan);

// --- harvest_sketch.c

void sketch_open(HarvestWalker *w);
void sketch_start(HarvestWalker *w);
void sketch_end(HarvestWalker *w);

// Whether a plan of the family, or space_first_layers of one, is known to be above the limit.
bool sketch_excludes(HarvestWalker *w, const Plan *plan);

// Whether it is known not to fit, and not to be the closest miss where that is wanted.
bool sketch_misses(HarvestWalker *w, const Plan *plan);

// Whether no plan of a shape (planner/space/space.h, SpaceFilter) is below the limit, or none fits;
// of a harvest that wants no miss.
bool sketch_skips(void *walker, const SpaceShape *shape);

// Whether no split of a plan's layers is below the limit, or none fits, as far as its shape says.
bool sketch_splits_slow(HarvestWalker *w, const Plan *plan);
bool sketch_splits_full(HarvestWalker *w, const Plan *plan);

// Of the first layers of a plan's stages, 1 to `most`: how many may be recomputed for the bound to
// stay below the limit, and how many have to be for the plan to fit, at least; `*least` is more
// than `*end` where no number is known to be left.
void sketch_layers(HarvestWalker *w, const Plan *plan, int most, int *least, int *end);

// --- harvest_splits.c

// Visits a plan of a family that stands for all splits of its layers.
//   most_layers  and for 1 to so many first layers of each stage recomputed; 0: for the plan alone
//   returns      false to end the walk
bool splits_visit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan, int most_layers);

// --- harvest_layers.c

void layers_start(HarvestWalker *w, const SpaceFamily *family);

// A plan that recomputes nothing, or all layers, fits.
void layers_note_fit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan);

// Visits what recomputes the first layers of each stage of a plan.
//   returns  false to end the walk
bool layers_visit(HarvestWalker *w, const SpaceFamily *family, const Plan *plan);

// Whether a plan that recomputes all layers is not wanted: recomputing fewer suffices.
bool layers_beat(const HarvestWalker *w, const SpaceFamily *family, const Plan *plan);
