// Products priced by the measured kernels of a GPU.
#include "costmodel/kernel/compute.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

static const double LAUNCH_S = 1e-5;

// Kernels of one number format that reach this part of the peak with tiles of 128 x 256. Smaller
// tiles are too slow to be taken, k is never split, memory hides behind compute.
static GemmKernel kernel_made_up(double max_frac) {
    return (GemmKernel){.present = true,
                        .launch_s = LAUNCH_S,
                        .max_frac = max_frac,
                        .tile_64x64_frac = 0.1,
                        .tile_64x128_frac = 0.1,
                        .tile_128x128_frac = 0.1,
                        .tail_frac = 1,
                        .split_from_k = 1e12,
                        .memory_frac = 1,
                        .l2_speedup = 1,
                        .l2_frac = 0.5,
                        .l2_power = 4,
                        .half_s = 1,
                        .overlap_power = 100};
}

// Of the made-up GPU: half of the peak in 16 bits, 0.4 in 8, an eighth in 8 with scales of blocks;
// 4 bits were not measured. In 8 bits the benchmark quantizes too, which takes a launch of its own.
static CalibratedKernels kernels_made_up(void) {
    CalibratedKernels kernels = {.gpu = made_up_gpu()};
    kernels.gpu.l2_bytes = 1e6;
    kernels.profile.gemm.dtypes[GEMM_BFLOAT16] = kernel_made_up(0.5);
    kernels.profile.gemm.dtypes[GEMM_FP8] = kernel_made_up(0.4);
    kernels.profile.gemm.dtypes[GEMM_FP8_BLOCK] = kernel_made_up(0.125);
    kernels.profile.gemm.dtypes[GEMM_FP8].launch_s = 2 * LAUNCH_S;
    return kernels;
}

// Without a power limit. A launch by the compact formula takes as long as a measured one.
static Pool pool_with(const CalibratedKernels *kernels) {
    Pool pool = {.gpu = made_up_gpu(), .kernels = kernels, .power_watts_per_gpu = 1e4};
    pool.gpu.efficiency.launch_s = LAUNCH_S;
    return pool;
}

static Op gemm(int precision, double groups, double m, double n, double k) {
    return (Op){.kind = OP_GEMM,
                .gemm.groups = groups,
                .gemm.m = m,
                .gemm.n = n,
                .gemm.k = k,
                .precision = precision,
                .flops = 2 * groups * m * n * k,
                .num_kernels = 1};
}

// 2560 x 2560 outputs are 20 x 10 tiles of 128 x 256: two full waves on 100 SMs.
static Op square(int precision) {
    return gemm(precision, 1, 2560, 2560, 1e4);
}

static const double SQUARE_FLOPS = 2 * 2560.0 * 2560 * 1e4;

// At half of 1e14 flop/s; where the kernels' own GPU has half the peak, at a quarter. The compact
// formula knows no such half: tiles of 100 x 100 are 26 x 26 in 7 waves.
static void measured_kernels_price_products(void) {
    CalibratedKernels kernels = kernels_made_up();
    Pool pool = pool_with(&kernels);
    const Op bf16 = square(PRECISION_BF16), fp16 = square(PRECISION_FP16);
    ASSERT_CLOSE(op_compute_s(&pool, &bf16), LAUNCH_S + SQUARE_FLOPS / 5e13);
    ASSERT_CLOSE(op_compute_s(&pool, &fp16), LAUNCH_S + SQUARE_FLOPS / 5e13);
    kernels.gpu.peak_flops_per_s[PRECISION_BF16] /= 2;
    ASSERT_CLOSE(op_compute_s(&pool, &bf16), LAUNCH_S + SQUARE_FLOPS / 2.5e13);
    pool.kernels = NULL;
    ASSERT_CLOSE(op_compute_s(&pool, &bf16), LAUNCH_S + SQUARE_FLOPS / (1e14 * 676 / 700));
}

typedef struct {
    int precision, recipe;
    double rate; // flop/s; 0: not measured
} FormatRow;

