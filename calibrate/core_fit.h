// calibrate/core_fit.h - the laws of a CPU's core and of the memory between its cores, fitted to
// measurements.
//
// Model:  costmodel/kernel/core_op.h for what a core does; collectives as curves through the
// measured
//         sizes (costmodel/kernel/kernel_nccl.h); one message, and each step of a ring's exchange,
//         by alpha and beta (costmodel/network/collective.h).
// Source: calibrate/fit_linear.h (least absolute errors, no cost below 0).
#pragma once

#include "calibrate/core_rows.h"
#include "config/kernels/kernel_nccl.h"
#include "config/machine/link.h"

typedef enum {
    CORE_SCORE_FORWARD, // products
    CORE_SCORE_BACKWARD,
    CORE_SCORE_ATTENTION,
    CORE_SCORE_LOOPS,
    CORE_SCORE_COLLECTIVES, // on sizes left out
    CORE_SCORE_MESSAGES,
    NUM_CORE_SCORES
} CoreScoreKind;

extern const char *const CORE_SCORE_NAMES[NUM_CORE_SCORES + 1]; // ends with NULL

// How far the fit is from the measurements, |predicted / measured - 1|.
typedef struct {
    int num_rows;
    double median_frac, p90_frac;
} CoreScore;

typedef struct {
    CoreLaws laws[NUM_CORE_DTYPES];
    double best_flops_per_s[NUM_CORE_DTYPES]; // of a measured product
    double copy_bytes_per_s;                  // the fastest: read and written
    double add_bytes_per_s;                   // of the longest
    Link link;                                // its numbers
    NcclKernels curves;
    CoreScore scores[NUM_CORE_SCORES];
} CoreFit;

// Refuses rows that leave something without a measurement.
Status core_fit(const CoreRows *rows, const char *folder, Arena *arena, CoreFit *out);

// The parts (core_comm.c). Sorts the errors.
CoreScore core_score(double *errors, int num_rows);
Status core_comm_fit(const CoreRows *rows, const char *folder, Arena *arena, CoreFit *out);
