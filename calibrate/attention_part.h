// calibrate/attention_part.h - rows of attention by the kernel that ran them.
#pragma once

#include "calibrate/attention_rows.h"
#include "calibrate/fit_segment.h"

enum { ATTENTION_MAX_PARTS = 128, ATTENTION_NUM_AXES = 3 };

// The rows of one kernel.
typedef struct {
    AttentionVariant variant;
    int sharing;                   // GenerationSharing; 0 for prompts
    int num_rows;                  // > 0
    const int *rows;               // [num_rows], of the table
    const AttentionShape **shapes; // [num_rows]
    double *places;                // [num_rows][ATTENTION_NUM_AXES], 0: for the kind to fill
    Segment segment;               // of these rows; model, parameters and spec are the kind's
} AttentionPart;

// The parts of all rows, in the order of their first row; returns how many. sharings [num_rows] may
// be NULL. Variants beyond ATTENTION_MAX_PARTS have none.
int attention_parts(const AttentionRows *rows, const int *sharings, Arena *arena,
                    AttentionPart *parts);
