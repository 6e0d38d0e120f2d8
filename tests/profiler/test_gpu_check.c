#include "profiler/gpu_check.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdint.h>

// Root mean square of (3, 4, 0, 0) is 2.5: 0.55 off at 3 is 0.55 / (3 + 2.5) = 0.1.
static void error_is_relative_to_value_and_size(void) {
    float expected[] = {3, 4, 0, 0}, found[] = {3.55f, 4, 0, 0};
    CU_ASSERT_DOUBLE_EQUAL(gpu_check_error(NUMBER_FLOAT32, found, expected, 4), 0.1, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(gpu_check_error(NUMBER_FLOAT32, expected, expected, 4), 0, 0);
    found[3] = NAN;
    CU_ASSERT(isinf(gpu_check_error(NUMBER_FLOAT32, found, expected, 4)));
}

static void zeros_are_checked_too(void) {
    float expected[] = {0, 0}, found[] = {0, 1e-30f};
    CU_ASSERT_DOUBLE_EQUAL(gpu_check_error(NUMBER_FLOAT32, expected, expected, 2), 0, 0);
    CU_ASSERT(isinf(gpu_check_error(NUMBER_FLOAT32, found, expected, 2)));
}

// m 1, n 2, k 3: (1 2 3) times columns (1 1 1) and (0 1 2) is (6 8).
static void products_of_all_layouts(void) {
    float left[] = {1, 2, 3}; // 1 x 3 and, turned, 3 x 1
    float turned[] = {1, 1, 1, 0, 1, 2}, straight[] = {1, 0, 1, 1, 1, 2};
    for (int layout = GEMM_FORWARD; layout <= GEMM_BACKWARD_WEIGHT; layout++) {
        float output[] = {100, 100};
        GemmRequest request = {.dtype = NUMBER_FLOAT32,
                               .out_dtype = NUMBER_FLOAT32,
                               .layout = (GemmLayout)layout,
                               .m = 1,
                               .n = 2,
                               .k = 3,
                               .accumulate = layout == GEMM_BACKWARD_WEIGHT};
        gemm_reference(&request, left, layout == GEMM_FORWARD ? turned : straight, output);
        double before = request.accumulate ? 100 : 0;
        CU_ASSERT_DOUBLE_EQUAL(output[0], before + 6, 0);
        CU_ASSERT_DOUBLE_EQUAL(output[1], before + 8, 0);
    }
    // dW [2][1] = dy^T x, dy [3][2] = (1 0; 1 1; 1 2), x [3][1] = (1 2 3): (6 8).
    GemmRequest weight = {.dtype = NUMBER_FLOAT32,
                          .out_dtype = NUMBER_FLOAT32,
                          .layout = GEMM_BACKWARD_WEIGHT,
                          .m = 2,
                          .n = 1,
                          .k = 3};
    float output[2];
    gemm_reference(&weight, straight, left, output);
    CU_ASSERT(output[0] == 6 && output[1] == 8);
}

// The same product in fp8, whose operands both lie along the sum: dy^T [2][3] = (1 1 1; 0 1 2) in
// E5M2, where 1 is 0x3c and 2 0x40; x^T [1][3] = (1 2 3) in E4M3, 0x38, 0x40 and 0x44; added to
// 100.
static void fp8_gradients_are_transposed_beforehand(void) {
    const uint8_t dy[] = {0x3c, 0x3c, 0x3c, 0, 0x3c, 0x40}, x[] = {0x38, 0x40, 0x44};
    GemmRequest weight = {.dtype = NUMBER_FP8,
                          .out_dtype = NUMBER_FLOAT32,
                          .layout = GEMM_BACKWARD_WEIGHT,
                          .m = 2,
                          .n = 1,
                          .k = 3,
                          .accumulate = true};
    float output[] = {100, 100};
    gemm_reference(&weight, dy, x, output);
    CU_ASSERT(output[0] == 106 && output[1] == 108);
    weight.layout = GEMM_FORWARD; // no gradient: both are E4M3
    CU_ASSERT_EQUAL(gemm_left_dtype(&weight), NUMBER_FP8);
}

CU_TestInfo gpu_check_tests[] = {
    {"error_is_relative_to_value_and_size", error_is_relative_to_value_and_size},
    {"zeros_are_checked_too", zeros_are_checked_too},
    {"products_of_all_layouts", products_of_all_layouts},
    {"fp8_gradients_are_transposed_beforehand", fp8_gradients_are_transposed_beforehand},
    CU_TEST_INFO_NULL,
};
