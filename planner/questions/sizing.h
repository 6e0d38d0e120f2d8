// planner/questions/sizing.h - the fewest GPUs with which a step takes no longer than wanted.
//
// Method: whole nodes are doubled, from one on, until the best plan of that many is fast enough;
//         where none of them is, from 3, 5, ... on, the odd divisors of global_batch times those of
//         the layers, which data and pipeline parallelism divide. More GPUs are not always faster,
//         nor always legal, so every smaller number of whole nodes is then ruled out singly, from
//         the smallest on, by the first of these that does:
//           peak       fewer would have to compute above their peak rate
//           unfillable no tp x cp x dp x pp of the space fills them
//           bound      the loose bounds of all their configurations are above the time wanted
//           search     planner_search finds no plan within it
//         The first that none of them rules out is the answer, and proven to be the smallest.
// dp and zero_group follow the number of GPUs; other constraints are kept.
#pragma once

#include "planner/planner.h"

enum { SIZING_MAX_GPUS = 1 << 17, SIZING_MAX_ODD = 8, SIZING_MAX_TRIALS = 18 * SIZING_MAX_ODD + 2 };

// One number of GPUs of the doubling.
typedef struct {
    int num_gpus;
    double step_time_s; // of its best plan; INFINITY: nothing is legal, or fits
    bool is_proven;     // that plan is the best
} SizingTrial;

typedef struct {
    double wanted_step_time_s;
    int num_gpus;   // the fewest found; 0: none of the trials is fast enough
    bool is_proven; // no smaller number of whole nodes is fast enough
    int node_gpus;
    // Numbers of whole nodes below num_gpus, by what rules them out; they add up to all of them.
    int num_above_peak, num_unfillable, num_by_bound, num_by_search;
    int num_open; // not decided: the search was ended early; 0 where is_proven
    SizingTrial trials[SIZING_MAX_TRIALS];
    int num_trials;
    double wall_s;
} Sizing;

// Looks for the fewest GPUs of the scenario's kind of nodes. Of options top, objective and
// worst_value do not matter; with robust the upper end of the interval has to be fast enough;
// the budget is that of all searches together, once a number was found. With brief the trials ask
// only whether a plan is fast enough, so that the step times of those that are not stay unknown
// (INFINITY), and end_soon ends them too, with no number; three quarters and five or seven eighths
// of the number found are tried before all smaller ones.
// planner_search itself, which is not part of it, has the plans of that number.
//   returns  STATUS_OK, also where none is found; STATUS_INVALID where the cluster is of one size
//            only (joined groups, a measured matrix), and as planner_search
Status planner_size(const Scenario *scenario, double wanted_step_time_s,
                    const PlannerOptions *options, Sizing *out);

// What a whole run costs on the GPUs of a plan.
typedef struct {
    double num_steps; // whole ones
    double run_s, gpu_hours;
    double cost_usd;      // 0 where the price is not known
    double energy_joules; // 0 where the power is not known
} RunTotals;

// A run of so many tokens, the last step filled up.
RunTotals run_totals(const Scenario *scenario, const Estimate *estimate, double num_tokens);

// The member "sizing" of an answer. The caller owns the tree.
cJSON *sizing_to_json(const Sizing *sizing);
