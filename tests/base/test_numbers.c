#include "base/numbers.h"

#include <CUnit/CUnit.h>

// The first numbers of SplitMix64 from seed 0, as its authors' program gives them.
static void mixed_numbers_are_those_of_splitmix64(void) {
    CU_ASSERT_EQUAL(mix64(0), 0xe220a8397b1dcdafu);
    CU_ASSERT_EQUAL(mix64(0x9e3779b97f4a7c15u), 0x6e789e6aa1b965f4u);
}

static void divisors_are_common_and_greatest(void) {
    CU_ASSERT_EQUAL(common_divisor(84, 36), 12);
    CU_ASSERT_EQUAL(common_divisor(36, 84), 12);
    CU_ASSERT_EQUAL(common_divisor(7, 0), 7);
    CU_ASSERT_EQUAL(common_divisor(0, 7), 7);
    CU_ASSERT_EQUAL(common_divisor(INT64_C(6000000000), INT64_C(4000000000)), 2000000000);
}

static void a_knot_is_below_up_to_the_next(void) {
    static const double KNOTS[] = {1, 2, 4, 8};
    CU_ASSERT_EQUAL(knot_below(KNOTS, 4, 0.5), 0);
    CU_ASSERT_EQUAL(knot_below(KNOTS, 4, 1.9), 0);
    CU_ASSERT_EQUAL(knot_below(KNOTS, 4, 2), 1);
    CU_ASSERT_EQUAL(knot_below(KNOTS, 4, 7), 2);
    CU_ASSERT_EQUAL(knot_below(KNOTS, 4, 99), 3);
    CU_ASSERT_EQUAL(knot_below(KNOTS, 1, 5), 0);
}

CU_TestInfo numbers_tests[] = {
    {"mixed_numbers_are_those_of_splitmix64", mixed_numbers_are_those_of_splitmix64},
    {"divisors_are_common_and_greatest", divisors_are_common_and_greatest},
    {"a_knot_is_below_up_to_the_next", a_knot_is_below_up_to_the_next},
    CU_TEST_INFO_NULL,
};
