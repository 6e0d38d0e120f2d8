// calibrate/run_pairs.h - does calibrating on one run make the prediction of another better?
//
// Pairs:  two published steps of one family on one GPU type: the same machine, software and
// authors.
//         Each step of such a group of n calibrates (calibrate/run_update.h). The next and the (n /
//         2)th after it, in the order of the file and round at its end, are predicted before and
//         after.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "calibrate/published.h"
#include "calibrate/validate.h"

typedef struct {
    const char *family; // NULL: all
    int num_pairs;
    double before_median_frac, after_median_frac; // |predicted / measured - 1|
    double before_mean_frac, after_mean_frac;
    double before_inside_frac, after_inside_frac; // in the 80 % interval
    double before_width_frac, after_width_frac;   // median of high / low - 1
} PairsScore;

typedef struct {
    const PairsScore *families; // [num_families] in alphabetical order
    int num_families;
    PairsScore all;
    // Of families with 8 pairs or more; NAN where there is none: means of their mean errors, and
    // the median of what calibrating adds to them, which one family cannot turn.
    double before_families_frac, after_families_frac, change_median_frac;
} PairsResult;

// Steps that are refused or do not state everything are left out.
Status run_pairs(const PublishedCase *published, int num_cases, ValidateProgress progress,
                 void *context, Arena *arena, PairsResult *out);
