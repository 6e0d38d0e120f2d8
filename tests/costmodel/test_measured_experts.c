// Experts of passes that do not train are priced by the measured layers of engines.
#include "costmodel/kernel/measured_experts.h"

#include "costmodel/kernel/compute.h"
#include "costmodel/kernel/kernel_moe.h"

#include <CUnit/CUnit.h>

#include <math.h>

static Arena arena;

static const CalibratedKernels *kernels_of(const char *name) {
    Gpu gpu;
    const CalibratedKernels *kernels = NULL;
    CU_ASSERT_EQUAL(gpu_load_named(name, &arena, &gpu).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernels_load_whole(&gpu, &arena, &kernels).code, STATUS_OK);
    return kernels;
}

// Qwen3-30B-A3B: 128 experts of 768, 8 a token, over `ranks`.
static Op served(double tokens, int ranks) {
    const double rows = tokens * 8 / ranks, weights = 128.0 / ranks * 3 * 768 * 2048;
    const double pass_bytes = 2 * (4 * rows * 2048 + 3 * rows * 768);
    return (Op){.kind = OP_EXPERTS,
                .num_kernels = 7,
                .precision = PRECISION_BF16,
                .flops = 2 * rows * 3 * 768 * 2048,
                .bytes = 2 * weights + pass_bytes,
                .experts = {.tokens = tokens,
                            .hidden_size = 2048,
                            .inter_size = 768,
                            .num_experts = 128,
                            .experts_per_token = 8,
                            .num_ranks = ranks,
                            .gated = true,
                            .pass_bytes = pass_bytes}};
}

static Pool pool_of(const CalibratedKernels *kernels) {
    return (Pool){.gpu = kernels->gpu, .power_watts_per_gpu = 700, .kernels = kernels};
}

// Of the implementations of a number format the fastest.
static void experts_are_priced_by_their_tables(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    Op op = served(4096, 1);
    const MoeShape shape = {2048, 768, experts_routing(&op.experts)};
    double least_s = INFINITY;
    for (int i = 0; i < k->profile.moe.num_kernels; i++) {
        const MoeKernel *kernel = &k->profile.moe.kernels[i];
        if (kernel->moe_dtype == MOE_BFLOAT16 && kernel->gated && !kernel->group_limited)
            least_s = fmin(least_s, kernel_moe_s(&k->gpu, kernel, &shape));
    }
    CU_ASSERT_TRUE(isfinite(least_s));
    CU_ASSERT_EQUAL(measured_experts_s(k, &op), least_s);
    const Pool pool = pool_of(k);
    CU_ASSERT_DOUBLE_EQUAL(op_compute_s(&pool, &op), least_s / sustained_frac(&pool, false),
                           1e-12 * least_s);
    op.precision = PRECISION_FP8;
    CU_ASSERT_TRUE(measured_experts_s(k, &op) < least_s);
    arena_free(&arena);
}

static void what_no_table_covers_is_left_to_the_compact_formula(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    Op op = served(4096, 1), other = op;
    other.precision = PRECISION_TF32;
    CU_ASSERT_TRUE(isnan(measured_experts_s(k, &other)));
    CalibratedKernels others = *k;
    others.foreign = true;
    CU_ASSERT_TRUE(isnan(measured_experts_s(&others, &op)));
    CU_ASSERT_TRUE(isnan(measured_experts_s(NULL, &op)));
    others = *k; // as a training step has it read
    others.profile.moe.num_kernels = 0;
    CU_ASSERT_TRUE(isnan(measured_experts_s(&others, &op)));
    arena_free(&arena);
}

// Both prices of one layer, from a single token to many: the compact one is what remains.
static void the_compact_formula_is_of_the_same_size(void) {
    const CalibratedKernels *k = kernels_of("h100-sxm-80g");
    CalibratedKernels without = *k;
    without.profile.moe.num_kernels = 0;
    const Pool measured = pool_of(k), compact = pool_of(&without);
    for (double tokens = 1; tokens <= 65536; tokens *= 16)
        for (int ranks = 1; ranks <= 8; ranks *= 8) {
            const Op op = served(tokens, ranks);
            const double ratio = op_compute_s(&compact, &op) / op_compute_s(&measured, &op);
            CU_ASSERT_TRUE(ratio > 0.4 && ratio < 2.5);
        }
    arena_free(&arena);
}

// More tokens take longer, on both sides of the tables' edge. Evenly spread, all experts need a
// further tile of rows at once: a tenth more tokens takes at most half as long again.
static void beyond_the_tables_it_goes_on(void) {
    const CalibratedKernels *k = kernels_of("h200-sxm-141g");
    double before_s = 0;
    for (double tokens = 16; tokens < 4e6; tokens = ceil(tokens * 1.1)) {
        const Op op = served(tokens, 4);
        const double time_s = measured_experts_s(k, &op);
        CU_ASSERT_TRUE(time_s > 0.97 * before_s);
        if (before_s > 0) CU_ASSERT_TRUE(time_s < 1.5 * before_s);
        before_s = time_s;
    }
    arena_free(&arena);
}

CU_TestInfo measured_experts_tests[] = {
    {"experts_are_priced_by_their_tables", experts_are_priced_by_their_tables},
    {"what_no_table_covers_is_left_to_the_compact_formula",
     what_no_table_covers_is_left_to_the_compact_formula},
    {"the_compact_formula_is_of_the_same_size", the_compact_formula_is_of_the_same_size},
    {"beyond_the_tables_it_goes_on", beyond_the_tables_it_goes_on},
    CU_TEST_INFO_NULL,
};
