// calibrate/validate.h - predicts published measurements and scores the predictions.
//
// Error:    predicted / measured - 1 of the step time. Where only the utilization is published, the
//           measured step is the one in which the predicted work reaches it.
// Families: a case counts once in its family and once in the whole set. The mean of families is
//           over those with 8 cases or more, so that no large family outweighs the others.
// Order:    Kendall's tau-a of predicted and measured step times (Kendall, "A new measure of rank
//           correlation", Biometrika 30, 1938) over the configurations of one job, which share
//           family, model, GPU, number of GPUs, sequence length and batch. It is the mean over jobs
//           of 4 or more. The regret is how much slower the one predicted fastest is than the
//           fastest.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "calibrate/published.h"
#include "costmodel/step/estimate.h"

#include <stdbool.h>
#include <stdint.h>

enum { VALIDATE_FAMILY_CASES = 8, VALIDATE_JOB_CASES = 4 };

typedef struct {
    const PublishedCase *published;
    const char *refusal; // why there is no prediction, or NULL; then all below is set
    const char *job;     // what it is ordered with
    double measured_s;   // step time
    double error_frac;
    Estimate estimate;
} ValidateCase;

// Figures without a case are NAN.
typedef struct {
    const char *family; // NULL: all
    int num_cases;
    int num_refused;
    int num_misfits; // said not to fit, although all of them ran
    double mape_frac, median_frac, p90_frac, bias_frac;
    double inside_interval_frac; // measured step times inside the 80 % interval
    int num_memory;              // measurements of memory
    double memory_mape_frac, memory_max_frac;
    int num_jobs;
    double kendall_tau, regret_frac;
} ValidateScore;

// Scores of a set of cases by family (in alphabetical order) and as a whole.
typedef struct {
    const ValidateScore *families; // [num_families]
    int num_families;
    ValidateScore all;
    double mean_of_families_frac; // of mape_frac; NAN where no family is large enough
} ValidatePart;

typedef struct {
    const ValidateCase *cases; // [num_cases] in the order of the file
    int num_cases;
    ValidatePart stated;  // cases whose source states everything
    ValidatePart assumed; // the others
} ValidateResult;

typedef void (*ValidateProgress)(void *context, const char *what, int64_t done, int64_t total);

// Predicts every case. One whose scenario is refused is an entry of the result, not a failure.
//   progress  may be NULL
Status validate_run(const PublishedCase *published, int num_cases, ValidateProgress progress,
                    void *context, Arena *arena, ValidateResult *out);

// Scores a selection of cases; validate_run does this for both of its parts.
//   cases  [num_cases], in any order
ValidatePart validate_score(const ValidateCase *const *cases, int num_cases, Arena *arena);

// {"schema": 1, "stated": {"families": [...], "all": {...}, "mean_of_families_frac"}, "assumed":
// the same, "worst": [...], "refused": [{"id", "error"}], "cases": [...]}; cases only where they
// are asked for. The caller owns the tree.
//   worst  [num_worst] cases that have an error
cJSON *validate_to_json(const ValidateResult *result, const ValidateCase *const *worst,
                        int num_worst, bool with_cases);

// The num_worst cases with the largest errors, the largest first, of those that are stated (or of
// all); returns how many there are. Equal errors are in the order of the file.
int validate_worst(const ValidateResult *result, bool with_assumed, int num_worst, Arena *arena,
                   const ValidateCase ***out);
