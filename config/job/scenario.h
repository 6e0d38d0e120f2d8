// config/job/scenario.h - one scenario document (CONTRACT.md), read and checked.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster/cluster.h"
#include "config/job/calibration.h"
#include "config/job/disturb.h"
#include "config/job/evidence.h"
#include "config/job/parallel.h"
#include "config/job/training.h"
#include "config/model/model.h"
#include "config/software/execution.h"
#include "config/software/rule_variables.h"

typedef struct {
    const char *file; // as named by the user
    const char *name; // of the job: its own, or its model's
    Model model;
    Cluster cluster;
    Execution execution;
    TrainingJob training;
    ParallelSpec parallel;
    const Calibration *calibration; // the bundled one, or that of the key `calibration`; NULL in
                                    // a scenario that was not read: factors 1, no spread
    const Disturb *disturb;         // [num_disturb] acted upon by the simulator
    int num_disturb;
    const Evidence *evidence; // NULL in a scenario that was not read: memory is certain
    double fit_deviates; // not read: by how many times its spread a plan's memory has to be less
                         // than there is; 0: it fits with a probability of a half

    RuleSet undecided; // not read: variables that rules are not to look at, for bounds of searches
                       // over switches (planner/questions/tune.h)

    const cJSON *document;       // the whole document, as read
    const cJSON *model_document; // the model as an object or preset name, never a path
} Scenario;

// Reads a scenario or plan.json; "-" is standard input.
Status scenario_load(const char *path, Arena *arena, Scenario *out);

// Reads a scenario from a parsed document; root and arena must outlive it.
Status scenario_read(const JsonNode *root, Arena *arena, Scenario *out);

// Reads one that takes its measured kernels from a shelf (config/software/kernel_shelf.h), which
// must outlive it.
Status scenario_read_shared(const JsonNode *root, struct KernelShelf *shelf, Arena *arena,
                            Scenario *out);

// The names of its GPUs, as a calibration states them: "h100-sxm-80g", or with groups of several
// "h100-sxm-80g + a100-sxm-80g", in their order.
const char *scenario_gpus(const Scenario *scenario, Arena *arena);

// Refuses, in the contract's words, what is legal but nothing acts upon yet. This is disturb,
// anything but recompute of layers, placement on groups of different machines, and 8 bits on groups
// of different architectures. It is also sequence_lengths, upon which only `plan` acts
// (planner/lengths/lengths.h).
Status scenario_refuse_unsupported(const Scenario *scenario);

// Refuses what a simulation does not act upon. Unlike the others it takes disturb, but it begins a
// step on all ranks together.
Status scenario_refuse_unsimulated(const Scenario *scenario);

// Refuses groups of different machines; what: the command that cannot take them.
Status scenario_refuse_unlike_groups(const Scenario *scenario, const char *what);
