// calibrate/run_update.h - what one measured run tells of the parts of a step.
//
// Model:  log t_measured = log t(theta) + e, theta ~ N(prior), e ~ N(0, noise) with noise = what
//         every run has of its own (interval_run_variance) + what is known to be uncertain of this
//         step (costmodel/step/interval.h) + the variance of the log's median. t(theta) is the
//         estimate with the factors exp(theta), overlap worked out anew.
// Method: which part the run speaks of is that of the linear model of config/job/calibration.h,
// with
//         the slopes s of log t at the prior (central differences):
//           theta = theta0 + a C s,  C' = C - C s s' C / (s' C s + noise),
//         and how far, a, solves  a noise + log t(theta0 + a C s) = log t_measured.  Where log t is
//         linear this is the Kalman update, a = error / (s' C s + noise); without noise the run is
//         met exactly; a, and so every factor, rises with t_measured.
// Limits: not the mode of the density of theta itself, which jumps: log t is convex in theta, so
//         that a part whose factor is free to grow takes over the step. With products 74 % and
//         attention 20 % of a step, a run 4.3 times as long has its mode at products 1.46,
//         attention 2.5; one 14 times as long at products 1.04, across (1 %) 535.
// Source: Anderson and Moore, "Optimal Filtering", 1979, section 3.1 (the update).
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"

typedef struct {
    Calibration posterior;
    Estimate before, after;  // with the scenario's calibration, and with the posterior
    double slope[NUM_PARTS]; // of the log of the step over theta, at the prior
} RunUpdate;

// Updates the scenario's calibration by a run that took measured_s a step.
//   median_variance  of the log of measured_s
Status run_update(const Scenario *scenario, const Plan *plan, double measured_s,
                  double median_variance, RunUpdate *out);

// The linear step: prior means and covariance become the posterior's.
//   error  of the log measured, over the prediction at the prior means
void run_update_linear(const double *slope, double error, double noise, double *mean,
                       double covariance[NUM_PARTS][NUM_PARTS]);
