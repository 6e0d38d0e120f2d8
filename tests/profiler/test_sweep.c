#include "profiler/memory_ops.h"
#include "profiler/profile_rows.h"
#include "profiler/profile_run.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The same shape twice would be one row, and the second measurement lost.
static void no_shape_is_there_twice(void) {
    Arena arena = {0};
    for (int kind = 0; kind < NUM_SWEEPS; kind++) {
        for (int quick = 0; quick < 2; quick++) {
            Sweep sweep = sweep_new((SweepKind)kind, quick, &arena);
            CU_ASSERT_FATAL(sweep.num_requests > 0);
            const char **keys = ARENA_ARRAY(&arena, sweep.num_requests, const char *);
            for (int i = 0; i < sweep.num_requests; i++)
                keys[i] = profile_key((SweepKind)kind, &sweep.requests[i], &arena);
            qsort(keys, (size_t)sweep.num_requests, sizeof *keys, compare);
            for (int i = 1; i < sweep.num_requests; i++)
                if (strcmp(keys[i], keys[i - 1]) == 0) CU_FAIL("a shape is there twice");
        }
    }
    arena_free(&arena);
}

// A quick folder becomes a full one by measuring the rest: what calibrate reads needs 200 shapes in
// both (docs/calibration.md).
static void calibration_has_enough_shapes(void) {
    Arena arena = {0};
    CU_ASSERT(sweep_new(SWEEP_GEMM, true, &arena).num_requests >= 200);
    CU_ASSERT(sweep_new(SWEEP_GEMM, false, &arena).num_requests >= 200);
    arena_free(&arena);
}

static double most(double a, double b) {
    return a > b ? a : b;
}

// Seconds of one call at 550 TFLOP/s (tf32: half) and 2.2 TB/s: below what an H100 reaches.
static double call_s(const GpuRequest *request) {
    const GemmRequest *gemm = &request->gemm;
    if (request->kind == GPU_WORK_LAUNCH) return 1e-3;
    if (request->kind == GPU_WORK_MEMORY) {
        const MemoryOp *op = memory_op_find(request->memory.op);
        return memory_op_bytes(op, request->memory.rows, request->memory.columns) / 2.2e12;
    }
    double flops = 2.0 * gemm->m * gemm->n * gemm->k;
    return flops / (gemm->dtype == NUMBER_TF32 ? 2.75e14 : 5.5e14);
}

// The longest a sweep can take: every shape uses up its time or its fewest repetitions (6 and 3 to
// warm up), and 5 ms to prepare.
static double sweep_s(bool quick, double most_s) {
    Arena arena = {0};
    double sum_s = 0;
    for (int kind = 0; kind < NUM_SWEEPS; kind++) {
        Sweep sweep = sweep_new((SweepKind)kind, quick, &arena);
        for (int i = 0; i < sweep.num_requests; i++)
            sum_s += kind == SWEEP_SUSTAINED ? SUSTAINED_S
                                             : 5e-3 + most(9 * call_s(&sweep.requests[i]), most_s);
    }
    arena_free(&arena);
    return sum_s;
}

static void a_quick_sweep_takes_a_minute_at_most(void) {
    CU_ASSERT(sweep_s(true, 0.04) < 60);
}

static void a_full_sweep_takes_six_minutes_at_most(void) {
    CU_ASSERT(sweep_s(false, 0.1) < 360);
    CU_ASSERT(sweep_s(false, 0.1) > sweep_s(true, 0.04));
}

// What the kernels refuse (profiler/gpu/work_memory.c): columns in packs of 8, heads of 128 for
// rope, and rows of norms and softmax that do not fit a block's registers.
static void kernels_take_every_shape(void) {
    Arena arena = {0};
    for (int quick = 0; quick < 2; quick++) {
        Sweep sweep = sweep_new(SWEEP_MEMORY, quick, &arena);
        for (int i = 0; i < sweep.num_requests; i++) {
            const MemoryRequest *memory = &sweep.requests[i].memory;
            CU_ASSERT_PTR_NOT_NULL_FATAL(memory_op_find(memory->op));
            CU_ASSERT_EQUAL(memory->columns % (strcmp(memory->op, "rope") == 0 ? 128 : 8), 0);
            if (strstr(memory->op, "norm_") && strcmp(memory->op, "gradient_norm") != 0)
                CU_ASSERT(memory->columns <= 16384);
            if (strncmp(memory->op, "softmax", 7) == 0)
                CU_ASSERT(memory->columns <= 16384 && memory->rows % memory->columns == 0);
        }
    }
    arena_free(&arena);
}

// fp8 products need rows of 16 bytes of every operand.
static void fp8_shapes_are_aligned(void) {
    Arena arena = {0};
    Sweep sweep = sweep_new(SWEEP_GEMM, false, &arena);
    for (int i = 0; i < sweep.num_requests; i++) {
        const GemmRequest *gemm = &sweep.requests[i].gemm;
        CU_ASSERT(gemm->n % 8 == 0 && gemm->k % 8 == 0);
        if (gemm->dtype != NUMBER_FP8) continue;
        CU_ASSERT(gemm->m % 16 == 0 && gemm->n % 16 == 0 && gemm->k % 16 == 0);
        CU_ASSERT_EQUAL(gemm->out_dtype, NUMBER_BFLOAT16);
    }
    arena_free(&arena);
}

// Every operator is measured, and every header has the columns of its keys.
static void every_operator_is_measured(void) {
    Arena arena = {0};
    for (int quick = 0; quick < 2; quick++) {
        Sweep sweep = sweep_new(SWEEP_MEMORY, quick, &arena);
        for (int op = 0; op < NUM_MEMORY_OPS; op++) {
            bool found = false;
            for (int i = 0; i < sweep.num_requests; i++)
                found |= strcmp(sweep.requests[i].memory.op, MEMORY_OPS[op].name) == 0;
            CU_ASSERT(found);
        }
    }
    arena_free(&arena);
}

// copy reads and writes 2 bytes an element; softmax reads, of squares of 4 columns,
// (1 + 2 + 3 + 4) / 16 = 62.5 %; adamw reads 16 and writes 14 a parameter.
static void bytes_of_operators(void) {
    CU_ASSERT_DOUBLE_EQUAL(memory_op_bytes(memory_op_find("copy"), 3, 8), 96, 0);
    CU_ASSERT_DOUBLE_EQUAL(memory_op_bytes(memory_op_find("softmax_forward"), 8, 4),
                           32 * 2 * (1 + 0.625), 0);
    CU_ASSERT_DOUBLE_EQUAL(memory_op_bytes(memory_op_find("adamw"), 2, 8), 16 * 30, 0);
    // tokens 4, rows read 2 x 8, rows written 2 x 8, each of 5 rows
    CU_ASSERT_DOUBLE_EQUAL(memory_op_bytes(memory_op_find("embedding_forward"), 5, 8), 5 * (4 + 32),
                           0);
}

CU_TestInfo sweep_tests[] = {
    {"no_shape_is_there_twice", no_shape_is_there_twice},
    {"calibration_has_enough_shapes", calibration_has_enough_shapes},
    {"a_quick_sweep_takes_a_minute_at_most", a_quick_sweep_takes_a_minute_at_most},
    {"a_full_sweep_takes_six_minutes_at_most", a_full_sweep_takes_six_minutes_at_most},
    {"kernels_take_every_shape", kernels_take_every_shape},
    {"fp8_shapes_are_aligned", fp8_shapes_are_aligned},
    {"every_operator_is_measured", every_operator_is_measured},
    {"bytes_of_operators", bytes_of_operators},
    CU_TEST_INFO_NULL,
};
