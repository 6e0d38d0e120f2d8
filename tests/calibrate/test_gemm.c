#include "calibrate/fit_gemm.h"

#include "costmodel/kernel/kernel_gemm.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// A made-up kernel on an H100.
static GemmKernel kernel_made_up(void) {
    return (GemmKernel){.present = true,
                        .launch_s = 4e-6,
                        .max_frac = 0.75,
                        .tile_64x64_frac = 0.5,
                        .tile_64x128_frac = 0.7,
                        .tile_128x128_frac = 0.9,
                        .half_k = 100,
                        .latency_s = 1e-9,
                        .tail_frac = 0.5,
                        .split_s = 3e-6,
                        .split_from_k = 512,
                        .split_from_elements = 1000,
                        .split_bytes = 10,
                        .memory_frac = 0.8,
                        .l2_speedup = 1,
                        .l2_frac = 0.5,
                        .l2_power = 4,
                        .loss_frac = 0.1,
                        .half_s = 2e-3,
                        .overlap_power = 4};
}

static Gpu gpu_h100(Arena *arena) {
    Gpu gpu;
    CU_ASSERT_EQUAL_FATAL(gpu_load_named("h100-sxm-80g", arena, &gpu).code, STATUS_OK);
    return gpu;
}

// 512 rows: m, n, k of eight sizes each, measured as the made-up kernel with 1 % of fixed noise.
static KernelTable table_made_up(const Gpu *gpu, Arena *arena, double **latency_s) {
    static const char *const NAMES[] = {"gemm_dtype", "m", "n", "k"};
    static const int SIZES[] = {32, 128, 512, 1024, 2048, 4096, 6144, 8192};
    enum { NUM_ROWS = 512 };
    const char **cells = ARENA_ARRAY(arena, 4 * NUM_ROWS, const char *);
    int *lines = ARENA_ARRAY(arena, NUM_ROWS, int);
    *latency_s = ARENA_ARRAY(arena, NUM_ROWS, double);
    GemmKernel kernel = kernel_made_up();
    for (int i = 0; i < NUM_ROWS; i++) {
        int m = SIZES[i % 8], n = SIZES[i / 8 % 8], k = SIZES[i / 64];
        cells[4 * i] = "bfloat16";
        cells[4 * i + 1] = arena_printf(arena, "%d", m);
        cells[4 * i + 2] = arena_printf(arena, "%d", n);
        cells[4 * i + 3] = arena_printf(arena, "%d", k);
        lines[i] = i + 2;
        (*latency_s)[i] =
            kernel_gemm_formula_s(gpu, &kernel, GEMM_BFLOAT16, m, n, k) * (1 + 0.01 * sin(7.3 * i));
    }
    return (KernelTable){.file = "gemm.csv",
                         .num_rows = NUM_ROWS,
                         .num_columns = 4,
                         .names = NAMES,
                         .cells = cells,
                         .line_numbers = lines};
}

static void fit_recovers_a_known_kernel(void) {
    Arena arena = {0};
    Gpu gpu = gpu_h100(&arena);
    double *latency_s;
    KernelTable table = table_made_up(&gpu, &arena, &latency_s);
    KindFit fit = {0}, again = {0};
    CU_ASSERT_EQUAL_FATAL(gemm_fit(&table, latency_s, &gpu, &arena, &fit).code, STATUS_OK);
    CU_ASSERT_EQUAL(fit.num_groups, 64);
    CU_ASSERT_EQUAL(fit.left_out.num_priced, 512);
    CU_ASSERT(fit.left_out.median_frac < 0.02);
    CU_ASSERT(fit.left_out.p90_frac < 0.05);
    char *text = cJSON_PrintUnformatted(fit.section);
    JsonNode root;
    KernelProfile profile = {0};
    CU_ASSERT_EQUAL(json_parse(text, strlen(text), "p.json", &arena, &root).code, STATUS_OK);
    CU_ASSERT_EQUAL(gemm_kernels_read(&root, &arena, &profile.gemm).code, STATUS_OK);
    double *predicted_s = ARENA_ARRAY(&arena, table.num_rows, double);
    CU_ASSERT_EQUAL(gemm_price(&table, &gpu, &profile, &arena, predicted_s, NULL).code, STATUS_OK);
    CU_ASSERT(fit_score(table.num_rows, predicted_s, latency_s).median_frac < 0.015);
    // The launch is what the smallest shapes show; the file is the same on a second run.
    CU_ASSERT_DOUBLE_EQUAL(profile.gemm.dtypes[GEMM_BFLOAT16].launch_s, 4e-6, 0.3e-6);
    CU_ASSERT_EQUAL(gemm_fit(&table, latency_s, &gpu, &arena, &again).code, STATUS_OK);
    char *text_again = cJSON_PrintUnformatted(again.section);
    CU_ASSERT_STRING_EQUAL(text, text_again);
    cJSON_free(text);
    cJSON_free(text_again);
    cJSON_Delete(fit.section);
    cJSON_Delete(again.section);
    arena_free(&arena);
}

