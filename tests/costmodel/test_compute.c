#include "costmodel/kernel/compute.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

// With the compact formula and no power limit.
static double gpu_compute_s(const Gpu *gpu, const Op *op) {
    const Pool pool = {.gpu = *gpu, .power_watts_per_gpu = 1e4};
    return op_compute_s(&pool, op);
}

static Op gemm(double groups, double m, double n, double k) {
    return (Op){.kind = OP_GEMM,
                .gemm.groups = groups,
                .gemm.m = m,
                .gemm.n = n,
                .gemm.k = k,
                .precision = PRECISION_BF16,
                .flops = 2 * groups * m * n * k,
                .num_kernels = 1};
}

// 1000 x 1000 outputs are 100 tiles on 100 SMs: one full wave. 2e12 flop at 1e14 flop/s: 20 ms.
// One more output is 110 tiles in 2 waves, which 200 SM slots are 55 % busy with.
static void last_wave_is_part_empty(void) {
    const Gpu gpu = made_up_gpu();
    const Op full = gemm(1, 1000, 1000, 1e6), over = gemm(1, 1001, 1000, 1e6);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &full), 0.02);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &over), 0.02 * 1.001 / 0.55);
    // 10 experts of 100 tiles each make 10 full waves together.
    const Op grouped = gemm(10, 1000, 1000, 1e6);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &grouped), 0.2);
}

// A rate that reaches half at k = 300 is 1/4 of the peak at k = 100.
static void short_inner_dimensions_are_slow(void) {
    Gpu gpu = made_up_gpu();
    gpu.efficiency.gemm_half_k = 300;
    const Op op = gemm(1, 1000, 1000, 100);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), 2e8 / 1e14 * 4);
}

// 4e9 bytes at 1e12 B/s: 4 ms, more than the 20 us of its flops.
static void products_take_at_least_their_bytes(void) {
    const Gpu gpu = made_up_gpu();
    Op op = gemm(1, 1000, 1000, 1000);
    op.bytes = 4e9;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), 4e-3);
}

// 3 launches of 10 us and 1e6 bytes at half of 1e12 B/s.
static void memory_work_is_launches_and_bytes(void) {
    Gpu gpu = made_up_gpu();
    gpu.efficiency.launch_s = 1e-5;
    gpu.efficiency.memory_frac = 0.5;
    const Op op = {.kind = OP_MEMORY, .bytes = 1e6, .num_kernels = 3};
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), 3e-5 + 2e-6);
}

static Op attention(int precision, bool backward) {
    return (Op){.kind = OP_ATTENTION,
                .attention.keys = 4096,
                .attention.head_dim = 128,
                .precision = precision,
                .backward = backward,
                .attention.generation = 3,
                .flops = 1e12,
                .num_kernels = 1};
}

// 1e12 flop at 1/2 of 1e14 forward: 20 ms; at 1/4 backward: 40 ms. Products in 8 bits leave it in
// 16; fp32 runs at 2.5e13 and tf32 at 5e13.
static void attention_runs_in_the_format_of_activations(void) {
    const Gpu gpu = made_up_gpu();
    const Op forward = attention(PRECISION_BF16, false), backward = attention(PRECISION_BF16, true);
    const Op fp8 = attention(PRECISION_FP8, false), tf32 = attention(PRECISION_TF32, false);
    const Op fp32 = attention(PRECISION_FP32, false);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 0.02);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &backward), 0.04);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &fp8), 0.02);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &tf32), 0.04);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &fp32), 0.08);
}

static void gpus_without_bf16_attend_in_fp16(void) {
    Gpu gpu = made_up_gpu();
    const Op op = attention(PRECISION_FP16, false);
    const double expected = gpu_compute_s(&gpu, &op);
    gpu.peak_flops_per_s[PRECISION_BF16] = 0;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), expected);
}

// The made-up GPU with what those of an architecture share.
static Gpu gpu_of_architecture(const char *name, Arena *arena) {
    Gpu gpu = made_up_gpu();
    gpu.architecture = name;
    CU_ASSERT_EQUAL_FATAL(architecture_load(name, arena, &gpu.shared).code, STATUS_OK);
    return gpu;
}

