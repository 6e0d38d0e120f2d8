// planner/harvest/best.h - the best K plans priced so far.
#pragma once

#include "planner/harvest/harvest.h"

typedef struct {
    Candidate candidate;
    Estimate estimate;
    double value;
} Priced;

typedef struct {
    Priced *items; // [num_items], best first
    int num_items, top;
    bool distinct;      // of plans that are variants of each other only the best
    double worst_value; // what is beyond is not kept; 0: everything may be
} Best;

// Keeps a price if it is among the best K. Of plans that differ in nothing but how many layers they
// recompute in the same way (none, the first k of each stage, all) only the best is one of them.
void best_insert(Best *best, const Priced *priced);

// A value above it cannot enter any more; INFINITY while fewer than K are known and all are wanted.
double best_value_limit(const Best *best);

// A value above which this plan cannot enter: never more than best_value_limit. In a list of
// distinct plans only something better takes the place of the best of its variants.
double best_plan_limit(const Best *best, const Plan *plan);

// Whether a candidate with these bounds cannot enter any more.
bool best_excludes(const Best *best, const Candidate *candidate);

// Plans that split and run the job alike and differ in fine points: chunks, schedule, ZeRO stage
// and group, cp_method, order of ranks.
bool plans_are_variants(const Plan *a, const Plan *b);

// Plans that are the same but for how many layers they recompute: none or some in full, or some
// selectively.
bool plans_differ_in_layers(const Plan *a, const Plan *b);
