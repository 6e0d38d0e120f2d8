#include "costmodel/kernel/rising.h"

#include "base/numbers.h"

#include <math.h>
#include <string.h>

void rising_axis_add(RisingAxis *axis, double knot, bool measured) {
    int at = 0;
    while (at < axis->num_knots && axis->knots[at] < knot) at++;
    if (at < axis->num_knots && axis->knots[at] == knot) {
        axis->measured[at] |= measured;
        return;
    }
    if (axis->num_knots == RISING_MAX_KNOTS) return;
    size_t behind = (size_t)(axis->num_knots - at);
    memmove(axis->knots + at + 1, axis->knots + at, behind * sizeof *axis->knots);
    memmove(axis->measured + at + 1, axis->measured + at, behind * sizeof *axis->measured);
    axis->knots[at] = knot;
    axis->measured[at] = measured;
    axis->num_knots++;
}

// Grids keep log2 of whole sizes.
void rising_axis_measured(RisingAxis *axis, const SurfaceAxis *grid) {
    for (int i = 0; i < grid->num_knots; i++)
        rising_axis_add(axis, nearbyint(exp2(grid->knots[i])), true);
}

void rising_axis_fill(RisingAxis *axis, double least, double most) {
    static const double EIGHTFOLD = 8;
    double last = axis->num_knots > 0 ? axis->knots[axis->num_knots - 1] : 1;
    rising_axis_add(axis, 1, false);
    for (double x = least; x < last; x *= 2) {
        rising_axis_add(axis, x, false);
        if (x >= 2 && 1.5 * x < last) rising_axis_add(axis, 1.5 * x, false);
    }
    for (double x = last; x < most; x *= EIGHTFOLD)
        rising_axis_add(axis, fmin(most, x * EIGHTFOLD), false);
}

int rising_axis_locate(const RisingAxis *axis, double x, double *frac) {
    const double *knots = axis->knots;
    const int last = axis->num_knots - 1;
    *frac = 0;
    if (x <= knots[0]) return 0;
    if (x >= knots[last]) return last;
    const int low = knot_below(knots, axis->num_knots, x), high = low + 1;
    if (x > knots[low]) *frac = log(x / knots[low]) / log(knots[high] / knots[low]);
    return low;
}

// A lattice while it is made; the last axis is fastest.
typedef struct {
    int num_axes, num_values;
    const RisingAxis *axes;
    int strides[RISING_MAX_AXES];
} Shape;

static Shape shape_of(int num_axes, const RisingAxis *axes) {
    Shape shape = {.num_axes = num_axes, .num_values = 1, .axes = axes};
    for (int a = num_axes - 1; a >= 0; a--) {
        shape.strides[a] = shape.num_values;
        shape.num_values *= axes[a].num_knots;
    }
    return shape;
}

static int knot_of(const Shape *shape, int value, int axis) {
    return value / shape->strides[axis] % shape->axes[axis].num_knots;
}

static bool is_measured(const Shape *shape, int value) {
    for (int a = 0; a < shape->num_axes; a++)
        if (!shape->axes[a].measured[knot_of(shape, value, a)]) return false;
    return true;
}

// The knot before a value's along an axis that was measured; -1 where there is none.
static int measured_before(const RisingAxis *axis, int knot) {
    while (--knot >= 0)
        if (axis->measured[knot]) return knot;
    return -1;
}

// Whether each value may be smaller than the one before it: [num_values][num_axes].
static bool *edges_find(const Shape *shape, bool some, const double *values, Arena *scratch) {
    bool *edges = ARENA_ARRAY(scratch, shape->num_values * shape->num_axes, bool);
    for (int v = 0; v < shape->num_values && some; v++)
        for (int a = 0; a < shape->num_axes; a++) {
            int knot = knot_of(shape, v, a), before = measured_before(&shape->axes[a], knot);
            if (before < 0 || !shape->axes[a].measured[knot]) continue;
            double rise = values[v] - values[v - (knot - before) * shape->strides[a]];
            edges[v * shape->num_axes + a] = rise < -RISING_EDGE_LOG;
        }
    return edges;
}