static void newer_attention_is_never_slower(void) {
    static const char *const ARCHITECTURES[] = {"ampere", "hopper", "blackwell", "other"};
    Arena arena = {0};
    for (int i = 0; i < 8; i++) {
        const Gpu gpu = gpu_of_architecture(ARCHITECTURES[i / 2], &arena);
        double before = 1e9;
        for (int generation = 1; generation <= 4; generation++) {
            Op op = attention(PRECISION_BF16, i % 2);
            op.attention.generation = generation;
            CU_ASSERT_TRUE(gpu_compute_s(&gpu, &op) <= before);
            before = gpu_compute_s(&gpu, &op);
        }
    }
    arena_free(&arena);
}

// The made-up GPU takes 20 ms forward, 40 ms backward, at any length. cuDNN of 2024 reached 0.849
// of that on Hopper where half of it was reached with 385 tokens: half as fast there, and 0.816
// backward. FlashAttention 2 reaches half with 431 tokens forward and 762 backward.
static void older_attention_has_rates_of_its_own(void) {
    Arena arena = {0};
    const Gpu gpu = gpu_of_architecture("hopper", &arena);
    Op forward = attention(PRECISION_BF16, false), backward = attention(PRECISION_BF16, true);
    forward.attention.keys = backward.attention.keys = 385;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 2 * 0.02 / 0.849);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &backward), 2 * 0.04 / 0.816);
    forward.attention.generation = 4;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 0.02);
    forward.attention.generation = backward.attention.generation = 2;
    forward.attention.keys = 431;
    backward.attention.keys = 762;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 2 * 0.02 / 0.516);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &backward), 2 * 0.04 / 0.551);
    forward.attention.head_dim = backward.attention.head_dim = 64; // not the 0.75 of the newest
    ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 2 * 0.02 / 0.516 / 0.855);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &backward), 2 * 0.04 / 0.551 / 0.835);
    arena_free(&arena);
}

// A GPU may state for the forward at which length half its rate is reached, and for the backward
// what heads of 64 reach of it; what it does not state is as of the other.
static void forward_and_backward_attention_may_differ(void) {
    Gpu gpu = made_up_gpu();
    gpu.efficiency.attention_half_tokens = 1000;
    Op forward = attention(PRECISION_BF16, false), backward = attention(PRECISION_BF16, true);
    forward.attention.keys = backward.attention.keys = 1000;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 2 * 0.02);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &backward), 2 * 0.04);
    gpu.efficiency.attention_forward_half_tokens = 250; // 1000 / (1000 + 250) = 0.8
    ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 0.02 / 0.8);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &backward), 2 * 0.04);
    gpu.efficiency.attention_backward_head64_frac = 0.5;
    forward.attention.head_dim = backward.attention.head_dim = 64;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 0.02 / 0.8 / 0.75);
    ASSERT_CLOSE(gpu_compute_s(&gpu, &backward), 2 * 0.04 / 0.5);
}

// 20 ms forward and 40 ms backward with heads of 128. A made-up GPU runs heads of 64 at 0.75 of
// that rate. Those of other sizes take what 64, 128, 192 or 256 take, the next above. Heads above
// 128 slow the backward, to 0.82 at 192 and no further; those of Blackwell to 0.95.
static void head_sizes_change_the_rate(void) {
    static const double ROWS[][3] = {{32, 0.375, 0.375}, {64, 0.75, 0.75},   {96, 0.75, 0.75},
                                     {128, 1, 1},        {144, 0.75, 0.615}, {192, 1, 0.82},
                                     {256, 1, 0.82}};
    const Gpu gpu = made_up_gpu();
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Op forward = attention(PRECISION_BF16, false), backward = attention(PRECISION_BF16, true);
        forward.attention.head_dim = backward.attention.head_dim = ROWS[i][0];
        ASSERT_CLOSE(gpu_compute_s(&gpu, &forward), 0.02 / ROWS[i][1]);
        ASSERT_CLOSE(gpu_compute_s(&gpu, &backward), 0.04 / ROWS[i][2]);
    }
    Arena arena = {0};
    const Gpu blackwell = gpu_of_architecture("blackwell", &arena);
    Op backward = attention(PRECISION_BF16, true);
    backward.attention.head_dim = 192;
    backward.attention.generation = 4;
    ASSERT_CLOSE(gpu_compute_s(&blackwell, &backward), 0.04 / 0.95);
    arena_free(&arena);
}

