// cli/plan/plan_options.h - the options of `plan`.
#pragma once

#include "cli/command.h"
#include "planner/planner.h"

#include <stdbool.h>

typedef struct {
    CommonOptions common;
    PlannerOptions planner;
    const char *folder;
    bool force; // of -o
    bool pareto;
    const char *compare;                // "tp=4,pp=8"; NULL
    const char *explain_rule;           // "cp=16"; NULL
    double min_tokens_per_s;            // of --min-gpus-for; 0
    double deadline_tokens, deadline_s; // of --deadline; 0
    bool layerwise;
    bool tune;
    PlacementOptions placement;
    const char *lp_file;                                 // of --write-lp; NULL
    bool has_top, has_objective, has_variants, has_seed; // stated
} PlanOptions;

// Reads the command line of `plan`. Refuses combinations that ask for two things at once.
Status plan_options_read(int argc, char **argv, PlanOptions *out);
