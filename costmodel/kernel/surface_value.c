#include "costmodel/kernel/surface_value.h"

#include "base/numbers.h"

#include <math.h>

// The knot below x, and how far x lies towards the next one (0 to 1; 0 at and beyond the edges).
static int axis_locate(const SurfaceAxis *axis, double x, double *frac) {
    const double *knots = axis->knots;
    const int last = axis->num_knots - 1;
    *frac = 0;
    if (x <= knots[0]) return 0;
    if (x >= knots[last]) return last;
    const int low = knot_below(knots, axis->num_knots, x), high = low + 1;
    *frac = (x - knots[low]) / (knots[high] - knots[low]);
    return low;
}

void surface_cell(const Surface *surface, const double *place, SurfaceCell *out) {
    out->num_corners = 1;
    out->index[0] = 0;
    out->weights[0] = 1;
    for (int a = 0; a < surface->num_axes; a++) {
        const SurfaceAxis *axis = &surface->axes[a];
        double frac;
        int low = axis_locate(axis, place[a], &frac), num_corners = out->num_corners;
        for (int i = 0; i < num_corners; i++) {
            out->index[i] = out->index[i] * axis->num_knots + low;
            if (frac == 0) continue;
            out->index[out->num_corners] = out->index[i] + 1;
            out->weights[out->num_corners++] = out->weights[i] * frac;
            out->weights[i] *= 1 - frac;
        }
    }
}

double surface_log_ratio(const Surface *surface, const double *place) {
    if (surface->num_axes == 0) return 0;
    SurfaceCell cell;
    surface_cell(surface, place, &cell);
    double sum = 0;
    for (int i = 0; i < cell.num_corners; i++)
        sum += cell.weights[i] * surface->values[cell.index[i]];
    return sum;
}

double surface_outside_octaves(const Surface *surface, const double *place) {
    double outside = 0;
    for (int a = 0; a < surface->num_axes; a++) {
        const SurfaceAxis *axis = &surface->axes[a];
        outside = fmax(outside, axis->knots[0] - place[a]);
        outside = fmax(outside, place[a] - axis->knots[axis->num_knots - 1]);
    }
    return outside;
}
