#include "calibrate/run_update.h"

#include "costmodel/interval.h"

#include <math.h>
#include <string.h>

static const double DIFFERENCE = 0.02; // of a log factor, for slopes
static const double CONVERGED = 1e-6;
enum { MAX_ROUNDS = 20 };

void run_update_linear(const double *slope, double error, double noise, double *mean,
                       double covariance[NUM_PARTS][NUM_PARTS]) {
    double covered[NUM_PARTS] = {0}, variance = noise; // C s, s' C s + noise
    for (int i = 0; i < NUM_PARTS; i++) {
        for (int j = 0; j < NUM_PARTS; j++) covered[i] += covariance[i][j] * slope[j];
        variance += slope[i] * covered[i];
    }
    if (variance <= 0) return; // nothing is uncertain
    for (int i = 0; i < NUM_PARTS; i++) {
        mean[i] += covered[i] / variance * error;
        for (int j = 0; j < NUM_PARTS; j++) covariance[i][j] -= covered[i] * covered[j] / variance;
    }
}

// The estimate with the factors exp(theta).
static Status estimate_at(const Scenario *scenario, const Plan *plan, const Calibration *prior,
                          const double *theta, Arena *scratch, Estimate *out) {
    Scenario changed = *scenario;
    Calibration calibration = *prior;
    for (int k = 0; k < NUM_PARTS; k++) calibration.factor[k] = exp(theta[k]);
    changed.calibration = &calibration;
    return estimate_plan(&changed, plan, scratch, out, NULL);
}

static Status slopes_at(const Scenario *scenario, const Plan *plan, const Calibration *prior,
                        const double *theta, Arena *scratch, double *slope) {
    for (int k = 0; k < NUM_PARTS; k++) {
        double moved[NUM_PARTS];
        Estimate low, high;
        memcpy(moved, theta, sizeof moved);
        moved[k] = theta[k] - DIFFERENCE;
        TRY(estimate_at(scenario, plan, prior, moved, scratch, &low));
        moved[k] = theta[k] + DIFFERENCE;
        TRY(estimate_at(scenario, plan, prior, moved, scratch, &high));
        slope[k] = log(high.step_time_s / low.step_time_s) / (2 * DIFFERENCE);
    }
    return status_ok();
}

// One round: linear at theta, from the prior. Moves theta; returns by how much at most.
static Status round_run(const Scenario *scenario, const Plan *plan, double measured_s, double noise,
                        Arena *scratch, RunUpdate *out, double *theta, double *moved) {
    const Calibration *prior = scenario->calibration;
    double mean[NUM_PARTS];
    Estimate at;
    TRY(estimate_at(scenario, plan, prior, theta, scratch, &at));
    TRY(slopes_at(scenario, plan, prior, theta, scratch, out->slope));
    double error = log(measured_s / at.step_time_s);
    for (int k = 0; k < NUM_PARTS; k++) {
        mean[k] = log(prior->factor[k]);
        error += out->slope[k] * (theta[k] - mean[k]);
    }
    memcpy(out->posterior.covariance, prior->covariance, sizeof prior->covariance);
    run_update_linear(out->slope, error, noise, mean, out->posterior.covariance);
    *moved = 0;
    for (int k = 0; k < NUM_PARTS; k++) {
        *moved = fmax(*moved, fabs(mean[k] - theta[k]));
        theta[k] = mean[k];
    }
    return status_ok();
}

static Status rounds_run(const Scenario *scenario, const Plan *plan, double measured_s,
                         double median_variance, Arena *scratch, RunUpdate *out) {
    const Calibration *prior = scenario->calibration;
    double theta[NUM_PARTS], moved = 1;
    TRY(estimate_plan(scenario, plan, scratch, &out->before, NULL));
    double noise = interval_run_variance(prior, out->before.part_s, out->before.step_time_s) +
                   out->before.known_variance + median_variance;
    for (int k = 0; k < NUM_PARTS; k++) theta[k] = log(prior->factor[k]);
    for (int round = 0; round < MAX_ROUNDS && moved > CONVERGED; round++)
        TRY(round_run(scenario, plan, measured_s, noise, scratch, out, theta, &moved));
    for (int k = 0; k < NUM_PARTS; k++) out->posterior.factor[k] = exp(theta[k]);
    Scenario after = *scenario;
    after.calibration = &out->posterior;
    return estimate_plan(&after, plan, scratch, &out->after, NULL);
}

Status run_update(const Scenario *scenario, const Plan *plan, double measured_s,
                  double median_variance, RunUpdate *out) {
    Arena scratch = {0};
    *out = (RunUpdate){.posterior = *scenario->calibration};
    out->posterior.num_nodes = fmax(out->posterior.num_nodes, scenario->cluster.num_nodes);
    Status status = rounds_run(scenario, plan, measured_s, median_variance, &scratch, out);
    arena_free(&scratch);
    return status;
}
