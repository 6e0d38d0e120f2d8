// runtime/step_log.h - what is said of each step: a line on standard output and one of JSON.
#pragma once

#include "backend/backend.h"
#include "config/job/scenario.h"
#include "runtime/expert_load.h"
#include "runtime/update.h"

#include <stdio.h>

typedef struct {
    bool speaks; // one process of a run does
    FILE *file;  // of JSON lines; NULL: none
    const char *path;
} StepLog;

typedef struct {
    int64_t step; // from 1
    StepValues values;
    double step_time_s;        // from the upload of the tokens to the last update
    double tokens_per_s;       // of the whole run
    double memory_peak_bytes;  // allocated so far by the process that had most
    double program_peak_bytes; // the same by the Program's account
    double memory_off_frac;    // |allocated / account - 1| of the process where it is largest
    ExpertImbalance imbalance; // of learned routing over ep; else zeroed
} StepLine;

// path NULL: no file.
//   goes_on  behind what is there: the training was resumed
Status step_log_open(const char *path, bool goes_on, bool speaks, StepLog *out);
Status step_log_write(StepLog *log, const StepLine *line);
Status step_log_close(StepLog *log); // accepts a zeroed one

// What runs, before the first step.
void step_log_head(const Scenario *scenario, const char *plan, const Backend *backend);
