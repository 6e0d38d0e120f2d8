// cli/run/run_compare.h - a run of the bundled runtime beside what was predicted and simulated.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/plan.h"

#include <stdbool.h>

typedef struct {
    const char *log;   // of the run: a JSON line a step
    const char *times; // of its instructions (base/times_file.h)
    const char *trace; // Chrome trace to write; NULL: none
    bool prints, json; // the comparison, for people or as JSON
} RunCompare;

// Simulates the plan where meshwright-sim is there, says so on standard error where it is not.
Status run_compare(const RunCompare *compare, const Scenario *scenario, const Plan *plan,
                   Arena *arena);
