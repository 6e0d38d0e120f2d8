// calibrate/attention_phase.h - what differs between the fits of prompts and of generation.
#pragma once

#include "calibrate/attention_rows.h"

// Kernels are a ContextKernels or a GenerationKernels; parts are what a phase keeps for its fits.
typedef struct {
    bool step;              // rows are steps of generation
    const char *limit_name; // as kernel_table_check_limits has it

    // As in KernelLimits, for one row.
    void (*limits)(const Gpu *gpu, const AttentionShape *shape, double *least_s, double *work_s);

    // The kernels that ran the rows, each with the numbers that explain all of its rows.
    void *(*start)(const AttentionRows *rows, const Gpu *gpu, Arena *arena);

    // Kernels fitted with the rows of a fold left out (-1: none), without those of which too few
    // rows remain. left_out_s [num_rows]: predictions whose errors the kernels note; may be NULL.
    void *(*fit)(const void *parts, int fold, const double *left_out_s, Arena *arena);

    double (*price_s)(const Gpu *gpu, const void *kernels, const AttentionShape *shape);
    cJSON *(*to_json)(const void *kernels);
} AttentionPhase;

extern const AttentionPhase CONTEXT_PHASE, GENERATION_PHASE;
