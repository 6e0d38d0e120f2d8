#include "report/units.h"

#include <CUnit/CUnit.h>

#define ASSERT_TEXT(function, value, expected)                                                     \
    do {                                                                                           \
        char text_[UNITS_SIZE];                                                                    \
        CU_ASSERT_STRING_EQUAL(function(value, text_), expected);                                  \
    } while (0)

static void three_digits_are_kept(void) {
    ASSERT_TEXT(units_plain, 0.0, "0");
    ASSERT_TEXT(units_plain, 1.0, "1");
    ASSERT_TEXT(units_plain, 1.234, "1.23");
    ASSERT_TEXT(units_plain, 12.34, "12.3");
    ASSERT_TEXT(units_plain, 123.4, "123");
    ASSERT_TEXT(units_plain, 0.1234, "0.123");
    ASSERT_TEXT(units_plain, -12.34, "-12.3");
    ASSERT_TEXT(units_plain, 123456.0, "123456");
    ASSERT_TEXT(units_plain, 0.0994, "0.0994");
    ASSERT_TEXT(units_plain, 0.0996, "0.100");
    ASSERT_TEXT(units_plain, 0.001234, "0.00123");
    ASSERT_TEXT(units_plain, 1e-12, "0");
}

static void units_fit_the_size(void) {
    ASSERT_TEXT(units_seconds, 12.34, "12.3 s");
    ASSERT_TEXT(units_seconds, 4.56e-3, "4.56 ms");
    ASSERT_TEXT(units_seconds, 789e-6, "789 us");
    ASSERT_TEXT(units_seconds, 5e-9, "5 ns");
    ASSERT_TEXT(units_span, 47, "47 s");
    ASSERT_TEXT(units_span, 546, "9.10 min");
    ASSERT_TEXT(units_span, 7200, "2 h");
    ASSERT_TEXT(units_span, 1.84e6, "21.3 days");
    ASSERT_TEXT(units_seconds, 0.0, "0 ns");
    ASSERT_TEXT(units_seconds, -1e-22, "0 ns"); // a difference of two equal times
    ASSERT_TEXT(units_seconds, -0.4e-9, "-0.400 ns");
    ASSERT_TEXT(units_seconds, 4000.0, "4000 s");
    ASSERT_TEXT(units_bytes, 80e9, "80 GB");
    ASSERT_TEXT(units_bytes, 67.92e9, "67.9 GB");
    ASSERT_TEXT(units_memory, 85.0e9, "85 GB (79.2 GiB)"); // 85e9 / 2^30 = 79.16
    ASSERT_TEXT(units_memory, 5e8, "500 MB");
    ASSERT_TEXT(units_count, 1234567.0, "1.23 M");
    ASSERT_TEXT(units_count, 17.0, "17");
    ASSERT_TEXT(units_percent, 0.4123, "41.2 %");
    ASSERT_TEXT(units_percent, -0.0004, "0.0 %");
    ASSERT_TEXT(units_percent, -0.0006, "-0.1 %");
}

// 999.6 ms would be printed as "1000 ms": it is 1.000 s.
static void rounding_moves_to_the_next_unit(void) {
    ASSERT_TEXT(units_seconds, 0.9996, "1.00 s");
    ASSERT_TEXT(units_count, 999.4, "999");
    ASSERT_TEXT(units_count, 999999.0, "1.00 M");
}

// A GPU's rate is read in TFLOP/s.
static void rates_above_a_petaflop_stay_readable(void) {
    ASSERT_TEXT(units_flops, 451.3e12, "451 TFLOP/s");
    ASSERT_TEXT(units_flops, 2.5e15, "2500 TFLOP/s");
}

CU_TestInfo units_tests[] = {
    {"three_digits_are_kept", three_digits_are_kept},
    {"units_fit_the_size", units_fit_the_size},
    {"rounding_moves_to_the_next_unit", rounding_moves_to_the_next_unit},
    {"rates_above_a_petaflop_stay_readable", rates_above_a_petaflop_stay_readable},
    CU_TEST_INFO_NULL,
};