// Scales of rows are priced as those of blocks. Without kernels of the format, the compact formula:
// 26 x 26 tiles in 7 waves.
static void formats_are_priced_by_the_nearest_measured(void) {
    static const FormatRow ROWS[] = {
        {PRECISION_FP8, FP8_DELAYED, 0.4 * 2e14},
        {PRECISION_FP8, FP8_CURRENT, 0.4 * 2e14},
        {PRECISION_FP8, FP8_TENSORWISE, 0.4 * 2e14},
        {PRECISION_FP8, FP8_ROWWISE, 0.125 * 2e14},
        {PRECISION_FP8, FP8_BLOCK, 0.125 * 2e14},
        {PRECISION_MXFP8, FP8_MXFP8, 0.4 * 2e14},
        {PRECISION_BF16, FP8_ROWWISE, 0.5 * 1e14},
        {PRECISION_NVFP4, FP8_NVFP4, 0},
        {PRECISION_TF32, FP8_DELAYED, 0},
        {PRECISION_FP32, FP8_DELAYED, 0},
    };
    const CalibratedKernels kernels = kernels_made_up();
    const Pool pool = pool_with(&kernels);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Op op = square(ROWS[i].precision);
        op.gemm.fp8_recipe = ROWS[i].recipe;
        const double compact = pool.gpu.peak_flops_per_s[op.precision] * 676 / 700;
        const double rate = ROWS[i].rate > 0 ? ROWS[i].rate : compact;
        ASSERT_CLOSE(op_compute_s(&pool, &op), LAUNCH_S + SQUARE_FLOPS / rate);
    }
}

// 8 products of 1280 x 1280, each 10 x 5 tiles: half a wave, so that alone each takes as long as
// twice its flops; as 10240 rows together they fill 4 waves. One by one they are launched beside
// each other: one launch is seen, where the rest of a product takes longer than its launch.
static void experts_run_one_by_one(void) {
    const CalibratedKernels kernels = kernels_made_up();
    const Pool pool = pool_with(&kernels);
    const Op grouped = gemm(PRECISION_BF16, 8, 1280, 1280, 1e4);
    Op separate = grouped;
    separate.gemm.separate = true;
    ASSERT_CLOSE(op_compute_s(&pool, &grouped), LAUNCH_S + grouped.flops / 5e13);
    ASSERT_CLOSE(op_compute_s(&pool, &separate), LAUNCH_S + 2 * separate.flops / 5e13);
}

// A wave of k = 1000 is 6.5536e9 flop: 131.072 us, after a launch of 1 ms. Where the launch is most
// of a product, each of them takes half as long as alone, after one launch.
static void short_experts_take_half_a_product(void) {
    CalibratedKernels kernels = kernels_made_up();
    kernels.profile.gemm.dtypes[GEMM_BFLOAT16].launch_s = 1e-3;
    const Pool pool = pool_with(&kernels);
    Op op = gemm(PRECISION_BF16, 8, 1280, 1280, 1000);
    op.gemm.separate = true;
    ASSERT_CLOSE(op_compute_s(&pool, &op), 1e-3 + 8 * 0.5 * (1e-3 + 131.072e-6));
}

// 4e8 bytes of a gradient added up by the product itself: half are hidden; 1e8 by a kernel that
// follows: none. At half of 1e12 B/s: 0.4 and 0.2 ms. Operands of 1e10 bytes take longer than the
// product, 20 ms.
static void epilogues_add_to_products(void) {
    const CalibratedKernels kernels = kernels_made_up();
    Pool pool = pool_with(&kernels);
    pool.gpu.efficiency.memory_frac = 0.5;
    Op op = square(PRECISION_BF16);
    const double product_s = LAUNCH_S + SQUARE_FLOPS / 5e13;
    op.gemm.epilogue_bytes = 4e8;
    ASSERT_CLOSE(op_compute_s(&pool, &op), product_s + 4e-4);
    op.gemm.after_bytes = 1e8;
    ASSERT_CLOSE(op_compute_s(&pool, &op), product_s + 4e-4 + 2e-4);
    op.bytes = 1e10;
    ASSERT_CLOSE(op_compute_s(&pool, &op), 20e-3 + 4e-4 + 2e-4);
}

// Products of experts run one by one: nothing hides their 4e8 bytes, 0.8 ms.
static void epilogues_of_experts_are_exposed(void) {
    const CalibratedKernels kernels = kernels_made_up();
    Pool pool = pool_with(&kernels);
    pool.gpu.efficiency.memory_frac = 0.5;
    Op op = square(PRECISION_BF16);
    op.gemm.separate = true;
    op.gemm.groups = 4;
    const double products_s = op_compute_s(&pool, &op);
    op.gemm.epilogue_bytes = 4e8;
    ASSERT_CLOSE(op_compute_s(&pool, &op), products_s + 8e-4);
}

// 100 of 800 W halve the rate of a product, its launch included; what moves bytes is not held back.
static void power_limits_stretch_measured_products(void) {
    const CalibratedKernels kernels = kernels_made_up();
    Pool pool = pool_with(&kernels);
    pool.power_watts_per_gpu = 100;
    pool.gpu.efficiency.full_rate_watts = 800;
    pool.gpu.efficiency.light_rate_watts = 2700;
    Op bf16 = square(PRECISION_BF16), fp8 = square(PRECISION_FP8);
    bf16.gemm.after_bytes = 1e8;
    ASSERT_CLOSE(op_compute_s(&pool, &bf16), 2 * (LAUNCH_S + SQUARE_FLOPS / 5e13) + 1e-4);
    ASSERT_CLOSE(op_compute_s(&pool, &fp8), 3 * (LAUNCH_S + SQUARE_FLOPS / 8e13));
}