// FlashAttention 2 has kernels for heads of 32, 64, 96, 128, 192 and 256, and fills up what is no
// multiple of 8, which cuDNN's newest kernel refuses: heads of 108 take FlashAttention's time for
// 128, though heads of 112 have the newest.
static void heads_that_are_no_multiple_of_8_have_an_older_kernel(void) {
    static const double SIZES[][3] = {{8, 32, 64},     {80, 96, 128},   {96, 96, 128},
                                      {108, 128, 128}, {129, 192, 192}, {576, 576, 576}};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        ASSERT_CLOSE(attention_kernel_head_dim(2, SIZES[i][0]), SIZES[i][1]);
        ASSERT_CLOSE(attention_kernel_head_dim(4, SIZES[i][0]), SIZES[i][2]);
    }
    Arena arena = {0};
    const Gpu gpu = gpu_of_architecture("hopper", &arena);
    Op op = attention(PRECISION_BF16, false);
    op.attention.generation = 4;
    op.attention.head_dim = 112;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), 0.02 * 128 / 112);
    op.attention.head_dim = 108;
    const double newest_s = gpu_compute_s(&gpu, &op);
    op.attention.generation = 2;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), newest_s);
    op.attention.head_dim = 128;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), newest_s * 108 / 128);
    arena_free(&arena);
}

// Rows of an operand that are no multiple of 16 bytes: 0.37 of the rate, where of 2 bytes 0.18;
// 8-bit products have to be aligned, and what memory bounds takes no longer.
static void products_of_unaligned_rows_are_slower(void) {
    Arena arena = {0};
    const Gpu gpu = gpu_of_architecture("hopper", &arena);
    Op op = gemm(1, 1000, 1000, 1e6);
    const double aligned_s = gpu_compute_s(&gpu, &op);
    static const double ROWS[][2] = {{8, 1}, {4, 0.37}, {2, 0.37}, {1, 0.18}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        op.gemm.aligned = (int)ROWS[i][0];
        ASSERT_CLOSE(gpu_compute_s(&gpu, &op), aligned_s / ROWS[i][1]);
    }
    op.precision = PRECISION_FP8;
    const double fp8_s = gpu_compute_s(&gpu, &op);
    op.gemm.aligned = 8;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), fp8_s);
    op.precision = PRECISION_BF16;
    op.bytes = 1e12;
    const double memory_bound_s = gpu_compute_s(&gpu, &op);
    op.gemm.aligned = 1;
    ASSERT_CLOSE(gpu_compute_s(&gpu, &op), memory_bound_s);
    arena_free(&arena);
}

