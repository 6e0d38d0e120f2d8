// report/report.h - answers as text for people. Figures are those of the JSON answers, rounded.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"
#include "planner/layerwise/layer_search.h"
#include "planner/planner.h"

#include <stdio.h>

// The job's name where it has one of its own, then
// "llama-3.1-70b (70.6 G parameters) on 128 x h100-sxm-80g, ...": what the question was.
const char *report_question(const Scenario *scenario, Arena *arena);

// "after the run of train.log (ours.json)": the scenario's own calibration; NULL for none.
const char *report_calibration(const Scenario *scenario, Arena *arena);

// The price of one plan: figures, breakdown of the step, memory of the worst rank.
void report_estimate(const Scenario *scenario, const Plan *plan, const Estimate *estimate,
                     FILE *stream);

// The best plans of a search, why the runners-up lose, and what was searched. Where nothing fits:
// the closest miss and what would fit.
void report_plans(const Scenario *scenario, const PlannerResult *result, FILE *stream);

// The Pareto frontier: each plan that no other beats on all axes, fastest first.
void report_frontier(const Scenario *scenario, const PlannerResult *result, FILE *stream);

// A sentence by itself, wrapped.
void report_line(const char *text, FILE *stream);

// The best combinations with a strategy a layer, run by run, against one strategy throughout.
void report_layers(const Scenario *scenario, const LayerResult *result, FILE *stream);

// The exposed ones of NUM_TERMS terms of a step, largest first, as shares of the step: "bubble 4.1
// %, tp 3.0 %"; "nothing" where all are below one tenth of a per cent.
const char *report_exposed(const double *term_s, double step_time_s, Arena *arena);

// "3.95 USD a GPU hour (list and date)": what the dollars of an answer rest on; NULL: no price.
const char *report_price(const Estimate *estimate, Arena *arena);
