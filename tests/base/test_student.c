#include "base/student.h"

#include <CUnit/CUnit.h>

#include <math.h>

// Tabulated points of four degrees of freedom: 90 % 1.533206, 95 % 2.131847, 99 % 3.746947
// (Abramowitz and Stegun, table 26.10).
static void quantiles_are_the_tabulated_ones(void) {
    CU_ASSERT_DOUBLE_EQUAL(student_quantile(0.9), 1.533206, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(student_quantile(0.95), 2.131847, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(student_quantile(0.99), 3.746947, 1e-6);
    CU_ASSERT_EQUAL(student_quantile(0.5), 0);
}

static void quantile_is_the_inverse(void) {
    for (double p = 0.001; p < 1; p += 0.037)
        CU_ASSERT_DOUBLE_EQUAL(student_probability(student_quantile(p)), p, 1e-12);
    CU_ASSERT_EQUAL(student_probability(INFINITY), 1);
    CU_ASSERT_EQUAL(student_probability(-INFINITY), 0);
}

CU_TestInfo student_tests[] = {
    {"quantiles_are_the_tabulated_ones", quantiles_are_the_tabulated_ones},
    {"quantile_is_the_inverse", quantile_is_the_inverse},
    CU_TEST_INFO_NULL,
};