// Measured up to 1024 rows, outputs and inputs, 10 % off. 8 x 1024 rows lie 3 octaves outside, one
// for each 10 % more; experts one by one do not, and a product of 1024 x 1024 x 4096 does by 2. The
// compact formula, here of fp32, has its own error.
static void products_outside_the_measured_are_less_certain(void) {
    static const double KNOTS[] = {0, 10};
    CalibratedKernels kernels = kernels_made_up();
    GemmKernel *kernel = &kernels.profile.gemm.dtypes[GEMM_BFLOAT16];
    kernel->residual_p90_frac = 0.1;
    kernel->surface.num_axes = 3;
    for (int a = 0; a < 3; a++) kernel->surface.axes[a] = (SurfaceAxis){"m", 2, KNOTS};
    Pool pool = pool_with(&kernels);
    pool.gpu.efficiency.residual_p90_frac = 0.7;
    const Op inside = gemm(PRECISION_BF16, 1, 1024, 1024, 1024);
    const Op grouped = gemm(PRECISION_BF16, 8, 1024, 1024, 1024);
    const Op deep = gemm(PRECISION_BF16, 1, 1024, 1024, 4096);
    const Op compact = gemm(PRECISION_FP32, 8, 1024, 1024, 1024);
    Op separate = grouped;
    separate.gemm.separate = true;
    ASSERT_CLOSE(gemm_residual_p90_frac(&pool, &inside), 0.1);
    ASSERT_CLOSE(gemm_residual_p90_frac(&pool, &grouped), 0.4);
    ASSERT_CLOSE(gemm_residual_p90_frac(&pool, &separate), 0.1);
    ASSERT_CLOSE(gemm_residual_p90_frac(&pool, &deep), 0.3);
    ASSERT_CLOSE(gemm_residual_p90_frac(&pool, &compact), 0.7);
}

enum { NUM_DIFFERENT = 7 };

// Products that differ from the first in one thing each: format, one by one, groups, m, n, k.
static void different_products(Op *ops) {
    for (int i = 0; i < NUM_DIFFERENT; i++) ops[i] = gemm(PRECISION_BF16, 2, 1280, 1280, 1e4);
    ops[1].precision = PRECISION_FP8;
    ops[2].gemm.separate = true;
    ops[3].gemm.groups = 4;
    ops[4].gemm.m = 2560;
    ops[5].gemm.n = 2560;
    ops[6].gemm.k = 2e4;
}

// Seconds are kept from the first time on: they stay where the kernels change below them, and no
// product takes another's.
static void prices_of_products_are_kept(void) {
    Arena arena = {0};
    CalibratedKernels plain = kernels_made_up(), kept = plain;
    kept.products = memo_new(&arena);
    const Pool pool = pool_with(&plain), with_memo = pool_with(&kept);
    Op ops[NUM_DIFFERENT];
    different_products(ops);
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < NUM_DIFFERENT; i++)
            CU_ASSERT_EQUAL(op_compute_s(&with_memo, &ops[i]), op_compute_s(&pool, &ops[i]));
        kept.profile.gemm.dtypes[GEMM_BFLOAT16].max_frac = 0.25;
        kept.profile.gemm.dtypes[GEMM_FP8].max_frac = 0.2;
    }
    const Op other = square(PRECISION_BF16);
    ASSERT_CLOSE(op_compute_s(&with_memo, &other), LAUNCH_S + SQUARE_FLOPS / 2.5e13);
    arena_free(&arena);
}

CU_TestInfo compute_kernels_tests[] = {
    {"measured_kernels_price_products", measured_kernels_price_products},
    {"formats_are_priced_by_the_nearest_measured", formats_are_priced_by_the_nearest_measured},
    {"experts_run_one_by_one", experts_run_one_by_one},
    {"short_experts_take_half_a_product", short_experts_take_half_a_product},
    {"epilogues_add_to_products", epilogues_add_to_products},
    {"epilogues_of_experts_are_exposed", epilogues_of_experts_are_exposed},
    {"power_limits_stretch_measured_products", power_limits_stretch_measured_products},
    {"products_outside_the_measured_are_less_certain",
     products_outside_the_measured_are_less_certain},
    {"prices_of_products_are_kept", prices_of_products_are_kept},
    CU_TEST_INFO_NULL,
};
