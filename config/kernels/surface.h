// config/kernels/surface.h - a residual grid: what measured kernels add to a formula, by shape.
//
// Model:  up to SURFACE_MAX_AXES axes, each a sorted list of knots in log2; between the knots the
//         value is multilinear, outside it is that of the nearest edge. The value is the natural
//         log of measured over formula time, so exp(value) multiplies the formula.
// File:   {"axes": [{"name": "m", "knots": [1, 2, 64]}, ...], "log_ratio_e3": "0,-12,...",
//          "spread_frac": 0.03}: knots in plain units, values in thousandths, the last axis
//          fastest.
// costmodel/kernel/surface_value.h evaluates it, calibrate/fit_surface.h fits it.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

enum { SURFACE_MAX_AXES = 4, SURFACE_MAX_KNOTS = 64, SURFACE_MAX_VALUES = 1 << 16 };

typedef struct {
    const char *name;
    int num_knots;       // >= 1
    const double *knots; // [num_knots], log2 of the plain unit, strictly rising
} SurfaceAxis;

typedef struct {
    int num_axes; // 0: no surface, the value is 0 everywhere
    SurfaceAxis axes[SURFACE_MAX_AXES];
    const double *values; // [axes[0].num_knots][axes[1].num_knots]..., log of measured over formula
    double spread_frac;   // median |measured / (formula x surface) - 1| of left-out groups
} Surface;

// Number of values of the grid (1 for no axes).
int surface_num_values(const Surface *surface);

// Reads and checks one; names_expected are the axes in order, ending with NULL.
Status surface_read(const JsonNode *node, const char *const *names_expected, Arena *arena,
                    Surface *out);

// Writes a surface as the document that surface_read takes; values are rounded to thousandths.
cJSON *surface_to_json(const Surface *surface);
