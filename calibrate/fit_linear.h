// calibrate/fit_linear.h - a time as a sum of costs, each in proportion to something counted.
//
// Model:  t_i = sum_j x_j a_ij, no x_j below 0, least sum of |relative errors|: outliers (another
//         program took the core) do not pull.
// Source: Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23 (what is not
//         bound solves the normal equations; here all subsets are tried, there are few);
//         Schlossmacher, J. Amer. Statist. Assoc. 68(344), 1973 (least absolute errors by
//         reweighted squares).
#pragma once

#include "base/arena.h"

enum { FIT_LINEAR_MAX = 5 };

//   a        [num_rows][num_costs], >= 0; num_costs <= FIT_LINEAR_MAX
//   times    [num_rows], > 0
//   costs    [num_costs] receives the x_j; all 0 without rows
void fit_linear(const double *a, const double *times, int num_rows, int num_costs, Arena *scratch,
                double *costs);
