// sim/sim.h - plays a scenario in the network simulator, which runs as a process of its own.
//
// meshwright-sim (SimGrid) is started with the document on its standard input, reads and prices it
// as this program does, and answers with one JSON document. It is looked for in the environment's
// MESHWRIGHT_SIM, beside this executable, in ../libexec/meshwright and on the PATH.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum {
    SIM_KEEP_NONE,
    SIM_KEEP_LAST, // of one GPU per stage, in the lane that ends last
    SIM_KEEP_ALL,  // of all simulated GPUs, in a file: sim_times_read
} SimKeep;

typedef struct {
    const char *fold;    // "auto", "none", "tp", "full", "approximate"; NULL is "auto"
    int num_repetitions; // of what chance disturbs; 0 is 1
    double timeout_s;    // of wall time, after which the simulator is stopped; 0: none
    SimKeep keep;        // times of instructions
    bool stepwise;       // collectives step by step instead of as flows: a check, slow
} SimOptions;

typedef struct {
    const char *name;        // "nic:3.2 out", "leaf:0 up", "nvlink:17 in"
    double utilization_frac; // bytes carried over what it could carry in the step
} SimLink;

// What disturbances cost, over repetitions with draws of their own.
typedef struct {
    int num_repetitions; // 0: nothing is disturbed and one repetition was asked for
    double undisturbed_step_time_s;
    double mean_step_time_s;
    double p95_step_time_s;                   // 95th percentile
    double stragglers_s, jitter_s, network_s; // add up to the mean less the undisturbed
    const double *step_times_s;               // [num_repetitions]
} SimDisturbed;

// Why the step takes another time than the estimate's; adds up to the difference of the two. What
// each is: sim/difference.h, sim/repetition.h.
typedef struct {
    double model_s, spare_bandwidth_s, contention_s;
    double stragglers_s, jitter_s, network_s; // 0 where nothing is disturbed
} SimDifference;

// An instruction of the critical path (sim/critical_path.h).
typedef struct {
    int rank, stage;         // its GPU, and the pipeline stage of that
    const char *instruction; // "forward", "send", ...; of a collective its name
    int chunk, microbatch;   // -1: none
    double start_s, end_s;
} SimPathItem;

typedef struct {
    const char *kind; // "forward", "message_latency", "message_transfer", ...
    int count;
    double simulated_s, estimated_s;
} SimPathTotal;

typedef struct {
    const SimPathTotal *totals; // [num_totals] simulated_s adds up to the step
    int num_totals;
    double slack_s;
    int num_instructions;     // of the path
    const SimPathItem *items; // [num_items] by time; the first of them where there are very many
    int num_items;
} SimPath;

typedef struct {
    double step_time_s; // the mean over the repetitions; all below `disturbed` is of the first
    double estimate_step_time_s; // of the same plan, by the cost model
    SimDifference difference;
    SimDisturbed disturbed;
    int64_t num_activities;
    const char *folding;        // "none", "tp", "full" or "approximate"
    const char *folding_reason; // a sentence
    // Time that flows took beyond (or below) what the estimate grants them, over the latter's sum.
    double flow_lost_frac, flow_gained_frac;
    bool contended;                // some flow took 1 % longer: the estimate need not agree
    const char *const *not_played; // [num_not_played] sentences: what no disturbed link slows
    int num_not_played;
    const SimLink *links; // [num_links] busiest first
    int num_links;
    SimPath path;
    double wall_s; // of the simulator's process

    int num_folded;     // tensor-parallel ranks that one simulated GPU (a lane) stands for
    int num_lanes;      // simulated GPUs of a stage; replica r of it is in lane
                        // sim_lane_of(result, r)
    const int *lane_of; // [num_blocks] the lane of each block of num_folded replicas; NULL: they
    int num_blocks;     // are in lanes 0 .. num_lanes - 1 in turn
    int last_lane;      // the one that ends last

    // With `keep`, of the GPU of each pipeline rank that is in the last lane:
    int num_ranks;
    const int *num_instructions;  // [num_ranks]
    const double *const *start_s; // [num_ranks][num_instructions]; NULL without `keep`
    const double *const *end_s;   // the same
    SimKeep kept;
    FILE *times; // of all simulated GPUs, or of those above; closed with the arena
} SimResult;

// Simulates a scenario or plan.json whose `parallel` is what to play.
//   document  as read, or as plan_document() makes it
//   file      its name, for messages and for paths relative to it
// Failures: the simulator's own refusals of the document (as estimate_plan's), and STATUS_MACHINE
// where it is missing, was stopped by the time limit, crashed or answered nonsense.
Status sim_run(const cJSON *document, const char *file, const SimOptions *options, Arena *arena,
               SimResult *out);

// The lane that shows what a replica (a GPU's place in its stage) does.
int sim_lane_of(const SimResult *result, int replica);

// Reads the times of one GPU, [num_instructions] of its stage. Without SIM_KEEP_ALL only of those
// in the last lane. Fails (STATUS_MACHINE) where the file cannot be read.
Status sim_times_read(const SimResult *result, int stage, int lane, double *start_s, double *end_s);

// The answer of `simulate --json`; `timing` is last. The caller owns the tree.
cJSON *sim_result_to_json(const SimResult *result);

// Of that answer the list `critical_path.totals`: [{"kind", "count", "simulated_s",
// "estimated_s"}]. The caller owns it.
cJSON *sim_path_totals_to_json(const SimPath *path);
