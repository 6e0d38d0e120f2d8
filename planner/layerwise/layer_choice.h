// planner/layerwise/layer_choice.h - the best strategies of all layers of one combination: plans
// that share pp, the split of layers, ep, etp and the sequences of a micro-batch.
//
// Each stage is chosen for itself (planner/layerwise/layer_stage.h): stages share no memory, and
// their messages keep to the base. Bases are the best strategies throughout of the best pairs of
// layout and ZeRO stage. Each choice is a plan (plan/layer_plans.h), which is estimated; where it
// needs other bytes than its costs said, the stages are chosen again with that much more or less
// memory. The answer is the fastest of these plans and of those with one strategy throughout.
#pragma once

#include "base/deadline.h"
#include "costmodel/step/estimate.h"
#include "planner/layerwise/layer_stage.h"

typedef struct {
    Plan base;             // what layers that differ in nothing do
    const Plan *layers;    // [num_layers] the plan of each layer's strategy
    double uniform_step_s; // estimate of the best plan with one strategy; INFINITY: none fits
    Plan uniform;          // that plan
    bool is_uniform;       // the answer is the best plan of the whole search with one strategy
    Plan plan;
    Estimate estimate;
    bool optimal;           // every stage's choice is proven
    double gap_frac;        // of stage time, at most, where it is not
    double cost_error_frac; // of the sum of costs against the estimate
    int num_strategies, num_layouts;
    int64_t num_states; // of the dynamic programs
} LayerChoice;

// The best of a combination.
//   limit_s  slower ones need not be found; INFINITY: there is no such limit
//   plans    [num_plans] as planner/layerwise/layer_stage.h says, with one chunk a rank and 1f1b or
//   gpipe deadline  when it is over the best so far is taken, and not proven; NULL: none returns
//   whether anything fits; *out lives in arena, but for what is of plans
bool layer_choose(const Scenario *scenario, const Plan *plans, int num_plans, double limit_s,
                  Deadline *deadline, Arena *arena, LayerChoice *out);

// Writes the integer program of the stage of a choice that takes longest.
Status layer_choice_write_lp(const Scenario *scenario, const Plan *plans, int num_plans,
                             const LayerChoice *choice, const char *path);
