// calibrate/run_update.h - what one measured run tells of the parts of a step.
//
// Model:  log t_measured = log t(theta) + e, theta ~ N(prior), e ~ N(0, noise) with noise = what
//         every run has of its own (interval_run_variance) + what is known to be uncertain of this
//         step (costmodel/interval.h) + the variance of the log's median. t(theta) is the estimate
//         with the factors exp(theta), overlap worked out anew.
// Method: the iterated extended Kalman filter: linear in theta at the last iterate, slopes by
//         central differences; in a linear case one step is exact:
//           K = C s / (s' C s + noise),  theta = theta0 + K (log t_measured - log t(theta0)),
//           C' = C - K s' C.
// Source: Bell and Cathey, "The iterated Kalman filter update as a Gauss-Newton method", IEEE
//         Trans. Automatic Control 38(2), 1993.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/scenario.h"
#include "costmodel/estimate.h"

typedef struct {
    Calibration posterior;
    Estimate before, after;  // with the scenario's calibration, and with the posterior
    double slope[NUM_PARTS]; // of the log of the step over theta, at the posterior
} RunUpdate;

// Updates the scenario's calibration by a run that took measured_s a step.
//   median_variance  of the log of measured_s
Status run_update(const Scenario *scenario, const Plan *plan, double measured_s,
                  double median_variance, RunUpdate *out);

// The linear step: prior means and covariance become the posterior's.
//   error  of the log measured, over the prediction at the prior means
void run_update_linear(const double *slope, double error, double noise, double *mean,
                       double covariance[NUM_PARTS][NUM_PARTS]);
