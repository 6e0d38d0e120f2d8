// planner/layer_choice.h - the best strategies of all layers of one combination: plans that share
// pp, the split of layers, ep, etp and the sequences of a micro-batch.
//
// Each stage is chosen for itself (planner/layer_stage.h): stages share no memory, and their
// messages keep to the base. Bases are the best strategies throughout of the three best layouts.
// The step is the critical path of the base's Program with the chunks' prices exchanged for the
// sums of their layers'. Where layers differ in recomputation alone, the plan itself is estimated
// too.
#pragma once

#include "costmodel/estimate.h"
#include "planner/layer_stage.h"

typedef struct {
    Plan base;             // what layers that differ in nothing do
    const Plan *layers;    // [num_layers] the plan of each layer's strategy
    double uniform_step_s; // estimate of the best plan with one strategy; INFINITY: none fits
    Plan uniform;          // that plan
    double step_time_s;    // predicted
    double memory_device_bytes, memory_available_bytes; // of the stage nearest to its limit
    bool optimal;                                       // every stage's choice is proven
    double gap_frac;                                    // of stage time, at most, where it is not
    bool estimated; // plan and estimate are set: estimate can price it
    Plan plan;
    Estimate estimate;
    double cost_error_frac; // of the sum of costs against the estimate, where there is one
    int num_strategies, num_layouts;
    int64_t num_states; // of the dynamic programs
} LayerChoice;

// The best of a combination.
//   plans    [num_plans] as planner/layer_stage.h says, with one chunk a rank and 1f1b or gpipe
//   returns  whether anything fits; *out lives in arena
bool layer_choose(const Scenario *scenario, const Plan *plans, int num_plans, Arena *arena,
                  LayerChoice *out);

// Writes the integer program of the stage of a choice that takes longest.
Status layer_choice_write_lp(const Scenario *scenario, const Plan *plans, int num_plans,
                             const LayerChoice *choice, const char *path);
