// costmodel/kernel/rising.h - a law on a lattice of sizes, made to rise along every axis but at
// edges.
//
// Model:  the law is asked at knots. Where it falls by more than RISING_EDGE_LOG between two
//         neighbours that were measured, a library takes another kernel, and the fall is kept: an
//         edge. A smaller one is noise of the measurement. The log becomes the mean of two lattices
//         that rise wherever there is no edge. They have the largest value among the measured knots
//         that are nowhere larger, and the smallest among those that are nowhere smaller. What
//         rises already stays as it is. At the other knots the law is kept between the measured
//         ones around it, then made to rise alike. Between knots the log goes straight over the log
//         of each size, as a power does. From a knot to a smaller value it stays up to the size
//         before that knot's.
// Source: the two envelopes of monotone regression: Barlow, Bartholomew, Bremner and Brunk,
//         "Statistical Inference under Order Restrictions", Wiley, 1972, section 1.2.
// Limits: steps of a law between two knots are spread over the cell. Of a fall between two
//         measured sizes nobody knows at which size it comes; it is put at the larger.
#pragma once

#include "base/arena.h"
#include "config/kernels/surface.h"

#include <stdbool.h>

enum { RISING_MAX_AXES = 3, RISING_MAX_KNOTS = 128 };

typedef struct {
    int num_knots;
    double knots[RISING_MAX_KNOTS]; // plain sizes, rising
    bool measured[RISING_MAX_KNOTS];
} RisingAxis;

// Puts a knot in its place; one that is there already is measured if either was. Knots beyond
// RISING_MAX_KNOTS are left out.
void rising_axis_add(RisingAxis *axis, double knot, bool measured);

// The knots of a residual grid, as measured ones.
void rising_axis_measured(RisingAxis *axis, const SurfaceAxis *grid);

// Knots from 1 up to most: the law of `least` times 1, 1.5, 2, 3, 4, ..., up to the last knot
// that is there, and beyond it eightfold ones. least is a power of two.
void rising_axis_fill(RisingAxis *axis, double least, double most);

// The knot at or below x, and how far the log of x lies towards the next's (0 to 1; 0 beyond the
// ends).
int rising_axis_locate(const RisingAxis *axis, double x, double *frac);

// As the log of a ratio: 3 %.
#define RISING_EDGE_LOG 0.03

// Seconds at a place; context is the caller's.
typedef double (*RisingLaw)(const void *context, const double *place);

typedef struct {
    int num_axes;
    const RisingAxis *axes; // [num_axes]
    const double *log_s;    // [axes[0].num_knots][axes[1].num_knots]...
} RisingLattice;

// At least one knot of every axis is measured. The axes must live as long as the lattice.
//   edges  falls are kept; without, of two laws of which one is nowhere above the other, the
//          lattice is nowhere above the other's
RisingLattice rising_make(int num_axes, const RisingAxis *axes, bool edges, RisingLaw law,
                          const void *context, Arena *arena);

// Beyond the last knot the time is that of the last.
double rising_s(const RisingLattice *lattice, const double *place);
