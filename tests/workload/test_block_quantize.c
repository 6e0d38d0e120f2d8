// Quantization before products of 8 bits and less.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

static const double TOKENS = 2048;

// Bytes of the operators that quantize, and how many there are.
static double quantized_bytes(const Op *ops, int num_ops, int *count) {
    double sum = 0;
    *count = 0;
    for (int i = 0; i < num_ops; i++)
        if (strcmp(ops[i].name, "quantize") == 0) {
            CU_ASSERT_EQUAL(ops[i].kind, OP_MEMORY);
            sum += ops[i].bytes;
            ++*count;
        }
    return sum;
}

// Each of a layer's four products quantizes its input, of 1024 values a token, 4096 for the last;
// backward the gradient of its output: 3 x 1024, 1024, 4096, 1024.
static void assert_quantized(const char *training, double eager_overhead_frac,
                             double bytes_per_value) {
    Case c;
    Arena arena = {0};
    const char *whole =
        arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": 8, %s}", training);
    const bool made = case_make(&c, MADE_UP_GPT, 8, whole, NULL);
    c.scenario.training.stack.eager_overhead_frac = eager_overhead_frac;
    if (made && case_resolve(&c)) {
        const Block *b = layer_block_of(&c, 0);
        const int expected = bytes_per_value > 0 ? 4 : 0;
        int count;
        ASSERT_CLOSE(quantized_bytes(b->forward, b->num_forward, &count),
                     TOKENS * 7 * 1024 * bytes_per_value);
        CU_ASSERT_EQUAL(count, expected);
        ASSERT_CLOSE(quantized_bytes(b->backward, b->num_backward, &count),
                     TOKENS * 9 * 1024 * bytes_per_value);
        CU_ASSERT_EQUAL(count, expected);
        const Block *head = &c.workload.blocks[BLOCK_HEAD]; // its product stays in 16 bits
        quantized_bytes(head->forward, head->num_forward, &count);
        CU_ASSERT_EQUAL(count, 0);
    }
    case_free(&c);
    arena_free(&arena);
}

#define RECIPE(precision, recipe) "\"precision\": \"" precision "\", \"fp8_recipe\": \"" recipe "\""

// A value is quantized for two products, along its row and its column. With a scale known before,
// or of a small block, that is one pass: 2 bytes read, 1 written twice. A scale of the whole tensor
// needs its largest value first: 2 more. Scales of rows and those of columns are found and used in
// passes of their own: twice 2 read, 2 read and 1 written.
static void recipes_move_their_passes(void) {
    assert_quantized(RECIPE("fp8", "delayed"), 0, 4);
    assert_quantized(RECIPE("fp8", "block"), 0, 4);
    assert_quantized(RECIPE("mxfp8", "mxfp8"), 0, 4);
    assert_quantized(RECIPE("nvfp4", "nvfp4"), 0, 4);
    assert_quantized(RECIPE("fp8", "current"), 0, 6);
    assert_quantized(RECIPE("fp8", "tensorwise"), 0, 6);
    assert_quantized(RECIPE("fp8", "rowwise"), 0, 10);
    assert_quantized(RECIPE("bf16", "rowwise"), 0, 0);
}

// Eager kernels that move half more than the least do so for values and gradients; compiled ones
// move the least.
static void eager_kernels_move_more_both_ways(void) {
    assert_quantized(RECIPE("fp8", "delayed"), 0.5, 4 * 1.5);
    assert_quantized(RECIPE("fp8", "delayed") ", \"compile\": true", 0.5, 4);
}

CU_TestInfo block_quantize_tests[] = {
    {"recipes_move_their_passes", recipes_move_their_passes},
    {"eager_kernels_move_more_both_ways", eager_kernels_move_more_both_ways},
    CU_TEST_INFO_NULL,
};
