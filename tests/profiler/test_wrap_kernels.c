#include "profiler/wrap_kernels.h"

#include "profiler/wrap_name.h"

#include <CUnit/CUnit.h>

#include <stdio.h>

static ActivityRecord kernel(const char *name, uint64_t duration_ns) {
    return (ActivityRecord){
        .kind = ACTIVITY_KERNEL, .start_ns = 10, .end_ns = 10 + duration_ns, .name = name};
}

#define NCCL "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE"

// a: 100 + 300, NCCL: 500, a copy named like the kernel: 100.
static void names_are_summed(void) {
    Arena arena = {0};
    ActivityRecord first[] = {kernel("a", 100), kernel(NCCL, 500), kernel("a", 100)};
    ActivityRecord second[] = {kernel("a", 300)};
    first[2].kind = ACTIVITY_COPY;
    first[2].bytes = 64;
    const WrapLog logs[] = {{.work = first, .num_work = 3}, {.work = second, .num_work = 1}};
    KernelTotals totals = kernel_totals(logs, 2, &arena);
    CU_ASSERT_EQUAL_FATAL(totals.num_rows, 3);
    CU_ASSERT_TRUE(totals.rows[0].is_nccl);
    CU_ASSERT_STRING_EQUAL(totals.rows[1].name, "a");
    CU_ASSERT_EQUAL(totals.rows[1].num_calls, 2);
    CU_ASSERT_DOUBLE_EQUAL(totals.rows[1].total_s, 400e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(totals.rows[1].min_s, 100e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(totals.rows[1].max_s, 300e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(totals.rows[1].share_frac, 0.4, 1e-12);
    CU_ASSERT_EQUAL(totals.rows[2].kind, ACTIVITY_COPY);
    CU_ASSERT_EQUAL(totals.rows[2].bytes, 64);
    CU_ASSERT_EQUAL(totals.num_kernels, 3);
    CU_ASSERT_EQUAL(totals.num_copies, 1);
    CU_ASSERT_DOUBLE_EQUAL(totals.nccl_s, 500e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(totals.total_s, 1000e-9, 1e-15);
    arena_free(&arena);
}

static void many_names_are_kept_apart(void) {
    enum { NUM_NAMES = 3000 };
    Arena arena = {0};
    static char names[NUM_NAMES][16];
    static ActivityRecord work[2 * NUM_NAMES];
    for (int i = 0; i < 2 * NUM_NAMES; i++) {
        snprintf(names[i % NUM_NAMES], sizeof names[0], "kernel %d", i % NUM_NAMES);
        work[i] = kernel(names[i % NUM_NAMES], (uint64_t)(i % NUM_NAMES) + 1);
    }
    WrapLog log = {.work = work, .num_work = 2 * NUM_NAMES};
    KernelTotals totals = kernel_totals(&log, 1, &arena);
    CU_ASSERT_EQUAL_FATAL(totals.num_rows, NUM_NAMES);
    CU_ASSERT_STRING_EQUAL(totals.rows[0].name, "kernel 2999");
    for (int i = 0; i < NUM_NAMES; i++) CU_ASSERT_EQUAL_FATAL(totals.rows[i].num_calls, 2);
    arena_free(&arena);
}

static void names_are_readable(void) {
    static const struct {
        const char *mangled, *readable;
        bool nccl;
    } ROWS[] = {
        {"triton_poi_fused_add_0", "triton_poi_fused_add_0", false},
        {"_Znot_mangled_after_all", "_Znot_mangled_after_all", false},
        {NCCL, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", true},
        // void (anonymous namespace)::softmax_warp<float, 8>(float*, float const*, int)
        {"_ZN12_GLOBAL__N_112softmax_warpIfLi8EEEvPT_PKS1_i", "anonymous::softmax_warp", false},
        // void at::native::fill<at::native::One<float> >(int, at::native::One<float>)
        {"_ZN2at6native4fillINS0_3OneIfEEEEviT_", "at::native::fill", false},
    };
    Arena arena = {0};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        CU_ASSERT_STRING_EQUAL(kernel_name_readable(ROWS[i].mangled, &arena), ROWS[i].readable);
        CU_ASSERT_EQUAL(kernel_is_nccl(ROWS[i].mangled), ROWS[i].nccl);
    }
    arena_free(&arena);
}

CU_TestInfo wrap_kernels_tests[] = {
    {"names are summed", names_are_summed},
    {"many names are kept apart", many_names_are_kept_apart},
    {"names are readable", names_are_readable},
    CU_TEST_INFO_NULL,
};
