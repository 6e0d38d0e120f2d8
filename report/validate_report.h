// report/validate_report.h - the scores of predictions as tables for people.
#pragma once

#include "calibrate/validate.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    bool assumed;                     // also the part that is not stated
    bool cases;                       // one line for every case
    const ValidateCase *const *worst; // [num_worst] shown with their breakdown
    int num_worst;
} ValidateReport;

// Scores by family, the cases asked for, and why cases were refused.
void report_validate(const ValidateResult *result, const ValidateReport *what, FILE *stream);
