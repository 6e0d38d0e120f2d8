#include "calibrate/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Where a parameter is at its bound the search still moves: |coordinate| <= 1 maps to the range.
static double parameter_value(const FitParameter *p, double coordinate) {
    double x = fmin(1, fmax(-1, coordinate));
    double t = (x + 1) / 2;
    return p->log_scale ? exp(log(p->low) + t * (log(p->high) - log(p->low)))
                        : p->low + t * (p->high - p->low);
}

static double parameter_coordinate(const FitParameter *p, double value) {
    double t = p->log_scale ? (log(value) - log(p->low)) / (log(p->high) - log(p->low))
                            : (value - p->low) / (p->high - p->low);
    return 2 * fmin(1, fmax(0, t)) - 1;
}

static void parameters_at(const FitProblem *problem, const gsl_vector *place, double *values) {
    for (int i = 0; i < problem->num_parameters; i++)
        values[i] = parameter_value(&problem->parameters[i], gsl_vector_get(place, (size_t)i));
}

static double row_weight(const FitProblem *problem, int row) {
    return problem->weights ? problem->weights[row] : 1;
}

double fit_loss(const FitProblem *problem, const double *parameters) {
    double sum = 0, sum_weights = 0;
    for (int row = 0; row < problem->num_rows; row++) {
        double weight = row_weight(problem, row);
        if (weight == 0) continue;
        double e = fabs(problem->target[row] - problem->model(problem->context, row, parameters));
        sum += weight * (e <= FIT_HUBER ? e * e / 2 : FIT_HUBER * (e - FIT_HUBER / 2));
        sum_weights += weight;
    }
    return sum_weights > 0 ? sum / sum_weights : 0;
}

double fit_round(double value) {
    if (value == 0 || !isfinite(value)) return value;
    double scale = pow(10, 3 - floor(log10(fabs(value))));
    return isfinite(scale) ? round(value * scale) / scale : value;
}

// Beyond the bounds the loss rises, so that the simplex comes back.
static double simplex_loss(const gsl_vector *place, void *context) {
    const FitProblem *problem = context;
    double values[FIT_MAX_PARAMETERS], beyond = 0;
    parameters_at(problem, place, values);
    for (int i = 0; i < problem->num_parameters; i++)
        beyond += fmax(0, fabs(gsl_vector_get(place, (size_t)i)) - 1);
    return fit_loss(problem, values) * (1 + beyond) + 1e-6 * beyond;
}

// One descent from place, which it moves; returns the loss there.
static double simplex_descend(const FitProblem *problem, gsl_vector *place, double step) {
    size_t n = (size_t)problem->num_parameters;
    gsl_multimin_function function = {simplex_loss, n, (void *)(uintptr_t)problem};
    gsl_vector *steps = gsl_vector_alloc(n);
    gsl_vector_set_all(steps, step);
    gsl_multimin_fminimizer *s =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, n);
    gsl_multimin_fminimizer_set(s, &function, place, steps);
    for (int i = 0; i < 150 * problem->num_parameters; i++) {
        if (gsl_multimin_fminimizer_iterate(s)) break;
        if (gsl_multimin_fminimizer_size(s) < 1e-3) break;
    }
    gsl_vector_memcpy(place, s->x);
    double loss = s->fval;
    gsl_multimin_fminimizer_free(s);
    gsl_vector_free(steps);
    return loss;
}

void fit_simplex(const FitProblem *problem, double *values) {
    gsl_set_error_handler_off();
    gsl_vector *place = gsl_vector_alloc((size_t)problem->num_parameters);
    for (int i = 0; i < problem->num_parameters; i++)
        gsl_vector_set(place, (size_t)i,
                       parameter_coordinate(&problem->parameters[i], problem->parameters[i].start));
    double loss = simplex_descend(problem, place, 0.3);
    for (int round = 0; round < 6; round++) {
        double better = simplex_descend(problem, place, round % 2 ? -0.15 : 0.15);
        if (better > loss * 0.998) break;
        loss = better;
    }
    parameters_at(problem, place, values);
    for (int i = 0; i < problem->num_parameters; i++) values[i] = fit_round(values[i]);
    gsl_vector_free(place);
}

