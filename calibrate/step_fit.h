// calibrate/step_fit.h - fits whole-step parameters to published steps, robustly, and says how well
// families that were left out are predicted.
//
// Model:  log measured - log predicted = sum_p slope_p d_p + error, d_p the change of the log of
//         parameter p; Gauss-Newton with the steps predicted anew, errors weighted by Huber
//         (1.345 robust standard deviations), every family as much as every other: a row counts one
//         over the rows of its family. A parameter that no step tells stays where it is: its log
//         factor is held with a standard deviation of 2 against errors of the robust one.
// Left out: the fit again without a family, at the slopes of the whole fit; the spread of a value
//         is the jackknife's over families (Efron and Stein, Ann. Statist. 9(3), 1981).
// Source: Huber, "Robust Estimation of a Location Parameter", Ann. Math. Statist. 35(1), 1964.
#pragma once

#include "calibrate/step_rows.h"

typedef struct {
    const char *name;
    int num_rows;
    double included_frac; // mean |predicted / measured - 1| with the fit of all families
    double left_out_frac; // with the fit of the others
    double before_frac;   // with the values in the files
} StepFamily;

typedef struct {
    double spread; // of the log factor over families left out; NAN where only one has it
    int num_rows, num_families; // that move with it: a slope of 0.01 or more
} StepParameterFit;

typedef struct {
    StepRows rows; // predicted with the fitted parameters
    StepParameterFit parameters[STEP_MAX_PARAMETERS];
    const StepFamily *families; // [num_families] in alphabetical order
    int num_families;
    const double
        *in_files; // [num_rows] log of measured over predicted with the values in the files
    const double *left_out; // [num_rows] the same, family left out
    double scale;           // robust standard deviation of the errors
} StepFit;

Status step_fit(const PublishedCase *published, int num_cases, ValidateProgress progress,
                void *context, Arena *arena, StepFit *out);
