#include "planner/why/robust.h"

#include "costmodel/step/interval.h"

#include <math.h>

enum { MAX_STEPS = 2000 };

static const double SAME_FRAC = 1e-4; // of the variance: nearer to the least it need not get

double robust_raise(const Estimate *estimate) {
    return estimate->step_time_high_s / estimate->step_time_s;
}

// Half of the gradient of the variance at these shares: Q s.
static void gradient_set(const Calibration *calibration, const double *shares, double *half) {
    for (int i = 0; i < NUM_PARTS; i++) {
        half[i] = calibration->run_spread[i] * calibration->run_spread[i] * shares[i];
        for (int j = 0; j < NUM_PARTS; j++) half[i] += calibration->covariance[i][j] * shares[j];
    }
}

// How far to go from the shares towards all of part k, for the least variance on the way: the form
// along it is f + 2 t (half' d) + t^2 (d' Q d), with d = e_k - s.
static double step_length(const Calibration *calibration, const double *shares, int k,
                          double slope) {
    double way[NUM_PARTS], half[NUM_PARTS], curve = 0;
    for (int i = 0; i < NUM_PARTS; i++) way[i] = (i == k) - shares[i];
    gradient_set(calibration, way, half);
    for (int i = 0; i < NUM_PARTS; i++) curve += way[i] * half[i];
    return curve > 0 ? fmin(1, -slope / curve) : 1;
}

// A lower bound of the variance of any shares.
static double least_variance(const Calibration *calibration) {
    double shares[NUM_PARTS] = {1}, half[NUM_PARTS], bound = 0;
    for (int step = 0; step < MAX_STEPS; step++) {
        const double variance = interval_variance(calibration, shares, 1);
        gradient_set(calibration, shares, half);
        int least = 0;
        double mean = 0;
        for (int i = 0; i < NUM_PARTS; i++) {
            mean += half[i] * shares[i];
            if (half[i] < half[least]) least = i;
        }
        const double slope = half[least] - mean;
        bound = fmax(bound, variance + 2 * slope);
        if (variance - bound <= SAME_FRAC * variance) break;
        const double length = step_length(calibration, shares, least, slope);
        for (int i = 0; i < NUM_PARTS; i++) shares[i] += length * ((i == least) - shares[i]);
    }
    return bound;
}

double robust_least_raise(const Calibration *calibration) {
    if (!calibration) return 1;
    double low, high;
    interval_set(NULL, NULL, least_variance(calibration), 1, &low, &high);
    return high;
}
