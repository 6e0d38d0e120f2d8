// costmodel/step/interval.h - the 80 % interval of a step, from what each part of it is uncertain
// by.
//
// Model:  the one of config/job/calibration.h. The log of the step has the variance
//           s' C s + sum (s_k run_k)^2 + s_products^2 (kernels^2 + inherited^2) + s_across^2
//           (octaves octave_spread)^2
//           + step_spread^2 + other^2
//         with s the shares of the parts, C the covariance of their log factors and run_k what
//         every run adds to them. The interval is step x exp(+-1.2816 sqrt(variance)): a normal law
//         leaves 10 % on either side.
// kernels   of the GPU's products: the spread of its fit's residuals on left-out shapes (90th
//           percentile over 1.645), once more for each octave by which the step's products, by
//           flops, lie outside the measured range; over sqrt(4), as the four linear layers of a
//           layer are of different shapes. Where products were not measured, the residual of the
//           compact formula (config/machine/gpu.h).
// inherited where the GPU takes a relative's measured kernels: Calibration.inherited_spread.
// other     where no published step is like the plan (config/job/evidence.h), and no run of one's
// own
//           was taken: Evidence.other_step_spread.
// octaves   by how many doublings the nodes of the scenario exceed those of the measured runs.
// Source: Gelman et al., "Bayesian Data Analysis", 3rd ed., section 14.2 (linear normal model).
#pragma once

#include "config/job/scenario.h"
#include "plan/plan.h"
#include "workload/pass/block.h"

// The share of that variance that is not in the calibration's covariance and step_spread: what is
// known of this GPU's kernels, shapes and number of nodes.
double interval_known_variance(const Scenario *scenario, const Plan *plan, const Workload *workload,
                               const double *part_s, double step_time_s);

// Both ends of the interval.
//   known_variance  as above
void interval_set(const Calibration *calibration, const double *part_s, double known_variance,
                  double step_time_s, double *low_s, double *high_s);

// What no other run of the machine tells: sum (s_k run_k)^2 + step_spread^2.
double interval_run_variance(const Calibration *calibration, const double *part_s,
                             double step_time_s);

// That, and what the fit leaves unknown: + s' C s.
double interval_variance(const Calibration *calibration, const double *part_s, double step_time_s);
