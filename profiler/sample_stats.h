// profiler/sample_stats.h - the median of samples, how wide they lie, and how sure the median is.
//
// Source: Le Boudec, "Performance Evaluation of Computer and Communication Systems", EPFL Press,
//         2010, section 2.2.2: the interval between order statistics floor((n - z sqrt(n)) / 2) and
//         ceil((n + z sqrt(n)) / 2) + 1 (from 1) holds the median with the confidence of z.
#pragma once

#include <stddef.h>

// z of 95 %, and the fewest samples whose extremes hold the median so surely: 1 - 2 / 2^6 = 96.9 %.
#define STATS_Z 1.959963984540054
enum { STATS_LEAST_SAMPLES = 6 };

typedef struct {
    double median;
    double low, high;   // 95 % interval of the median; of fewer than six samples, their extremes
    double spread_frac; // distance of the quartiles over the median
} SampleStats;

// num_samples >= 1; sorts the samples.
SampleStats sample_stats(double *samples, size_t num_samples);
