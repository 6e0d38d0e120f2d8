// calibrate/step_groups.h - the errors of a fit of published steps by what the jobs have in common,
// across families: a kind of model, a GPU, a tensor-parallel degree. A bias that a mean over
// families hides shows here.
#pragma once

#include "calibrate/step_fit.h"

typedef enum { STEP_BY_KIND, STEP_BY_GPU, STEP_BY_TP, NUM_STEP_BY } StepBy;

extern const char *const STEP_BY_NAMES[]; // "kind", "gpu", "tp"; ends with NULL

// Fewer rows than this say too little of a group.
enum { STEP_GROUP_LEAST_ROWS = 15 };

// Errors of the rows of a group, each as much as every other, of predicted / measured - 1.
typedef struct {
    double bias_frac; // mean
    double mean_frac; // mean of the absolute value
} StepErrors;

typedef struct {
    const char *name; // "dense", "h100-sxm-80g", "tp 8"
    int num_rows, num_families;
    StepErrors in_files; // with the values in the files
    StepErrors included; // with the fit of all families
    StepErrors left_out; // each row with the fit of the other families
} StepGroup;

// The groups of STEP_GROUP_LEAST_ROWS rows and more: kinds with the fewest experts first, GPUs by
// name, degrees from the smallest.
//   returns  how many
int step_groups(const StepFit *fit, StepBy by, Arena *arena, const StepGroup **out);
