// whatif/goodput.h - what failures leave of a job: how often to write a checkpoint, the share of
// the time that is progress, and how many spare nodes are worth their price.
//
// Method: the checkpoint is the weights and the optimizer's state of the whole model by the memory
//         account (costmodel/memory/memory.h), written to and read from storage at its bandwidth
//         while the job stands still. The best interval by Young's and Daly's formulas
//         (whatif/checkpoint.h), and of whole steps by playing runs (whatif/failures.h) around
//         them.
// Defaults, each with its source:
//   failures   419 unexpected interruptions in 54 days on 16,384 GPUs: 1.97e-5 per GPU-hour.
//              Llama Team, "The Llama 3 Herd of Models", arXiv:2407.21783, 2024, section 3.3.4.
//   hardware   78 % of them, confirmed or suspected: the same. These take a node out.
//   storage    2 TB/s sustained for 16,384 GPUs, as much for each: the same, section 3.3.1.
//   restart    600 s to find the failure, test the nodes and start again. Jiang et al., "MegaScale:
//              Scaling Large Language Model Training to More Than 10,000 GPUs", NSDI 2024: found
//              and diagnosed in less than ten minutes. Reading the checkpoint comes on top.
//   repair     24 hours until a node is back: an assumption, no source states one.
// Limits: a constant failure rate per GPU. Failures that stop no job, slow nodes and planned
//         interruptions do not count. No checkpoint is written beside the computation, which makes
//         the answer a careful one for stacks that do.
#pragma once

#include "base/json.h"
#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"
#include "whatif/checkpoint.h"
#include "whatif/failures.h"

static const double GOODPUT_FAILURES_PER_GPU_HOUR = 419.0 / (54 * 24 * 16384.0);
static const double GOODPUT_HARDWARE_FRAC = 0.78;
static const double GOODPUT_STORAGE_BYTES_PER_S_PER_GPU = 2e12 / 16384;
static const double GOODPUT_RESTART_S = 600;
static const double GOODPUT_REPAIR_S = 24 * 3600;
static const double GOODPUT_DAYS = 30;

enum { GOODPUT_MIN_RUNS = 200, GOODPUT_MAX_RUNS = 20000, GOODPUT_MAX_INTERVALS = 41 };
static const double GOODPUT_FAILURES = 30000; // played for each interval, if so many runs are not
                                              // fewer or more than the two above

// What is known about failures; negative members take their default.
typedef struct {
    double failures_per_gpu_hour;
    double hardware_frac;
    double storage_bytes_per_s; // of all of it together
    double restart_s;           // without reading the checkpoint
    double repair_s;
    double checkpoint_bytes;
    double num_tokens; // of the run that is played; negative: as many as GOODPUT_DAYS hold
    int num_spares;    // of the run that is played; negative: the best number
    int num_runs;      // 0: for GOODPUT_FAILURES
    int num_threads;
    uint64_t seed;
} GoodputOptions;

GoodputOptions goodput_defaults(void);

// One interval that was played.
typedef struct {
    int64_t num_steps;
    double interval_s;
    double formula_frac;    // Daly's, with a node always there
    FailureStatistics runs; // played with a node always there
} GoodputInterval;

typedef struct {
    GoodputOptions used; // with the defaults filled in
    int num_gpus, num_nodes;
    double step_time_s, mtbf_s;
    double checkpoint_bytes, write_s, restart_s; // of reading it too
    double young_s, daly_s;
    GoodputShares daly;                               // at daly_s
    GoodputInterval intervals[GOODPUT_MAX_INTERVALS]; // rising
    int num_intervals, best;                          // by playing
    double load;                                      // nodes under repair
    int best_spares;
    double available_frac; // with that many
    double without_spares_frac;
    FailureStatistics whole; // the best interval with used.num_spares, waiting included
    double goodput_frac;     // by the formulas: Daly's at the best interval, times available
    double num_steps;        // of a run
} Goodput;

// Bytes of weights and optimizer of the whole model, once.
Status goodput_checkpoint_bytes(const Scenario *scenario, Arena *arena, double *out);

// Of a plan and its price.
Status goodput_run(const Scenario *scenario, const Estimate *estimate,
                   const GoodputOptions *options, Goodput *out);

// The member "goodput" of an answer. The caller owns the tree.
cJSON *goodput_to_json(const Goodput *goodput);