// Each value becomes the largest of those that lie nowhere above it, with no edge between.
static void largest_below(const Shape *shape, const bool *edges, double *values) {
    for (int v = 0; v < shape->num_values; v++)
        for (int a = 0; a < shape->num_axes; a++)
            if (knot_of(shape, v, a) > 0 && !edges[v * shape->num_axes + a])
                values[v] = fmax(values[v], values[v - shape->strides[a]]);
}

// Each value becomes the smallest of those that lie nowhere below it, with no edge between.
static void smallest_above(const Shape *shape, const bool *edges, double *values) {
    for (int v = shape->num_values - 1; v >= 0; v--)
        for (int a = 0; a < shape->num_axes; a++)
            if (knot_of(shape, v, a) > 0 && !edges[v * shape->num_axes + a]) {
                double *before = &values[v - shape->strides[a]];
                *before = fmin(*before, values[v]);
            }
}

// Both envelopes of the measured knots' values, over all knots.
static void measured_envelopes(const Shape *shape, const bool *edges, const double *values,
                               double *low, double *high) {
    for (int v = 0; v < shape->num_values; v++) {
        bool counts = is_measured(shape, v);
        low[v] = counts ? values[v] : -INFINITY;
        high[v] = counts ? values[v] : INFINITY;
    }
    largest_below(shape, edges, low);
    smallest_above(shape, edges, high);
}

static void values_raise(const Shape *shape, const bool *edges, double *values, Arena *scratch) {
    double *low = ARENA_ARRAY(scratch, shape->num_values, double);
    double *high = ARENA_ARRAY(scratch, shape->num_values, double);
    measured_envelopes(shape, edges, values, low, high);
    for (int v = 0; v < shape->num_values; v++)
        if (is_measured(shape, v)) values[v] = (low[v] + high[v]) / 2;
    measured_envelopes(shape, edges, values, low, high);
    for (int v = 0; v < shape->num_values; v++)
        low[v] = high[v] = fmin(fmax(values[v], low[v]), high[v]);
    largest_below(shape, edges, low);
    smallest_above(shape, edges, high);
    for (int v = 0; v < shape->num_values; v++) values[v] = (low[v] + high[v]) / 2;
}

RisingLattice rising_make(int num_axes, const RisingAxis *axes, bool edges, RisingLaw law,
                          const void *context, Arena *arena) {
    Shape shape = shape_of(num_axes, axes);
    Arena scratch = {0};
    double *values = ARENA_ARRAY(arena, shape.num_values, double), place[RISING_MAX_AXES];
    for (int v = 0; v < shape.num_values; v++) {
        for (int a = 0; a < num_axes; a++) place[a] = axes[a].knots[knot_of(&shape, v, a)];
        values[v] = log(law(context, place));
    }
    values_raise(&shape, edges_find(&shape, edges, values, &scratch), values, &scratch);
    arena_free(&scratch);
    return (RisingLattice){num_axes, axes, values};
}

// Along one axis at a time; below a knot of a smaller value the time of the one before it holds.
static double cell_log_s(const RisingLattice *lattice, int axis, int value, const int *low,
                         const double *frac) {
    if (axis == lattice->num_axes) return lattice->log_s[value];
    value = value * lattice->axes[axis].num_knots + low[axis];
    double log_s = cell_log_s(lattice, axis + 1, value, low, frac);
    if (frac[axis] == 0) return log_s;
    double next = cell_log_s(lattice, axis + 1, value + 1, low, frac);
    return log_s + frac[axis] * fmax(0, next - log_s);
}

double rising_s(const RisingLattice *lattice, const double *place) {
    int low[RISING_MAX_AXES];
    double frac[RISING_MAX_AXES];
    for (int a = 0; a < lattice->num_axes; a++)
        low[a] = rising_axis_locate(&lattice->axes[a], place[a], &frac[a]);
    return exp(cell_log_s(lattice, 0, 0, low, frac));
}
