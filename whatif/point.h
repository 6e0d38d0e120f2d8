// whatif/point.h - one point of a grid: from its number to its answer, and as a line of a journal.
#pragma once

#include "config/software/kernel_shelf.h"
#include "planner/harvest/price_shelf.h"
#include "whatif/whatif.h"

typedef struct Rays Rays; // whatif/rays.h

// What all points of a grid share.
typedef struct {
    const Scenario *scenario;
    const WhatifAxis *axes;
    int num_axes;
    const char *paths[WHATIF_MAX_AXES];
    const cJSON *base; // the document with presets written out where a path leads into them
    bool replan;
    bool figures_only; // points have no documents: their answer is an empty text
    WhatifPlay play;   // NULL: nothing is played
    void *play_context;
    PlannerOptions planner; // of one point
    PriceShelf *prices;     // the same
    KernelShelf *shelf;     // taken from, and filled, by all threads
    Rays *rays;             // the same; NULL: none
} Grid;

// The scenario of a point.
//   key  of its prices (planner/harvest/price_shelf.h); NULL where the grid does not plan anew
Status point_scenario(const Grid *grid, int64_t index, Arena *arena, Scenario *out,
                      const char **key);

// What the plan of another point takes in the scenario of this one, where it is legal and fits; 0
// where not. What follows from the machine and the model is derived anew.
double point_known_step_s(const Grid *grid, const Scenario *scenario, const WhatifPoint *like,
                          Arena *arena);

// Prices or plans a point. Called from any thread.
//   likes  [num_likes] points that are done: their plans, priced at this point, tell a search what
//          is too slow to look at. The answer is the same without.
//   arena  owns what the point holds
void point_run(const Grid *grid, int64_t index, const WhatifPoint *const *likes, int num_likes,
               Arena *arena, WhatifPoint *out);

// The point with its texts in this arena, and its answer with the others.
Status point_copy(const WhatifPoint *point, Arena *arena, Spill *answers, WhatifPoint *out);

// A line with its newline: {"point": INDEX, "code", "error", "plan", "answer"}.
const char *point_line(int64_t index, const WhatifPoint *point, Arena *arena);

// Reads such a line (without the newline, ended by a NUL).
//   returns  false where it is none
bool point_read(const char *line, int64_t num_points, Arena *arena, int64_t *index,
                WhatifPoint *out);
