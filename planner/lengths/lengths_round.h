// planner/lengths/lengths_round.h - one round: a layout of groups, and a pack for each.
//
// Method: for a given layout the sequences, longest first, go each to the group that ends first
//         with it (Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17(2),
//         1969, for machines that differ). Layouts are improved by splitting groups and joining
//         them, as long as the round gets shorter.
#pragma once

#include "planner/lengths/lengths_problem.h"

// What rounds of one problem are worked out with; not shared by threads.
typedef struct {
    const LengthsProblem *problem;
    double *tokens, *work_s; // [num_places] of each group
    int *size;               // [num_places] its index
    int *heap;               // [num_places] groups, those of one size together: a binary heap of
                             // the least work
    int *first;              // [num_sizes + 1] where the heap of a size begins
    int *layout, *trial;     // [num_sizes]
    double num_looks, end_looks; // groups looked at so far, and when to end improving
} LengthsRounder;

LengthsRounder lengths_rounder(const LengthsProblem *problem, Arena *arena);

// Seconds of a round.
//   layout  [num_sizes] how many groups of each size; at most num_places places in all
//   counts  [num_buckets] the sequences
//   returns INFINITY where they do not fit
double lengths_layout_s(LengthsRounder *rounder, const int *layout, const int *counts);

// The shortest round found, from this layout on, with the looks that are left.
//   layout   [num_sizes] start, and the layout found
//   returns  its seconds; INFINITY where none was found that holds the sequences
double lengths_layout_improve(LengthsRounder *rounder, const int *counts, int *layout);

// The packs behind lengths_layout_s.
LengthsRound lengths_round_build(LengthsRounder *rounder, const int *layout, const int *counts,
                                 Arena *arena);
