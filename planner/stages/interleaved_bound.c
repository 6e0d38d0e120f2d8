#include "planner/stages/interleaved_bound.h"

#include <math.h>

typedef struct {
    int pp, vpp;
    double n;
    double largest; // the least c that weights are made for, over their mean
} Dual;

// The weight of a rank, relative to the mean, with which its c is the wanted one; `behind` is the
// sum of those of the ranks behind it. Above 1 the chunks of the first turn have the least c, below
// those of the last.
static double weight_of(const Dual *d, double behind) {
    const double more = d->largest - d->n - behind / d->vpp;
    const double turns = d->n - d->pp * (d->vpp - 1.0) / d->vpp;
    const double weight = 1 + more / (more > 0 ? turns : d->n);
    return weight > 0 ? weight : 0;
}

// c of chunk j of a rank with this weight, of weights that sum to `sum`, over their mean.
static double coefficient(const Dual *d, int j, double weight, double behind, double sum) {
    const double turns_left = (double)(d->vpp - 1 - j) / d->vpp;
    return d->n * weight + behind / d->vpp + turns_left * (sum - d->pp * weight);
}

static double bound_of(const Dual *d, double layers_s, double first_s, double last_s) {
    double sum = 0, behind = 0, least = INFINITY, first = 0, last = 0;
    for (int r = 0; r < d->pp; r++) sum += weight_of(d, sum);
    for (int r = d->pp - 1; r >= 0; r--) {
        const double weight = weight_of(d, behind);
        first = coefficient(d, 0, weight, behind, sum);
        const double other = coefficient(d, d->vpp - 1, weight, behind, sum);
        if (r == d->pp - 1) last = other;
        least = fmin(least, fmin(first, other));
        behind += weight;
    }
    return (least * layers_s + first * first_s + last * last_s) / sum;
}

double interleaved_bound_s(int num_ranks, int num_chunks, double num_microbatches, double layers_s,
                           double first_s, double last_s) {
    static const double BUBBLE_FRACS[] = {0.35, 0.45, 0.5};
    const double bubble = (num_ranks - 1.0) / num_chunks;
    double bound_s = 0;
    for (int i = 0; i < 3; i++) {
        const Dual dual = {num_ranks, num_chunks, num_microbatches,
                           num_microbatches + BUBBLE_FRACS[i] * bubble};
        bound_s = fmax(bound_s, bound_of(&dual, layers_s, first_s, last_s));
    }
    return bound_s;
}
