// planner/why/robust.h - ranking plans by the upper end of their interval.
//
// Model:  the upper end is step_time_s x exp(z sqrt(variance)), and the variance is what the
//         calibration says of the shares s of the step's parts, s' Q s + step_spread^2 with
//         Q = C + diag(run_spread^2), plus what is known of the plan's kernels, which is not
//         negative (costmodel/step/interval.h). Shares add up to 1, so no plan has a narrower
//         interval than the least of that form over all such shares: a lower bound of the step time
//         times this least raise is one of the upper end, and the search stays exact.
// Source: Frank and Wolfe, "An algorithm for quadratic programming", Naval Research Logistics
//         Quarterly 3, 1956; the form is convex, so f(s) + min_k grad_k - grad' s at any s is a
//         lower bound of its least value, which is what is used.
#pragma once

#include "config/job/calibration.h"
#include "costmodel/step/estimate.h"

// Upper end over step time: >= 1.
double robust_raise(const Estimate *estimate);

// No plan's raise is below; 1 without a calibration.
double robust_least_raise(const Calibration *calibration);
