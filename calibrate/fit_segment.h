// calibrate/fit_segment.h - one measured kernel: a formula's numbers, then the grid on what is
// left.
//
// The numbers are found by Nelder-Mead on a regular sample of the rows, then by Levenberg and
// Marquardt on all; the grid is fitted to log(measured / formula). What is fitted with rows left
// out starts from the numbers of all rows and moves from there.
#pragma once

#include "calibrate/fit.h"
#include "calibrate/fit_surface.h"

typedef struct {
    int num_rows;
    const double *log_latency; // [num_rows]
    const double *places;      // [num_rows][spec.num_axes], log2
    FitModel model;
    const void *context;
    int num_parameters;
    const FitParameter *parameters;
    SurfaceSpec spec;
} Segment;

// The numbers of all rows, from the start values; returns their loss.
double segment_start(const Segment *segment, double *values);

// Improves values on the rows with weight and fits the grid to them; weights [num_rows].
void segment_fit(const Segment *segment, const double *weights, Arena *arena, double *values,
                 Surface *surface);

// An axis of powers of two from 2^first to 2^last.
SurfaceAxis surface_octaves(const char *name, int first, int last, Arena *arena);
