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
typedef struct {
    double eager, quantize, transpose;
} Overheads;

static bool quantize_case(Case *c, const char *training, const char *parallel,
                          const Overheads *overheads) {
    Arena arena = {0};
    const char *whole =
        arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": 8, %s}", training);
    const bool made = case_make(c, MADE_UP_GPT, 8, whole, parallel);
    arena_free(&arena);
    Stack *stack = &c->scenario.execution.stack;
    stack->launch.eager_overhead_frac = overheads->eager;
    stack->launch.quantize_overhead_frac = overheads->quantize;
    stack->launch.transpose_overhead_frac = overheads->transpose;
    return made && case_resolve(c);
}

static void assert_quantized(const char *training, Overheads overheads, double bytes_per_value) {
    Case c;
    if (quantize_case(&c, training, NULL, &overheads)) {
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
}

#define RECIPE(precision, recipe) "\"precision\": \"" precision "\", \"fp8_recipe\": \"" recipe "\""

static const Overheads NONE = {0, 0, 0};

// A value is quantized for two products, along its row and its column. With a scale known before,
// or of a small block, that is one pass: 2 bytes read, 1 written twice. A scale of the whole tensor
// needs its largest value first: 2 more. Scales of rows and those of columns are found and used in
// passes of their own: twice 2 read, 2 read and 1 written.
static void recipes_move_their_passes(void) {
    assert_quantized(RECIPE("fp8", "delayed"), NONE, 4);
    assert_quantized(RECIPE("fp8", "block"), NONE, 4);
    assert_quantized(RECIPE("mxfp8", "mxfp8"), NONE, 4);
    assert_quantized(RECIPE("nvfp4", "nvfp4"), NONE, 4);
    assert_quantized(RECIPE("fp8", "current"), NONE, 6);
    assert_quantized(RECIPE("fp8", "tensorwise"), NONE, 6);
    assert_quantized(RECIPE("fp8", "rowwise"), NONE, 10);
    assert_quantized(RECIPE("bf16", "rowwise"), NONE, 0);
}

// Eager kernels that move half more than the least do so for values and gradients; compiled ones
// move the least.
static void eager_kernels_move_more_both_ways(void) {
    const Overheads half = {0.5, 0, 0};
    assert_quantized(RECIPE("fp8", "delayed"), half, 4 * 1.5);
    assert_quantized(RECIPE("fp8", "delayed") ", \"compile\": true", half, 4);
}

// Passes that find or use a scale along rows take a quarter longer, those that write columns twice
// as long: 4 x 2; 2 x 1.25 + 4 x 2; and of 10 bytes 3 in the pass that writes columns.
static void passes_that_write_columns_are_slower(void) {
    const Overheads slow = {0, 0.25, 1};
    assert_quantized(RECIPE("fp8", "delayed"), slow, 4 * 2);
    assert_quantized(RECIPE("fp8", "tensorwise"), slow, 2 * 1.25 + 4 * 2);
    assert_quantized(RECIPE("fp8", "rowwise"), slow, 7 * 1.25 + 3 * 2);
}

// What is gathered in 8 bits lies along rows, and must along columns for the weight gradient on
// GPUs whose products sum along rows only: the inputs of the columns (1024 and 1024 values a token)
// and the gradients of the rows' outputs (the same), 2 bytes each, half more here.
static void assert_transposed(const char *architecture, const char *training, const char *parallel,
                              double values) {
    Case c;
    const Overheads slow = {0, 0, 0.5};
    if (quantize_case(&c, training, parallel, &slow)) {
        Gpu *gpu = &test_pool(&c.scenario.cluster)->gpu;
        CU_ASSERT_EQUAL_FATAL(architecture_load(architecture, &c.arena, &gpu->shared).code,
                              STATUS_OK);
        case_resolve(&c);
        const Block *b = layer_block_of(&c, 0);
        double bytes = 0;
        for (int i = 0; i < b->num_backward; i++)
            if (strcmp(b->backward[i].name, "transpose") == 0) {
                CU_ASSERT_EQUAL(b->backward[i].phase, PHASE_BACKWARD_WEIGHT);
                CU_ASSERT_EQUAL(b->backward[i + 1].kind, OP_GEMM);
                bytes += b->backward[i].bytes;
            }
        CU_ASSERT_DOUBLE_EQUAL(bytes, TOKENS * values * 2 * 1.5, 1e-6);
    }
    case_free(&c);
}

static void gathered_values_are_transposed_where_products_need_rows(void) {
    const char *split = "{\"tp\": 4}", *unsplit = "{\"tp\": 4, \"sequence_parallel\": false}";
    assert_transposed("hopper", RECIPE("fp8", "delayed"), split, 4 * 1024);
    assert_transposed("ada", RECIPE("fp8", "tensorwise"), split, 4 * 1024);
    assert_transposed("blackwell", RECIPE("fp8", "delayed"), split, 0);
    assert_transposed("hopper", RECIPE("fp8", "rowwise"), split, 0); // gathers 16 bits
    assert_transposed("hopper", RECIPE("fp8", "delayed"), unsplit, 0);
    assert_transposed("hopper", RECIPE("fp8", "delayed"), NULL, 0);
    assert_transposed("hopper", RECIPE("bf16", "delayed"), split, 0);
}

// Of the gathers and scatters of a layer's four products, those that run piece by piece.
static int num_in_pieces(const char *recipe) {
    Case c;
    Arena arena = {0};
    const char *training = arena_printf(&arena, "%s, \"tp_comm_overlap\": true", recipe);
    int num = 0;
    if (quantize_case(&c, training, "{\"tp\": 4}", &NONE)) {
        const Block *b = layer_block_of(&c, 0);
        for (int i = 0; i < b->num_forward; i++) num += b->forward[i].pipelined_with >= 0;
        for (int i = 0; i < b->num_backward; i++)
            if (b->backward[i].pipelined_with >= 0) {
                num++;
                if (strstr(recipe, "rowwise"))
                    CU_ASSERT_FALSE(op_is_collective(&b->backward[i], COLLECTIVE_ALL_GATHER));
            }
    }
    case_free(&c);
    arena_free(&arena);
    return num;
}

// Two gathers and two scatters forward; backward the gathers of the rows' gradients and, where the
// stack does not hide them behind the weight gradient, the scatters of the columns'.
static void scales_of_rows_wait_for_whole_gathers(void) {
    const int with_one_scale = num_in_pieces(RECIPE("fp8", "tensorwise"));
    CU_ASSERT_EQUAL(num_in_pieces(RECIPE("fp8", "rowwise")), with_one_scale - 4);
}

CU_TestInfo block_quantize_tests[] = {
    {"recipes_move_their_passes", recipes_move_their_passes},
    {"eager_kernels_move_more_both_ways", eager_kernels_move_more_both_ways},
    {"passes_that_write_columns_are_slower", passes_that_write_columns_are_slower},
    {"gathered_values_are_transposed_where_products_need_rows",
     gathered_values_are_transposed_where_products_need_rows},
    {"scales_of_rows_wait_for_whole_gathers", scales_of_rows_wait_for_whole_gathers},
    CU_TEST_INFO_NULL,
};
