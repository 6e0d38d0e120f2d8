#include "profiler/number.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

static uint16_t encode(Number number, double value) {
    uint16_t word = 0;
    uint8_t byte = 0;
    bool narrow = number_bytes(number) == 1;
    number_write(number, narrow ? (void *)&byte : (void *)&word, 0, value);
    return narrow ? byte : word;
}

// 1 is exponent = bias and no mantissa: 127 << 7, 15 << 10, 7 << 3, 15 << 2.
static void known_codes(void) {
    CU_ASSERT_EQUAL(encode(NUMBER_BFLOAT16, 1), 0x3f80);
    CU_ASSERT_EQUAL(encode(NUMBER_BFLOAT16, -2), 0xc000);
    CU_ASSERT_EQUAL(encode(NUMBER_FLOAT16, 1), 0x3c00);
    CU_ASSERT_EQUAL(encode(NUMBER_FLOAT16, 65504), 0x7bff);
    CU_ASSERT_EQUAL(encode(NUMBER_FLOAT16, 0x1p-24), 0x0001); // least subnormal
    CU_ASSERT_EQUAL(encode(NUMBER_FP8, 1), 0x38);
    CU_ASSERT_EQUAL(encode(NUMBER_FP8, 448), 0x7e);
    CU_ASSERT_EQUAL(encode(NUMBER_FP8, 0x1p-9), 0x01);
    CU_ASSERT_EQUAL(encode(NUMBER_FP8, -0.0), 0x80);
    CU_ASSERT_EQUAL(encode(NUMBER_FP8_E5M2, 1), 0x3c);
    CU_ASSERT_EQUAL(encode(NUMBER_FP8_E5M2, 57344), 0x7b);
    CU_ASSERT_EQUAL(encode(NUMBER_FP8_E5M2, 0x1p-16), 0x01);
    uint8_t infinite = 0xfc, none = 0x7d;
    CU_ASSERT(isinf(number_read(NUMBER_FP8_E5M2, &infinite, 0)));
    CU_ASSERT(isnan(number_read(NUMBER_FP8_E5M2, &none, 0)));
}

// bfloat16 has 7 bits behind the point: 1 + 2^-8 lies between 1 and 1 + 2^-7, and goes to the even
// 1; 1 + 3 x 2^-8 to 1 + 2^-6. The carry of 1.998 goes into the exponent.
static void ties_go_to_even(void) {
    CU_ASSERT_EQUAL(encode(NUMBER_BFLOAT16, 1 + 0x1p-8), 0x3f80);
    CU_ASSERT_EQUAL(encode(NUMBER_BFLOAT16, 1 + 3 * 0x1p-8), 0x3f82);
    CU_ASSERT_EQUAL(encode(NUMBER_BFLOAT16, 1 + 0x1.02p-8), 0x3f81);
    CU_ASSERT_EQUAL(encode(NUMBER_BFLOAT16, 1.998), 0x4000);
    CU_ASSERT_EQUAL(encode(NUMBER_FP8, 1000), 0x7e);
    CU_ASSERT_EQUAL(encode(NUMBER_FP8_E5M2, 1e6), 0x7b);
}

// Every finite code is the encoding of its value.
static void codes_and_values_agree(void) {
    static const Number NARROW[] = {NUMBER_BFLOAT16, NUMBER_FLOAT16, NUMBER_FP8, NUMBER_FP8_E5M2};
    for (int i = 0; i < 4; i++) {
        int num_codes = number_bytes(NARROW[i]) == 1 ? 256 : 65536;
        for (int code = 0; code < num_codes; code++) {
            uint16_t word = (uint16_t)code;
            uint8_t byte = (uint8_t)code;
            double value = number_read(NARROW[i], num_codes == 256 ? (void *)&byte : &word, 0);
            if (!isfinite(value)) continue;
            if (encode(NARROW[i], value) != code) CU_FAIL("a code changes on its way");
        }
    }
}

CU_TestInfo number_tests[] = {
    {"known_codes", known_codes},
    {"ties_go_to_even", ties_go_to_even},
    {"codes_and_values_agree", codes_and_values_agree},
    CU_TEST_INFO_NULL,
};
