// calibrate/fit_segment.h - one measured kernel: a formula's numbers, then the grid on what is
// left.
//
// The numbers are found by Nelder-Mead on a regular sample of the rows, then by Levenberg and
// Marquardt on all; the grid is fitted to log(measured / formula). What is fitted with rows left
// out starts from the numbers of all rows and moves from there.
#pragma once

#include "calibrate/fit.h"
#include "calibrate/fit_surface.h"

enum { SEGMENT_FEWEST_ROWS = 40 };

typedef struct {
    int num_rows;
    const double *log_latency; // [num_rows]
    const double *places;      // [num_rows][spec.num_axes], log2
    const int *folds;          // [num_rows], for cross-validation
    FitModel model;
    const void *context;
    int num_parameters;
    const FitParameter *parameters;
    SurfaceSpec spec;
} Segment;

// The numbers of all rows, from the start values; returns their loss.
double segment_start(const Segment *segment, double *values);

// Improves values on the rows outside a fold and fits the grid to them; with fold -1 on all rows.
// Leaves both as they are and returns false where fewer than SEGMENT_FEWEST_ROWS are outside.
bool segment_fit(const Segment *segment, int fold, Arena *arena, double *values, Surface *surface);

// An axis of powers of two from 2^first to 2^last.
SurfaceAxis surface_octaves(const char *name, int first, int last, Arena *arena);
