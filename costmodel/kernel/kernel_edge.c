#include "costmodel/kernel/kernel_edge.h"

#include <math.h>
#include <string.h>

static const double LEAST_RATIO = 0.999, MOST_RATIO = 1.25;

void kernel_edge_try(const KernelDimension *dimension, double at, KernelEdges *edges) {
    if (at <= dimension->size || at > 2 * dimension->size || edges->num_edges == MAX_KERNEL_EDGES)
        return;
    for (int i = 0; i < edges->num_edges; i++)
        if (edges->edges[i].at == at && strcmp(edges->edges[i].dimension, dimension->name) == 0)
            return;
    double ratio =
        dimension->price_s(dimension->context, at) / dimension->price_s(dimension->context, at - 1);
    if (ratio < LEAST_RATIO || ratio > MOST_RATIO)
        edges->edges[edges->num_edges++] = (KernelEdge){dimension->name, at, ratio};
}

void kernel_edges_along(const KernelDimension *dimension, const RisingAxis *axis, double per_size,
                        KernelEdges *edges) {
    static const double ROUNDING = 1e-9; // of a knot that is a product of sizes
    for (int i = 0; i < axis->num_knots; i++)
        kernel_edge_try(dimension, ceil(axis->knots[i] / per_size * (1 - ROUNDING)), edges);
}