// A product of 128 x 256 x 1000 on one tile: worked out in the comments.
static void formula_is_what_the_header_says(void) {
    Arena arena = {0};
    Gpu gpu = gpu_h100(&arena);
    gpu.num_sms = 1;
    gpu.peak_flops_per_s[PRECISION_BF16] = 1e12;
    GemmKernel kernel = kernel_made_up();
    kernel.loss_frac = 0;
    kernel.latency_s = 0;
    kernel.overlap_power = 100; // the longer one counts: compute
    // One 128 x 256 tile: 2 x 128 x 256 x (1000 + 100) / (0.75 x 1e12) = 96.12 us, launch 4 us.
    // A split gains nothing on one SM.
    CU_ASSERT_DOUBLE_EQUAL(kernel_gemm_formula_s(&gpu, &kernel, GEMM_BFLOAT16, 128, 256, 1000),
                           100.12e-6, 0.01e-6);
    // 129 rows: 256 x 128 tiles take two: 192.2 us. Three 64 x 128 columns of two: 50 % of ...
    // more.
    CU_ASSERT(kernel_gemm_formula_s(&gpu, &kernel, GEMM_BFLOAT16, 129, 256, 1000) > 140e-6);
    arena_free(&arena);
}

// A cache of 96 MB, read 4 times as fast as memory at 1 TB/s, and two copies of the weights in
// turn. 48 MB: 96 MB touched, (1 / 1.1)^50 = 0.0085, 0.9916 kept: 48 us x (0.0084 + 0.9916 / 4)
// = 12.3 us. 56 MB: 112 MB touched, (1.0606)^50 = 18.9, 0.050 kept: 56 us x (0.950 + 0.050 / 4)
// = 53.9 us. In a step other layers come between: 48 us. The launch is 4 us, the compute next to
// nothing.
static void weights_whose_copies_fit_stay_in_the_cache(void) {
    Arena arena = {0};
    Gpu gpu = gpu_h100(&arena);
    gpu.l2_bytes = 96e6;
    gpu.memory_bandwidth_bytes_per_s = 1e12;
    gpu.peak_flops_per_s[PRECISION_BF16] = 1e18;
    GemmKernels kernels = {0};
    GemmKernel *kernel = &kernels.dtypes[GEMM_BFLOAT16];
    *kernel = kernel_made_up();
    kernel->latency_s = 0;
    kernel->memory_frac = 1;
    kernel->l2_speedup = 4;
    kernel->l2_frac = 1.1;
    kernel->l2_power = 50;
    kernel->overlap_power = 100;
    CU_ASSERT_DOUBLE_EQUAL(kernel_gemm_s(&gpu, &kernels, GEMM_BFLOAT16, 1, 6000, 4000), 16.3e-6,
                           0.1e-6);
    CU_ASSERT_DOUBLE_EQUAL(kernel_gemm_s(&gpu, &kernels, GEMM_BFLOAT16, 1, 7000, 4000), 57.9e-6,
                           0.1e-6);
    CU_ASSERT_DOUBLE_EQUAL(kernel_gemm_product_s(&gpu, &kernels, GEMM_BFLOAT16, 1, 6000, 4000),
                           52e-6, 0.1e-6);
    arena_free(&arena);
}

