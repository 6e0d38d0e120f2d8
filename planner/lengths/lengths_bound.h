// planner/lengths/lengths_bound.h - the linear program of planner/lengths/lengths_problem.h, solved
// by GLPK.
//
// Program: the relaxation of the model over a whole step, in GPU-seconds. With x[i][d] sequences of
//          bucket i on groups of size d, g[d] packs of that size and W seconds of all places:
//            sum over d of x[i][d]                              = n[i]      every sequence runs
//            sum over i of tokens[i][d] x[i][d]                <= capacity[d] g[d]      memory
//            sum over d of size[d] (fixed[d] g[d] + sum over i of sequence[i][d] x[i][d]) <= W
//            sum over d of size[d] floor[d] g[d]               <= W
//          least W. No schedule is shorter than W / num_places; nor than its longest sequence alone
//          on the group that runs it fastest and, of as many rounds as the memory of all places
//          makes necessary, the floors of the others.
// Source:  Wang et al. 2025 (lengths_problem.h), equations of section 4.1 with groups of one size
//          added up, so that groups that are alike are not symmetric variables, and over all
//          micro-batches at once.
#pragma once

#include "planner/lengths/lengths_problem.h"

typedef struct {
    double step_time_s; // no schedule is shorter
    double *packs;      // [num_sizes] of each size in the program's solution, fractional
} LengthsBound;

// Rounds below which the memory of all places cannot hold the sequences; at least 1.
int lengths_fewest_rounds(const LengthsProblem *problem, const int *counts);

// Every sequence fits on some size.
//   counts  [num_buckets] the sequences
LengthsBound lengths_bound(const LengthsProblem *problem, const int *counts, Arena *arena);
