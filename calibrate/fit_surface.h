// calibrate/fit_surface.h - robust, smooth fit of residual grids to scattered log residuals.
//
// Model:  residual_i ~ sum over surfaces of value(place_i). Minimises
//           sum_i w_i (residual_i - fit_i)^2
//         + sum over surfaces and axes of stiffness (second difference of neighbours, per
//         octave)^2 + prior value^2 It does so by reweighting (Cauchy weights, so that outliers
//         pull less the farther they are). In each round it takes conjugate gradients on the sparse
//         normal equations with their diagonal as preconditioner. Where no data lie, stiffness
//         extends and prior draws to 0.
// Source: Eilers and Marx, "Flexible smoothing with B-splines and penalties", Stat. Sci. 11(2),
//         1996 (differences as penalty); Holland and Welsch, "Robust regression using iteratively
//         reweighted least-squares", Comm. Stat. A6, 1977; Hestenes and Stiefel, 1952.
#pragma once

#include "base/arena.h"
#include "config/kernels/surface.h"

// One grid to fit. stiffness of an axis is in rows: that many rows must disagree with a straight
// line before the grid bends. prior likewise: that many rows stand at 0 beside every knot.
typedef struct {
    int num_axes;
    SurfaceAxis axes[SURFACE_MAX_AXES]; // knots in log2
    double stiffness[SURFACE_MAX_AXES]; // > 0
    double flatness[SURFACE_MAX_AXES];  // >= 0; the same for first differences
    double prior;                       // > 0
} SurfaceSpec;

typedef struct {
    int num_rows;
    const double *residual; // [num_rows], log of measured over formula
    const double *weights;  // [num_rows], 0 leaves a row out; NULL for 1
    double outlier;         // residuals beyond this are outliers (log; about 0.05)
    int num_rounds;         // of reweighting, about 6; 1 is plain least squares
} SurfaceData;

// An axis from plain knots (log2 is taken); knots must rise.
SurfaceAxis surface_axis(const char *name, const double *plain_knots, int num_knots, Arena *arena);

// Fits num_surfaces grids at once. places[s] is [num_rows][specs[s].num_axes] in log2. The result's
// spread_frac is 0: the caller fills it from left-out groups.
void fit_surfaces(const SurfaceSpec *specs, const double *const *places, int num_surfaces,
                  const SurfaceData *data, Arena *arena, Surface *out);
