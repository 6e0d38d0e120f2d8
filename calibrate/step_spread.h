// calibrate/step_spread.h - how uncertain each part of a step is, from the errors of published
// steps.
//
// Model:  the error of step i at site g (a family on one GPU) is sum_k share_ik theta_gk + e_i with
//         theta_gk ~ N(0, spread_k^2) drawn once for the site and e_i ~ N(0, step_spread^2 +
//         known + sum_k (share_ik run_spread_k)^2). Of all that a part varies by, the fraction
//         shared_frac_k is the site's. The spreads have the largest posterior density. It is made
//         of the likelihood of all sites, theta integrated out, in which a site counts as at most 8
//         steps. Each spread has a log-normal prior, a factor of 2 around STEP_SPREAD_PRIORS; the
//         shared_frac are uniform. Then all are multiplied by one factor so that 80 % of the steps,
//         each family alike, lie in the 80 % interval.
// Source: Harville, "Maximum likelihood approaches to variance component estimation", J. Amer.
//         Statist. Assoc. 72, 1977; the matrix lemma of Woodbury for the inverse.
#pragma once

#include "calibrate/step_rows.h"

typedef struct {
    double spread[NUM_PARTS], run_spread[NUM_PARTS];
    double shared_frac[NUM_PARTS]; // of both variances together
    double step_spread;
    double scale;       // what the last factor was
    double inside_frac; // of all steps, in the interval
    double num_nodes;   // the largest
    int num_sites;
} StepSpread;

extern const double STEP_SPREAD_PRIORS[NUM_PARTS + 1]; // of the parts, then of the step

// errors [rows->num_rows], log of measured over predicted.
StepSpread step_spread_fit(const StepRows *rows, const double *errors);

// The log density of one site at theta integrated out, up to a constant: of num_rows errors with
// shares [num_rows][NUM_PARTS] and their own variances, each counting `weight`.
double step_site_log_density(int num_rows, const double (*shares)[NUM_PARTS], const double *errors,
                             const double *variances, double weight, const double *spread);