// Of 800 W that the full rate draws 100 are left: (1 / 8)^(1/3) = 1/2. Of 2700 W for narrower
// products and attention: 1/3. With 2700 W and more nothing is held back.
static void power_limits_hold_the_clock(void) {
    Pool pool = {.gpu = made_up_gpu(), .power_watts_per_gpu = 100};
    pool.gpu.efficiency.full_rate_watts = 800;
    pool.gpu.efficiency.light_rate_watts = 2700;
    Op bf16 = gemm(1, 1000, 1000, 1e6), fp8 = bf16; // 20 ms, and 10 ms at twice the rate
    fp8.precision = PRECISION_FP8;
    const Op attended = attention(PRECISION_BF16, false); // 20 ms
    const Op moved = {.kind = OP_MEMORY, .bytes = 1e9};
    ASSERT_CLOSE(sustained_frac(&pool, false), 1.0 / 2);
    ASSERT_CLOSE(sustained_frac(&pool, true), 1.0 / 3);
    pool.gpu.efficiency.power_exponent = 0.5;
    ASSERT_CLOSE(sustained_frac(&pool, false), sqrt(1.0 / 8));
    pool.gpu.efficiency.power_exponent = 0;
    ASSERT_CLOSE(op_compute_s(&pool, &bf16), 2 * 0.02);
    ASSERT_CLOSE(op_compute_s(&pool, &fp8), 3 * 0.01);
    ASSERT_CLOSE(op_compute_s(&pool, &attended), 3 * 0.02);
    ASSERT_CLOSE(op_compute_s(&pool, &moved), 1e-3);
    for (double watts = 2700; watts < 1e4; watts *= 2) {
        pool.power_watts_per_gpu = watts;
        CU_ASSERT_EQUAL(sustained_frac(&pool, false), 1);
        CU_ASSERT_EQUAL(sustained_frac(&pool, true), 1);
    }
}

// More bandwidth, more peak, fewer flops: never slower. More of anything to do: never faster.
static void laws_of_the_roofline(void) {
    const Gpu gpu = made_up_gpu();
    Gpu wide = gpu, fast = gpu;
    wide.memory_bandwidth_bytes_per_s *= 2;
    fast.peak_flops_per_s[PRECISION_BF16] *= 2;
    for (int i = 0; i < 8 * 8 * 8; i++) {
        const double m = 1 << (i % 8 * 2), n = 1 << (i / 8 % 8 * 2), k = 1 << (i / 64 * 2);
        Op op = gemm(1, m, n, k), more = gemm(1, m, n, 2 * k);
        op.bytes = more.bytes = 2 * (m * n + n * k + k * m);
        const double time_s = gpu_compute_s(&gpu, &op);
        CU_ASSERT_TRUE(time_s > 0);
        CU_ASSERT_TRUE(gpu_compute_s(&wide, &op) <= time_s);
        CU_ASSERT_TRUE(gpu_compute_s(&fast, &op) <= time_s);
        CU_ASSERT_TRUE(gpu_compute_s(&gpu, &more) >= time_s);
        CU_ASSERT_TRUE(op.flops / time_s <= gpu.peak_flops_per_s[PRECISION_BF16] * (1 + 1e-9));
    }
}

static void collectives_are_no_compute(void) {
    const Gpu gpu = made_up_gpu();
    const Op op = {.kind = OP_COLLECTIVE, .collective.message_bytes = 1e9, .num_kernels = 1};
    CU_ASSERT_EQUAL(gpu_compute_s(&gpu, &op), 0);
}

CU_TestInfo compute_tests[] = {
    {"last_wave_is_part_empty", last_wave_is_part_empty},
    {"short_inner_dimensions_are_slow", short_inner_dimensions_are_slow},
    {"products_take_at_least_their_bytes", products_take_at_least_their_bytes},
    {"memory_work_is_launches_and_bytes", memory_work_is_launches_and_bytes},
    {"attention_runs_in_the_format_of_activations", attention_runs_in_the_format_of_activations},
    {"gpus_without_bf16_attend_in_fp16", gpus_without_bf16_attend_in_fp16},
    {"newer_attention_is_never_slower", newer_attention_is_never_slower},
    {"older_attention_has_rates_of_its_own", older_attention_has_rates_of_its_own},
    {"forward_and_backward_attention_may_differ", forward_and_backward_attention_may_differ},
    {"head_sizes_change_the_rate", head_sizes_change_the_rate},
    {"heads_that_are_no_multiple_of_8_have_an_older_kernel",
     heads_that_are_no_multiple_of_8_have_an_older_kernel},
    {"products_of_unaligned_rows_are_slower", products_of_unaligned_rows_are_slower},
    {"power_limits_hold_the_clock", power_limits_hold_the_clock},
    {"laws_of_the_roofline", laws_of_the_roofline},
    {"collectives_are_no_compute", collectives_are_no_compute},
    CU_TEST_INFO_NULL,
};
