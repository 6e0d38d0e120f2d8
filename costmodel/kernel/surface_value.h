// costmodel/kernel/surface_value.h - the value of a residual grid at a shape
// (config/kernels/surface.h).
#pragma once

#include "config/kernels/surface.h"

// The corners of the cell around a place and their weights: value = sum weights[i]
// values[index[i]].
typedef struct {
    int num_corners; // 2 to the number of axes that lie between two knots
    int index[1 << SURFACE_MAX_AXES];
    double weights[1 << SURFACE_MAX_AXES]; // >= 0, sum 1
} SurfaceCell;

// place: log2 of the plain units, one per axis.
void surface_cell(const Surface *surface, const double *place, SurfaceCell *out);

// Log of measured over formula; 0 for a surface without axes.
double surface_log_ratio(const Surface *surface, const double *place);

// How far a place lies outside the measured range: the largest distance over the axes, in powers
// of two; 0 inside.
double surface_outside_octaves(const Surface *surface, const double *place);
