#include "calibrate/run_update.h"

#include "costmodel/step/interval.h"

#include <math.h>
#include <string.h>

static const double DIFFERENCE = 0.02; // of a log factor, for slopes
static const double CONVERGED = 1e-9;  // of the log of the step
enum { MAX_DOUBLINGS = 10, MAX_ROUNDS = 100 };

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

// The factors that the linear update can reach, exp(theta0 + amount x direction), and the run.
typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    double direction[NUM_PARTS]; // C s
    double before_s, measured_s, noise;
    Arena *scratch;
} Line;

static void line_theta(const Line *line, double amount, double *theta) {
    for (int k = 0; k < NUM_PARTS; k++)
        theta[k] = log(line->scenario->calibration->factor[k]) + amount * line->direction[k];
}

// By how much the amount is too large: its own cost and what it explains, over the run's error.
static Status excess_at(const Line *line, double amount, double *excess) {
    double theta[NUM_PARTS];
    Estimate at;
    line_theta(line, amount, theta);
    TRY(estimate_at(line->scenario, line->plan, line->scenario->calibration, theta, line->scratch,
                    &at));
    *excess = line->noise * amount + log(at.step_time_s / line->before_s) -
              log(line->measured_s / line->before_s);
    return status_ok();
}

// Where the excess is 0, by halving: it rises with the amount, and is -error without any.
//   first  the amount of the linear update
static Status line_search(const Line *line, double first, double *amount) {
    double near = 0, far = first, excess = 0, sign = first < 0 ? -1 : 1;
    for (int i = 0; i < MAX_DOUBLINGS; i++) {
        TRY(excess_at(line, far, &excess));
        if (sign * excess >= 0) break;
        near = far;
        far *= 2;
    }
    *amount = far;
    for (int i = 0; i < MAX_ROUNDS && fabs(excess) > CONVERGED; i++) {
        *amount = (near + far) / 2;
        TRY(excess_at(line, *amount, &excess));
        *(sign * excess >= 0 ? &far : &near) = *amount;
    }
    return status_ok();
}

// Moves the posterior: the covariance by the linear update, the factors along its direction.
static Status line_update(const Line *line, RunUpdate *out) {
    const Calibration *prior = line->scenario->calibration;
    double error = log(line->measured_s / line->before_s), explained = 0, amount = 0;
    double theta[NUM_PARTS], mean[NUM_PARTS] = {0};
    for (int k = 0; k < NUM_PARTS; k++) explained += out->slope[k] * line->direction[k];
    if (explained + line->noise <= 0) return status_ok(); // nothing is uncertain
    run_update_linear(out->slope, error, line->noise, mean, out->posterior.covariance);
    if (explained > 0 && error != 0)
        TRY(line_search(line, error / (explained + line->noise), &amount));
    line_theta(line, amount, theta);
    for (int k = 0; k < NUM_PARTS; k++)
        out->posterior.factor[k] = amount == 0 ? prior->factor[k] : exp(theta[k]);
    return status_ok();
}

static Status steps_run(const Scenario *scenario, const Plan *plan, double measured_s,
                        double median_variance, Arena *scratch, RunUpdate *out) {
    const Calibration *prior = scenario->calibration;
    double theta[NUM_PARTS];
    TRY(estimate_plan(scenario, plan, scratch, &out->before, NULL));
    Line line = {scenario, plan, {0}, out->before.step_time_s, measured_s, 0, scratch};
    line.noise = interval_run_variance(prior, out->before.part_s, out->before.step_time_s) +
                 out->before.known_variance + median_variance;
    line_theta(&line, 0, theta);
    TRY(slopes_at(scenario, plan, prior, theta, scratch, out->slope));
    for (int k = 0; k < NUM_PARTS; k++)
        for (int j = 0; j < NUM_PARTS; j++)
            line.direction[k] += prior->covariance[k][j] * out->slope[j];
    TRY(line_update(&line, out));
    Scenario after = *scenario;
    after.calibration = &out->posterior;
    return estimate_plan(&after, plan, scratch, &out->after, NULL);
}

Status run_update(const Scenario *scenario, const Plan *plan, double measured_s,
                  double median_variance, RunUpdate *out) {
    Arena scratch = {0};
    *out = (RunUpdate){.posterior = *scenario->calibration};
    out->posterior.num_nodes = fmax(out->posterior.num_nodes, scenario->cluster.num_nodes);
    Status status = steps_run(scenario, plan, measured_s, median_variance, &scratch, out);
    arena_free(&scratch);
    return status;
}
