// costmodel/step/estimate.h - the answer of the contract for one plan.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "costmodel/memory/memory.h"
#include "costmodel/step/timeline.h"
#include "plan/plan.h"

typedef struct {
    double step_time_s, step_time_low_s, step_time_high_s; // 80 % interval
    double tokens_per_s, tokens_per_s_per_gpu;
    double model_flops_per_s_per_gpu;
    double trained_parameters; // of the model with its adapters; 0: all
    double mfu_frac;
    double usd_per_1e9_tokens;
    double joules_per_token;
    double price_usd_per_gpu_hour; // of the mean GPU
    const char *price_source;      // of that price; NULL: not known
    int idle_gpus;     // of the cluster's; paid for, but in no figure per GPU and without energy
    RankMemory memory; // of the worst rank
    int memory_rank;   // which pipeline rank that is
    double memory_available_bytes;
    double memory_low_bytes, memory_high_bytes; // 80 % interval of memory.device_bytes
    double fits_probability_frac;               // costmodel/memory/memory_interval.h
    bool fits; // as surely as the scenario asks (fit_deviates): else with a half or more
    const Evidence *evidence; // of the job, and what the plan adds: why its figures are
    Ingredients ingredients;  // extrapolated, where they are (evidence_covers)
    double term_s[NUM_TERMS]; // breakdown; adds up to step_time_s
    double part_s[NUM_PARTS]; // the same seconds by what predicts them (config/job/calibration.h)
    double known_variance;    // of the log of the step (costmodel/step/interval.h)
} Estimate;

// What estimate_plan built on the way, for those that show or play it.
typedef struct {
    Workload workload;
    Program program;
    Prices prices;
    Timeline timeline;
} EstimateParts;

// Prices one plan. parts may be NULL; otherwise it is filled, with times kept.
Status estimate_plan(const Scenario *scenario, const Plan *plan, Arena *arena, Estimate *out,
                     EstimateParts *parts);

// Memory alone, in closed form: whether the plan fits, and by how much it misses.
//   returns the worst rank's account; *missing_bytes is > 0 where it does not fit
RankMemory estimate_memory(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           double *missing_bytes);

// No plan of a scenario is faster: a step whose model FLOPs run at the peak of all GPUs.
double estimate_least_step_s(const Scenario *scenario);

// Less than any Program of this plan can take: the busiest rank's compute, its unavoidable
// messages and the pipeline's fill and drain.
double estimate_lower_bound_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              const Prices *prices);

// The parts of an account as `memory_bytes` of the contract has them. The caller owns the tree.
cJSON *memory_parts_to_json(const RankMemory *account);

// The answer object of the contract. The caller owns the tree.
cJSON *estimate_to_json(const Estimate *estimate, const Plan *plan);
