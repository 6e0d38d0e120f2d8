#include "calibrate/fit.h"

#include "calibrate/fit_surface.h"
#include "costmodel/kernel/surface_value.h"

#include <CUnit/CUnit.h>
#include <math.h>

enum { NUM_ROWS = 200 };

// t = launch + work / rate over 200 sizes of work from 1 to 2^20.
static double work_of(int row) {
    return exp2(20.0 * row / (NUM_ROWS - 1));
}

static double line_log(const void *context, int row, const double *parameters) {
    (void)context;
    return log(parameters[0] + work_of(row) / parameters[1]);
}

static const FitParameter LINE[] = {{"launch", 1, 0.01, 1000, true}, {"rate", 10, 0.1, 1e4, true}};

// Launch 7 and rate 250, every ninth row three times too slow.
static FitProblem line_problem(double *target) {
    const double truth[] = {7, 250};
    for (int row = 0; row < NUM_ROWS; row++)
        target[row] = line_log(NULL, row, truth) + (row % 9 == 4 ? log(3) : 0);
    return (FitProblem){NUM_ROWS, target, NULL, line_log, NULL, 2, LINE};
}

static void simplex_finds_known_parameters(void) {
    double target[NUM_ROWS], found[2], again[2];
    FitProblem problem = line_problem(target);
    fit_simplex(&problem, found);
    CU_ASSERT_DOUBLE_EQUAL(found[0], 7, 0.15);
    CU_ASSERT_DOUBLE_EQUAL(found[1], 250, 5);
    fit_simplex(&problem, again);
    CU_ASSERT_EQUAL(found[0], again[0]);
    CU_ASSERT_EQUAL(found[1], again[1]);
}

static void gradient_finds_known_parameters(void) {
    double target[NUM_ROWS], found[2] = {1, 10};
    FitProblem problem = line_problem(target);
    fit_gradient(&problem, found);
    CU_ASSERT_DOUBLE_EQUAL(found[0], 7, 0.15);
    CU_ASSERT_DOUBLE_EQUAL(found[1], 250, 5);
}

static void rounding_keeps_four_digits(void) {
    CU_ASSERT_EQUAL(fit_round(0), 0);
    CU_ASSERT_DOUBLE_EQUAL(fit_round(1.23456e-9), 1.235e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(fit_round(-98765), -98770, 1e-6);
}

// Six keys over three folds: two each, and equal keys together.
static void folds_hold_whole_groups(void) {
    uint64_t keys[60];
    int folds[60], of_key[6] = {-1, -1, -1, -1, -1, -1}, size[3] = {0};
    for (int i = 0; i < 60; i++) {
        double number = i % 6;
        keys[i] = fit_key(&number, 1);
    }
    CU_ASSERT_EQUAL(fit_folds(60, keys, 3, folds), 6);
    for (int i = 0; i < 60; i++) {
        if (of_key[i % 6] < 0) of_key[i % 6] = folds[i];
        CU_ASSERT_EQUAL(folds[i], of_key[i % 6]);
        size[folds[i]]++;
    }
    for (int f = 0; f < 3; f++) CU_ASSERT_EQUAL(size[f], 20);
}

// Errors 0, 1, .., 9 %: the sixth is the median, the last the 90th percentile.
static void scores_count_what_is_priced(void) {
    double predicted[11], measured[11];
    for (int i = 0; i < 11; i++) {
        measured[i] = 2;
        predicted[i] = i < 10 ? 2 * (1 + 0.01 * i) : NAN;
    }
    FitScore score = fit_score(11, predicted, measured);
    CU_ASSERT_EQUAL(score.num_priced, 10);
    CU_ASSERT_DOUBLE_EQUAL(score.median_frac, 0.05, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(score.p90_frac, 0.09, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(score.bias_frac, 0.045, 1e-12);
}

static const double KNOTS[] = {1, 2, 4, 8, 16, 32};

// Rows of the plane 0.1 x - 0.05 y with outliers, x and y in octaves; the upper half of y has none.
static SurfaceData plane_rows(double *places, double *residual, int num_rows) {
    for (int i = 0; i < num_rows; i++) {
        places[2 * i] = 5.0 * (i % 21) / 20;
        places[2 * i + 1] = 2.5 * (i / 21) / (num_rows / 21.0);
        residual[i] = 0.1 * places[2 * i] - 0.05 * places[2 * i + 1] + (i % 10 == 3 ? 1 : 0);
    }
    return (SurfaceData){num_rows, residual, NULL, 0.02, 10};
}

static void surface_follows_a_plane_and_not_its_outliers(void) {
    enum { N = 21 * 20 };
    Arena arena = {0};
    double places[2 * N], residual[N];
    SurfaceData data = plane_rows(places, residual, N);
    SurfaceSpec spec = {
        .num_axes = 2,
        .axes = {surface_axis("x", KNOTS, 6, &arena), surface_axis("y", KNOTS, 6, &arena)},
        .stiffness = {1, 1},
        .prior = 1e-6};
    const double *all_places[] = {places};
    Surface surface;
    fit_surfaces(&spec, all_places, 1, &data, &arena, &surface);
    // 0.1 x 2.5 - 0.05 x 1.25 = 0.1875
    CU_ASSERT_DOUBLE_EQUAL(surface_log_ratio(&surface, (double[]){2.5, 1.25}), 0.1875, 0.01);
    // Where no data lie, the plane goes on: 0.1 - 0.05 x 5.
    CU_ASSERT_DOUBLE_EQUAL(surface_log_ratio(&surface, (double[]){1, 5}), -0.15, 0.03);
    arena_free(&arena);
}

static void prior_draws_to_zero_without_data(void) {
    Arena arena = {0};
    double place = 0, residual = 0.5;
    SurfaceData data = {1, &residual, NULL, 10, 1};
    SurfaceSpec spec = {.num_axes = 1,
                        .axes = {surface_axis("x", KNOTS, 6, &arena)},
                        .stiffness = {1e-9},
                        .prior = 1};
    const double *places[] = {&place};
    Surface surface;
    fit_surfaces(&spec, places, 1, &data, &arena, &surface);
    CU_ASSERT_DOUBLE_EQUAL(surface.values[0], 0.25, 1e-6); // one row at 0.5, the prior's at 0
    CU_ASSERT_DOUBLE_EQUAL(surface.values[5], 0, 1e-6);
    arena_free(&arena);
}

CU_TestInfo fit_tests[] = {
    {"simplex_finds_known_parameters", simplex_finds_known_parameters},
    {"gradient_finds_known_parameters", gradient_finds_known_parameters},
    {"rounding_keeps_four_digits", rounding_keeps_four_digits},
    {"folds_hold_whole_groups", folds_hold_whole_groups},
    {"scores_count_what_is_priced", scores_count_what_is_priced},
    {"surface_follows_a_plane_and_not_its_outliers", surface_follows_a_plane_and_not_its_outliers},
    {"prior_draws_to_zero_without_data", prior_draws_to_zero_without_data},
    CU_TEST_INFO_NULL,
};
