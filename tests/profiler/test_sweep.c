#include "profiler/memory_ops.h"
#include "profiler/profile_rows.h"
#include "profiler/profile_run.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>
#include <string.h>

enum { NUM_GPUS = 8 };

static int compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The same shape twice would be one row, and the second measurement lost.
static void no_shape_is_there_twice(void) {
    Arena arena = {0};
    for (int kind = 0; kind < NUM_SWEEPS; kind++) {
        for (int quick = 0; quick < 2; quick++) {
            Sweep sweep = sweep_new((SweepKind)kind, quick, NUM_GPUS, &arena);
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

// A quick folder becomes a full one by measuring the rest: what calibrate reads needs 200 shapes of
// products in both and of attention in the full one, and 20 of collectives (docs/calibration.md).
static void calibration_has_enough_shapes(void) {
    Arena arena = {0};
    CU_ASSERT(sweep_new(SWEEP_ATTENTION, false, 1, &arena).num_requests >= 200);
    CU_ASSERT(sweep_new(SWEEP_NCCL, true, 2, &arena).num_requests >= 20);
    CU_ASSERT(sweep_new(SWEEP_GEMM, true, 1, &arena).num_requests >= 200);
    CU_ASSERT(sweep_new(SWEEP_GEMM, false, 1, &arena).num_requests >= 200);
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
    if (request->kind == GPU_WORK_HOST_COPY) return (double)request->host_copy.num_bytes / 2e10;
    if (request->kind == GPU_WORK_ATTENTION) return attention_flops(&request->attention) / 2.5e14;
    double flops = 2.0 * gemm->m * gemm->n * gemm->k;
    return flops / (gemm->dtype == NUMBER_TF32 ? 2.75e14 : 5.5e14);
}

// To prepare a shape: 5 ms, 0.1 s to pin memory, and half a second for each plan of cuDNN's; a
// backward needs two.
static double prepare_s(const GpuRequest *request) {
    if (request->kind == GPU_WORK_HOST_COPY) return 0.1;
    if (request->kind != GPU_WORK_ATTENTION) return 5e-3;
    return request->attention.backward ? 1.0 : 0.5;
}

// The longest a sweep of one GPU can take: every shape uses up its time or its fewest repetitions
// (6 and 3 to warm up); products beside something are measured three times.
static double sweep_s(bool quick, double most_s) {
    Arena arena = {0};
    double sum_s = 0;
    for (int kind = 0; kind < NUM_SWEEPS; kind++) {
        Sweep sweep = sweep_new((SweepKind)kind, quick, 1, &arena);
        for (int i = 0; i < sweep.num_requests; i++) {
            const GpuRequest *request = &sweep.requests[i];
            double once_s = prepare_s(request) + most(9 * call_s(request), most_s);
            int times = request->kind == GPU_WORK_BESIDE ? 3 : 1;
            sum_s += kind == SWEEP_SUSTAINED ? SUSTAINED_S : times * once_s;
        }
    }
    arena_free(&arena);
    return sum_s;
}

static void a_quick_sweep_takes_a_minute_at_most(void) {
    CU_ASSERT(sweep_s(true, 0.04) < 60);
}

static void a_full_sweep_takes_nine_minutes_at_most(void) {
    CU_ASSERT(sweep_s(false, 0.1) < 540);
    CU_ASSERT(sweep_s(false, 0.1) > sweep_s(true, 0.04));
}

// What the kernels refuse (profiler/gpu/work_memory.c): columns in packs of 8, heads of 128 for
// rope, and rows of norms and softmax that do not fit a block's registers.
static void kernels_take_every_shape(void) {
    Arena arena = {0};
    for (int quick = 0; quick < 2; quick++) {
        Sweep sweep = sweep_new(SWEEP_MEMORY, quick, 1, &arena);
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

// Whole groups of heads, and no more plans of cuDNN's than the backend keeps
// (MAX_PLANS of backend/cuda/cudnn_attention.c), forward ones of backwards among them.
static void attention_has_plans_for_every_shape(void) {
    Arena arena = {0};
    Sweep forward = sweep_new(SWEEP_ATTENTION, false, 1, &arena);
    Sweep backward = sweep_new(SWEEP_ATTENTION_BACKWARD, false, 1, &arena);
    CU_ASSERT(forward.num_requests <= 256 && 2 * backward.num_requests <= 256);
    for (int i = 0; i < forward.num_requests + backward.num_requests; i++) {
        bool back = i >= forward.num_requests;
        const AttentionRequest *attention =
            &(back ? &backward.requests[i - forward.num_requests] : &forward.requests[i])
                 ->attention;
        CU_ASSERT_EQUAL(attention->backward, back);
        CU_ASSERT_EQUAL(attention->heads % attention->kv_heads, 0);
        CU_ASSERT(attention->head_dim == 64 || attention->head_dim == 128);
    }
    arena_free(&arena);
}

static bool has_key(const Sweep *sweep, SweepKind kind, const char *key, Arena *arena) {
    for (int i = 0; i < sweep->num_requests; i++)
        if (strcmp(profile_key(kind, &sweep->requests[i], arena), key) == 0) return true;
    return false;
}

// So that nothing is measured for the quick list alone.
static void quick_shapes_are_among_all(void) {
    static const SweepKind KINDS[] = {SWEEP_ATTENTION, SWEEP_ATTENTION_BACKWARD, SWEEP_NCCL,
                                      SWEEP_SEND_RECV, SWEEP_CONTENTION,         SWEEP_HOST_COPY};
    Arena arena = {0};
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        Sweep quick = sweep_new(KINDS[k], true, NUM_GPUS, &arena);
        Sweep all = sweep_new(KINDS[k], false, NUM_GPUS, &arena);
        CU_ASSERT(quick.num_requests > 0 && quick.num_requests < all.num_requests);
        for (int i = 0; i < quick.num_requests; i++)
            CU_ASSERT(
                has_key(&all, KINDS[k], profile_key(KINDS[k], &quick.requests[i], &arena), &arena));
    }
    arena_free(&arena);
}

// Bits of the group sizes that a sweep has.
static unsigned sizes_of(SweepKind kind, int num_gpus, Arena *arena) {
    Sweep sweep = sweep_new(kind, false, num_gpus, arena);
    unsigned sizes = 0;
    for (int i = 0; i < sweep.num_requests; i++) {
        const TeamRequest *team = &sweep.requests[i].team;
        if (team->num_gpus == 0) continue; // beside a copy
        sizes |= 1u << team->num_gpus;
        CU_ASSERT_EQUAL(team->num_elements % team->num_gpus, 0);
    }
    return sizes;
}

static void groups_are_of_the_gpus_that_are_there(void) {
    Arena arena = {0};
    CU_ASSERT_EQUAL(sizes_of(SWEEP_NCCL, 1, &arena), 0);
    CU_ASSERT_EQUAL(sizes_of(SWEEP_SEND_RECV, 1, &arena), 0);
    CU_ASSERT_EQUAL(sizes_of(SWEEP_CONTENTION, 1, &arena), 0);
    CU_ASSERT(sweep_new(SWEEP_CONTENTION, true, 1, &arena).num_requests > 0);
    CU_ASSERT_EQUAL(sizes_of(SWEEP_NCCL, 2, &arena), 1 << 2);
    CU_ASSERT_EQUAL(sizes_of(SWEEP_NCCL, 6, &arena), 1 << 2 | 1 << 4 | 1 << 6);
    CU_ASSERT_EQUAL(sizes_of(SWEEP_SEND_RECV, 8, &arena), 1 << 2 | 1 << 4 | 1 << 8);
    CU_ASSERT_EQUAL(sizes_of(SWEEP_CONTENTION, 8, &arena), 1 << 8);
    arena_free(&arena);
}

// fp8 products need rows of 16 bytes of every operand, and write bfloat16 or add to float32.
static void fp8_shapes_are_aligned(void) {
    Arena arena = {0};
    for (int kind = SWEEP_GEMM; kind <= SWEEP_GEMM_BACKWARD; kind++) {
        Sweep sweep = sweep_new((SweepKind)kind, false, 1, &arena);
        for (int i = 0; i < sweep.num_requests; i++) {
            const GemmRequest *gemm = &sweep.requests[i].gemm;
            CU_ASSERT(gemm->n % 8 == 0 && gemm->k % 8 == 0);
            if (gemm->dtype != NUMBER_FP8) continue;
            CU_ASSERT(gemm->m % 16 == 0 && gemm->n % 16 == 0 && gemm->k % 16 == 0);
            CU_ASSERT_EQUAL(gemm->out_dtype, gemm->accumulate ? NUMBER_FLOAT32 : NUMBER_BFLOAT16);
        }
    }
    arena_free(&arena);
}

// Forward and both backward products in bfloat16, float16, tf32 and fp8; the weight's gradient
// added up in float32 and by itself.
static void every_format_is_measured_both_ways(void) {
    static const Number DTYPES[] = {NUMBER_BFLOAT16, NUMBER_FLOAT16, NUMBER_TF32, NUMBER_FP8};
    Arena arena = {0};
    for (int quick = 0; quick < 2; quick++) {
        int found[NUM_NUMBERS][3][2] = {0}; // by format, layout, and whether it adds up
        for (int kind = SWEEP_GEMM; kind <= SWEEP_GEMM_OTHER; kind++) {
            Sweep sweep = sweep_new((SweepKind)kind, quick, 1, &arena);
            for (int i = 0; i < sweep.num_requests; i++) {
                const GemmRequest *gemm = &sweep.requests[i].gemm;
                found[gemm->dtype][gemm->layout][gemm->accumulate]++;
            }
        }
        for (size_t i = 0; i < sizeof DTYPES / sizeof *DTYPES; i++) {
            CU_ASSERT(found[DTYPES[i]][GEMM_FORWARD][false] > 0);
            int num = found[DTYPES[i]][GEMM_BACKWARD_INPUT][false];
            CU_ASSERT(num > 0);
            CU_ASSERT_EQUAL(found[DTYPES[i]][GEMM_BACKWARD_WEIGHT][false], num);
            CU_ASSERT_EQUAL(found[DTYPES[i]][GEMM_BACKWARD_WEIGHT][true], num);
        }
    }
    arena_free(&arena);
}

// Every operator is measured, and every header has the columns of its keys.
static void every_operator_is_measured(void) {
    Arena arena = {0};
    for (int quick = 0; quick < 2; quick++) {
        Sweep sweep = sweep_new(SWEEP_MEMORY, quick, 1, &arena);
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
    {"a_full_sweep_takes_nine_minutes_at_most", a_full_sweep_takes_nine_minutes_at_most},
    {"kernels_take_every_shape", kernels_take_every_shape},
    {"attention_has_plans_for_every_shape", attention_has_plans_for_every_shape},
    {"quick_shapes_are_among_all", quick_shapes_are_among_all},
    {"groups_are_of_the_gpus_that_are_there", groups_are_of_the_gpus_that_are_there},
    {"fp8_shapes_are_aligned", fp8_shapes_are_aligned},
    {"every_format_is_measured_both_ways", every_format_is_measured_both_ways},
    {"every_operator_is_measured", every_operator_is_measured},
    {"bytes_of_operators", bytes_of_operators},
    CU_TEST_INFO_NULL,
};
