// profiler/wrap_report.h - what a wrapped program did on its GPUs: tables in a folder, and a
// summary.
#pragma once

#include "base/answer_folder.h"
#include "profiler/wrap_gaps.h"
#include "profiler/wrap_kernels.h"
#include "profiler/wrap_table.h"

#include <stdio.h>

typedef struct {
    const char *command; // as typed, in one line
    int exit_code;       // of the program
    int signal;          // that ended it; 0: none
} WrapOutcome;

typedef struct {
    WrapOutcome outcome;
    int num_processes;  // that left a file
    int num_incomplete; // that were killed: their last records are missing
    int64_t num_dropped;
    double overhead_s; // that CUPTI told of
    KernelTotals kernels;
    Gaps gaps;
    RangeTables ranges;
    const char *refused; // why a process could not be recorded; NULL: none
} WrapReport;

// Reads all files of the folder of records.
Status wrap_report_make(const char *records, WrapOutcome outcome, Arena *arena, WrapReport *out);

// Writes kernels.csv, gaps.csv and the tables of ranges into the folder.
Status wrap_report_write(const WrapReport *report, const AnswerSpec *spec, Arena *arena);

// Prints the summary, with the longest kernels, as text or as one JSON document.
void wrap_report_print(const WrapReport *report, FILE *stream);
Status wrap_report_print_json(const WrapReport *report, FILE *stream);
