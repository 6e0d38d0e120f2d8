#include "calibrate/fit_linear.h"

#include <CUnit/CUnit.h>

// 3 + 2 x of x = 1, 2, 4, 8: exactly.
static void exact_costs_are_found(void) {
    const double a[] = {1, 1, 1, 2, 1, 4, 1, 8}, times[] = {5, 7, 11, 19};
    Arena arena = {0};
    double costs[2];
    fit_linear(a, times, 4, 2, &arena, costs);
    CU_ASSERT_DOUBLE_EQUAL(costs[0], 3, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(costs[1], 2, 1e-9);
    arena_free(&arena);
}

// One of seven times is ten times too long: it does not pull.
static void an_outlier_does_not_pull(void) {
    double a[14], times[7];
    for (int i = 0; i < 7; i++) {
        a[2 * i] = 1;
        a[2 * i + 1] = i + 1;
        times[i] = (3 + 2 * (i + 1)) * (i == 3 ? 10 : 1);
    }
    Arena arena = {0};
    double costs[2];
    fit_linear(a, times, 7, 2, &arena, costs);
    CU_ASSERT_DOUBLE_EQUAL(costs[0], 3, 0.05);
    CU_ASSERT_DOUBLE_EQUAL(costs[1], 2, 0.05);
    arena_free(&arena);
}

// 10 - x is a falling time: the cost of x would be -1 and stays 0.
static void no_cost_lies_below_zero(void) {
    const double a[] = {1, 1, 1, 2, 1, 3}, times[] = {9, 8, 7};
    Arena arena = {0};
    double costs[2];
    fit_linear(a, times, 3, 2, &arena, costs);
    CU_ASSERT_EQUAL(costs[1], 0);
    CU_ASSERT(costs[0] >= 7 && costs[0] <= 9);
    arena_free(&arena);
}

static void without_rows_nothing_costs(void) {
    Arena arena = {0};
    double costs[2] = {1, 1};
    fit_linear(NULL, NULL, 0, 2, &arena, costs);
    CU_ASSERT(costs[0] == 0 && costs[1] == 0);
    arena_free(&arena);
}

CU_TestInfo fit_linear_tests[] = {
    {"exact_costs_are_found", exact_costs_are_found},
    {"an_outlier_does_not_pull", an_outlier_does_not_pull},
    {"no_cost_lies_below_zero", no_cost_lies_below_zero},
    {"without_rows_nothing_costs", without_rows_nothing_costs},
    CU_TEST_INFO_NULL,
};
