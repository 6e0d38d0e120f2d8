// planner/placement/placement.h - which node plays which part of a plan, where links between nodes
// differ.
//
// Method: simulated annealing (planner/placement/placement_anneal.h) on a model of the step that is
// made of
//         paths through the plan's Program (planner/placement/placement_price.h); what it finds is
//         priced by the estimator, and where the model was wrong it learns that path and the search
//         goes on. It ends at the bound, when a round finds nothing better, or when the moves are
//         used up.
// Bound:  the estimator's step with every traffic as slow as the best links of the nodes that it
//         needs leave it, whatever the placement; and the node with the worst links stands
//         somewhere.
// Source: Yim, Song, Choi, Lee, Jung, Jang, "Pipette: automatic fine-grained large language model
//         training configurator for real-world clusters", DATE 2024.
// The placement follows from scenario, plan, seed and number of moves, whatever the number of
// threads.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"

#include <stdatomic.h>
#include <stdint.h>

// A zeroed struct asks for the defaults.
typedef struct {
    uint64_t seed;
    int64_t num_moves;           // at most, of all chains together; 0: by the number of nodes
    int num_threads;             // 0 or 1: the calling one only
    const atomic_bool *end_soon; // set from elsewhere: no further rounds; or NULL
} PlacementOptions;

typedef struct {
    const NodeOrder *order;     // the best found; NULL: the nodes' own, than which none is better
    Plan plan;                  // with that order
    Estimate estimate;          // of that plan
    double default_step_time_s; // in the nodes' own order
    double bound_step_time_s;   // no placement has less
    double still_step_time_s;   // were links between nodes endless: what no placement changes
    double gap_frac;            // of the step over the bound
    int64_t num_moves;          // tried
    int num_nodes;
} PlacementResult;

// Why placements of a scenario are all alike, or not searched, in words that follow "because";
// NULL where they are searched.
const char *placement_obstacle(const Scenario *scenario);

// Searches for the best placement of a plan. Only where there is no obstacle.
Status placement_search(const Scenario *scenario, const Plan *plan, const PlacementOptions *options,
                        Arena *arena, PlacementResult *out);

// The scenario with its nodes in that order (NULL: their own).
Scenario placement_scenario(const Scenario *scenario, const NodeOrder *order);