static void no_format_is_priced_by_another(void) {
    Arena arena = {0};
    Gpu gpu = gpu_h100(&arena);
    GemmKernels kernels = {0};
    kernels.dtypes[GEMM_NVFP4] = kernel_made_up(); // an H100 has no such units
    CU_ASSERT(isnan(kernel_gemm_s(&gpu, &kernels, GEMM_BFLOAT16, 1, 1, 1)));
    CU_ASSERT(isnan(kernel_gemm_s(&gpu, &kernels, GEMM_NVFP4, 1, 1, 1)));
    arena_free(&arena);
}

static void impossible_tables_are_refused(void) {
    Arena arena = {0};
    Gpu gpu = gpu_h100(&arena);
    double *latency_s;
    KindFit fit = {0};
    KernelTable table = table_made_up(&gpu, &arena, &latency_s);
    for (int i = 0; i < table.num_rows; i++) latency_s[i] /= 1000; // seconds read as milliseconds
    Status status = gemm_fit(&table, latency_s, &gpu, &arena, &fit);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "are all in milliseconds, and of this GPU?"));
    table.cells = memcpy(arena_alloc(&arena, 4 * 512 * sizeof *table.cells), table.cells,
                         4 * 512 * sizeof *table.cells);
    ((const char **)(uintptr_t)table.cells)[4] = "nvfp4";
    ASSERT_REFUSED(gemm_fit(&table, latency_s, &gpu, &arena, &fit),
                   "gemm.csv: row 3: gemm_dtype: h100-sxm-80g has no nvfp4 units");
    arena_free(&arena);
}

// What the bundled profiles promise on the public tables, where those are at hand.
static void bundled_profiles_price_the_public_tables(void) {
    static const char *const CASES[][2] = {{"h100_sxm", "h100-sxm-80g"},
                                           {"a100_sxm", "a100-sxm-80g"}};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        KernelTable table;
        KernelProfile profile;
        Gpu gpu;
        double *latency_s;
        const char *path = arena_printf(&arena, "%s/../shared/data/kernels/%s/gemm.csv.gz",
                                        MESHWRIGHT_SOURCE_DIR, CASES[i][0]);
        if (!kernels_exist(CASES[i][1], &arena) ||
            kernel_table_load(path, &arena, &table).code != STATUS_OK) {
            printf("skipped: no %s, or no profile of it\n", path);
        } else {
            CU_ASSERT_EQUAL_FATAL(gpu_load_named(CASES[i][1], &arena, &gpu).code, STATUS_OK);
            CU_ASSERT_EQUAL_FATAL(kernels_load_named(CASES[i][1], &arena, &profile).code,
                                  STATUS_OK);
            CU_ASSERT_EQUAL(kernel_table_latency_s(&table, &arena, &latency_s).code, STATUS_OK);
            double *predicted_s = ARENA_ARRAY(&arena, table.num_rows, double);
            CU_ASSERT_EQUAL(gemm_price(&table, &gpu, &profile, &arena, predicted_s, NULL).code,
                            STATUS_OK);
            FitScore score = fit_score(table.num_rows, predicted_s, latency_s);
            if (!profile.gemm.dtypes[GEMM_BFLOAT16].present) score.num_priced = table.num_rows;
            CU_ASSERT_EQUAL(score.num_priced, table.num_rows);
            CU_ASSERT(score.median_frac < 0.025);
            CU_ASSERT(score.p90_frac < 0.08);
        }
        arena_free(&arena);
    }
}

CU_TestInfo gemm_tests[] = {
    {"fit_recovers_a_known_kernel", fit_recovers_a_known_kernel},
    {"formula_is_what_the_header_says", formula_is_what_the_header_says},
    {"weights_whose_copies_fit_stay_in_the_cache", weights_whose_copies_fit_stay_in_the_cache},
    {"no_format_is_priced_by_another", no_format_is_priced_by_another},
    {"impossible_tables_are_refused", impossible_tables_are_refused},
    {"bundled_profiles_price_the_public_tables", bundled_profiles_price_the_public_tables},
    CU_TEST_INFO_NULL,
};
