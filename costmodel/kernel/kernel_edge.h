// costmodel/kernel/kernel_edge.h - sizes at which a kernel's time falls, or jumps up: those at
// which its library takes another kernel or another tile.
#pragma once

#include "costmodel/kernel/rising.h"

enum { MAX_KERNEL_EDGES = 64 }; // of one shape; those beyond are left out

// One more of a dimension, at which the time is another.
typedef struct {
    const char *dimension; // the column
    double at;             // the size from which on it holds
    double ratio;          // seconds there over those with one less
} KernelEdge;

typedef struct {
    int num_edges;
    KernelEdge edges[MAX_KERNEL_EDGES];
} KernelEdges;

// A dimension whose edges are looked for.
typedef struct {
    const char *name;
    double size;                                         // of the shape
    double (*price_s)(const void *context, double size); // of the shape with another size
    const void *context;
} KernelDimension;

// Whether the time at a size is more than a thousandth below, or more than a quarter above that of
// one less; then it is put at the end, once.
void kernel_edge_try(const KernelDimension *dimension, double at, KernelEdges *edges);

// Tries the first sizes above the shape's, up to twice it, at which a lattice may have an edge.
//   per_size  of the axis, for one of the dimension
void kernel_edges_along(const KernelDimension *dimension, const RisingAxis *axis, double per_size,
                        KernelEdges *edges);