// Square root of Huber's weight times the error: least squares of these is the robust fit.
static int gradient_errors(const gsl_vector *place, void *context, gsl_vector *errors) {
    const FitProblem *problem = context;
    double values[FIT_MAX_PARAMETERS];
    parameters_at(problem, place, values);
    for (int row = 0; row < problem->num_rows; row++) {
        double e = problem->model(problem->context, row, values) - problem->target[row];
        double size = fabs(e);
        double loss = size <= FIT_HUBER ? e * e : FIT_HUBER * (2 * size - FIT_HUBER);
        gsl_vector_set(errors, (size_t)row, copysign(sqrt(row_weight(problem, row) * loss), e));
    }
    return GSL_SUCCESS;
}

void fit_gradient(const FitProblem *problem, double *values) {
    size_t n = (size_t)problem->num_rows, p = (size_t)problem->num_parameters;
    if (n < p) return;
    gsl_set_error_handler_off();
    gsl_multifit_nlinear_parameters options = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf function = {
        .f = gradient_errors, .n = n, .p = p, .params = (void *)(uintptr_t)problem};
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &options, n, p);
    gsl_vector *place = gsl_vector_alloc(p);
    for (int i = 0; i < problem->num_parameters; i++)
        gsl_vector_set(place, (size_t)i, parameter_coordinate(&problem->parameters[i], values[i]));
    double found[FIT_MAX_PARAMETERS];
    int info;
    gsl_multifit_nlinear_init(place, &function, w);
    gsl_multifit_nlinear_driver(60, 1e-5, 1e-8, 1e-8, NULL, NULL, &info, w);
    parameters_at(problem, gsl_multifit_nlinear_position(w), found);
    if (fit_loss(problem, found) < fit_loss(problem, values))
        for (int i = 0; i < problem->num_parameters; i++) values[i] = fit_round(found[i]);
    gsl_vector_free(place);
    gsl_multifit_nlinear_free(w);
}

// FNV-1a over the bytes, then mixed: equal numbers, equal key.
uint64_t fit_key(const double *numbers, int num_numbers) {
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < num_numbers; i++) {
        double number = numbers[i] + 0.0;
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        for (int byte = 0; byte < 8; byte++)
            hash = (hash ^ (bits >> (8 * byte) & 0xff)) * 1099511628211u;
    }
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    return hash ^ hash >> 33;
}

static int compare_keys(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int fit_folds(int num_rows, const uint64_t *keys, int num_folds, int *folds) {
    uint64_t *distinct = malloc((size_t)num_rows * sizeof *distinct + 1);
    if (!distinct) abort(); // as an exhausted arena
    memcpy(distinct, keys, (size_t)num_rows * sizeof *distinct);
    qsort(distinct, (size_t)num_rows, sizeof *distinct, compare_keys);
    int num_groups = 0;
    for (int i = 0; i < num_rows; i++)
        if (i == 0 || distinct[i] != distinct[i - 1]) distinct[num_groups++] = distinct[i];
    for (int i = 0; i < num_rows; i++) {
        const uint64_t *at =
            bsearch(&keys[i], distinct, (size_t)num_groups, sizeof *distinct, compare_keys);
        folds[i] = (int)((at - distinct) % num_folds);
    }
    free(distinct);
    return num_groups;
}

int fit_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fit_median(double *values, int num_values) {
    qsort(values, (size_t)num_values, sizeof *values, fit_compare);
    return num_values > 0 ? (values[(num_values - 1) / 2] + values[num_values / 2]) / 2 : NAN;
}

FitScore fit_score_rows(int num_rows, const int *rows, const double *predicted_s,
                        const double *measured_s) {
    FitScore score = {.num_rows = num_rows};
    double *errors = malloc((size_t)num_rows * sizeof *errors + 1), bias = 0;
    if (!errors) abort();
    for (int i = 0; i < num_rows; i++) {
        int row = rows ? rows[i] : i;
        if (isnan(predicted_s[row])) continue;
        double error = predicted_s[row] / measured_s[row] - 1;
        bias += error;
        errors[score.num_priced++] = fabs(error);
    }
    qsort(errors, (size_t)score.num_priced, sizeof *errors, fit_compare);
    if (score.num_priced > 0) {
        score.median_frac = errors[score.num_priced / 2];
        score.p90_frac = errors[(int)(0.9 * score.num_priced)];
        score.bias_frac = bias / score.num_priced;
    }
    free(errors);
    return score;
}

FitScore fit_score(int num_rows, const double *predicted_s, const double *measured_s) {
    return fit_score_rows(num_rows, NULL, predicted_s, measured_s);
}
