#include "profiler/sample_stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Between order statistics, linearly: quantile 0 is the first, 1 the last.
static double quantile(const double *sorted, size_t n, double frac) {
    double at = frac * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n) return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

SampleStats sample_stats(double *samples, size_t num_samples) {
    qsort(samples, num_samples, sizeof *samples, compare);
    double n = (double)num_samples;
    double low = floor((n - STATS_Z * sqrt(n)) / 2), high = ceil((n + STATS_Z * sqrt(n)) / 2) + 1;
    size_t first = low < 1 ? 0 : (size_t)low - 1;
    size_t last = high > n ? num_samples - 1 : (size_t)high - 1;
    double median = quantile(samples, num_samples, 0.5);
    double quartiles = quantile(samples, num_samples, 0.75) - quantile(samples, num_samples, 0.25);
    return (SampleStats){
        .median = median,
        .low = samples[first],
        .high = samples[last],
        .spread_frac = median > 0 ? quartiles / median : 0,
    };
}
