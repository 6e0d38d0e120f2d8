// calibrate/fit.h - robust fits in log space: a few physical parameters, and scores of a fit.
//
// Model:  target_i ~ model(i, parameters), both natural logs of seconds; the loss of an error e is
//         that of Huber, e^2/2 up to FIT_HUBER and linear beyond, so that outliers pull with a
//         bounded force.
// Source: Huber, "Robust Estimation of a Location Parameter", Ann. Math. Statist. 35(1), 1964;
//         solvers: GSL, chapters "Nonlinear Least-Squares Fitting" and "Multidimensional
//         Minimization" (Nelder and Mead with the initial simplex along the axes: deterministic).
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define FIT_HUBER 0.05

enum { FIT_MAX_PARAMETERS = 24 };

// One parameter: searched between low and high, in log where log_scale (then low > 0).
typedef struct {
    const char *name;
    double start, low, high;
    bool log_scale;
} FitParameter;

// Natural log of the seconds of a row.
typedef double (*FitModel)(const void *context, int row, const double *parameters);

typedef struct {
    int num_rows;
    const double *target;  // [num_rows], log of measured seconds
    const double *weights; // [num_rows], or NULL for 1
    FitModel model;
    const void *context;
    int num_parameters; // 1 to FIT_MAX_PARAMETERS
    const FitParameter *parameters;
} FitProblem;

// Mean Huber loss of given parameters.
double fit_loss(const FitProblem *problem, const double *parameters);

// Nelder-Mead from the start values, restarted until it gains nothing: for models with minima and
// ceilings. values [num_parameters] receives the best. Rounded to 4 significant digits.
void fit_simplex(const FitProblem *problem, double *values);

// Levenberg-Marquardt with Huber weights (gsl_multifit_nlinear), from values, which it improves:
// for smooth models, faster. Leaves values where it finds nothing better.
void fit_gradient(const FitProblem *problem, double *values);

// To 4 significant digits, as profiles store numbers.
double fit_round(double value);

// The fold (0 to num_folds - 1) of every row: rows with equal keys share it. The distinct keys are
// dealt out in the order of a fixed hash, so that folds are equal in groups, spread, and the same
// on every run. Returns the number of distinct keys.
int fit_folds(int num_rows, const uint64_t *keys, int num_folds, int *folds);

// A key of numbers, for fit_folds.
uint64_t fit_key(const double *numbers, int num_numbers);

// How good predictions are: |predicted / measured - 1|, sorted; NAN predictions do not count.
typedef struct {
    int num_rows, num_priced;
    double median_frac, p90_frac;
    double bias_frac; // mean of predicted / measured - 1
} FitScore;

FitScore fit_score(int num_rows, const double *predicted_s, const double *measured_s);

// The score of some rows [num_rows] of longer predictions and measurements.
FitScore fit_score_rows(int num_rows, const int *rows, const double *predicted_s,
                        const double *measured_s);

// The order of two doubles, for qsort and bsearch.
int fit_compare(const void *a, const void *b);

// The median, between the two in the middle; NAN of none. Sorts.
double fit_median(double *values, int num_values);
