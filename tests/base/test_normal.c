#include "base/normal.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-12)

// Tabulated: Abramowitz and Stegun, table 26.1 and 26.5: P(1) = 0.841344746, the 90 % point is
// 1.281551566.
static void probabilities_are_the_tabulated_ones(void) {
    ASSERT_CLOSE(normal_probability(1), 0.841344746068543);
    ASSERT_CLOSE(normal_probability(-1), 1 - 0.841344746068543);
    CU_ASSERT_EQUAL(normal_probability(0), 0.5);
    CU_ASSERT_EQUAL(normal_probability(INFINITY), 1);
    CU_ASSERT_EQUAL(normal_probability(-INFINITY), 0);
}

static void quantile_is_the_inverse(void) {
    CU_ASSERT_EQUAL(normal_quantile(0.5), 0);
    CU_ASSERT_DOUBLE_EQUAL(normal_quantile(0.9), 1.281551565544600, 1e-9);
    for (double p = 0.001; p < 1; p += 0.037)
        CU_ASSERT_DOUBLE_EQUAL(normal_probability(normal_quantile(p)), p, 1e-12);
}

CU_TestInfo normal_tests[] = {
    {"probabilities_are_the_tabulated_ones", probabilities_are_the_tabulated_ones},
    {"quantile_is_the_inverse", quantile_is_the_inverse},
    CU_TEST_INFO_NULL,
};
