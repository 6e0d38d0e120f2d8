// Measured kernels of bundled GPUs that rise but at edges, and the edges' names.
#include "config/kernels/kernels.h"
#include "costmodel/kernel/rising_attention.h"
#include "costmodel/kernel/rising_gemm.h"
#include "costmodel/kernel/rising_moe.h"
#include "costmodel/kernel/rising_nccl.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

static const CalibratedKernels *kernels_of(const char *name, Arena *arena) {
    Gpu *gpu = ARENA_NEW(arena, Gpu);
    const CalibratedKernels *kernels;
    CU_ASSERT_EQUAL_FATAL(gpu_load_named(name, arena, gpu).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(kernels_load_whole(gpu, arena, &kernels).code, STATUS_OK);
    return kernels;
}

static double stepped_s(const void *context, double size) {
    (void)context;
    return size < 10 ? 1 : size < 12 ? 0.9 : size < 14 ? 1.2 : size < 30 ? 1.6 : 0.1;
}

// The made-up time falls at 10 and 30 and jumps by a third at 12 and 14; from 8 on the last lies
// beyond twice the size. One that was tried is not put there again.
static void edges_are_falls_and_jumps_up_to_twice_a_size(void) {
    static const double AT[] = {10, 12, 14}, RATIOS[] = {0.9, 1.2 / 0.9, 1.6 / 1.2};
    const KernelDimension dimension = {"m", 8, stepped_s, NULL};
    KernelEdges edges = {0};
    for (int twice = 0; twice < 2; twice++)
        for (int at = 1; at < 40; at++) kernel_edge_try(&dimension, at, &edges);
    CU_ASSERT_EQUAL_FATAL(edges.num_edges, 3);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_STRING_EQUAL(edges.edges[i].dimension, "m");
        CU_ASSERT_EQUAL(edges.edges[i].at, AT[i]);
        CU_ASSERT_DOUBLE_EQUAL(edges.edges[i].ratio, RATIOS[i], 1e-12);
    }
}

// Knots at 19 and 24 of an axis of which one of the dimension is two.
static void edges_lie_at_the_first_size_at_a_knot(void) {
    const KernelDimension dimension = {"m", 8, stepped_s, NULL};
    RisingAxis axis = {0};
    KernelEdges edges = {0};
    rising_axis_add(&axis, 19, true);
    rising_axis_add(&axis, 24, true);
    kernel_edges_along(&dimension, &axis, 2, &edges);
    CU_ASSERT_EQUAL_FATAL(edges.num_edges, 2);
    CU_ASSERT_EQUAL(edges.edges[0].at, 10);
    CU_ASSERT_EQUAL(edges.edges[1].at, 12);
}

// The H100's law allows splits of k from 3071 on, on an MI300X 38 % faster than without; the
// copies of weights that the benchmark calls become fewer by one on an RTX 4090 where two of 72 MiB
// fill its cache, 56 % faster. Neither is a size at which a library was seen to change.
static void steps_of_the_formula_between_measured_sizes_are_spread(void) {
    static const struct {
        const char *gpu;
        double n, k, law_ratio;
    } STEPS[] = {{"mi300x-192g", 128, 3071, 0.62}, {"rtx4090-24g", 4096, 9216, 0.44}};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        const CalibratedKernels *kernels = kernels_of(STEPS[i].gpu, &arena);
        const GemmKernels *gemm = &kernels->profile.gemm;
        const double n = STEPS[i].n, k = STEPS[i].k;
        const double law = kernel_gemm_s(&kernels->gpu, gemm, GEMM_BFLOAT16, 1, n, k) /
                           kernel_gemm_s(&kernels->gpu, gemm, GEMM_BFLOAT16, 1, n, k - 1);
        const RisingGemm *rising = rising_gemm_new(&kernels->gpu, gemm, GEMM_BFLOAT16, &arena);
        const double ratio = rising_gemm_s(rising, 1, n, k) / rising_gemm_s(rising, 1, n, k - 1);
        CU_ASSERT_DOUBLE_EQUAL(law, STEPS[i].law_ratio, 0.02);
        CU_ASSERT_DOUBLE_EQUAL(ratio, 1.0005, 0.0005);
        arena_free(&arena);
    }
}

// The edge of a dimension from `at` on; NULL: none.
static const KernelEdge *edge_at(const KernelEdges *edges, const char *dimension, double at) {
    for (int i = 0; i < edges->num_edges; i++)
        if (edges->edges[i].at == at && strcmp(edges->edges[i].dimension, dimension) == 0)
            return &edges->edges[i];
    return NULL;
}

// Two sequences with 8 key-value heads: the kernel that shares keys runs from a quarter of 132
// blocks on, 2 x 8 x floor((keys - 1) / 128) >= 33: from 385 keys on, where it is the faster.
static void the_switch_of_generation_is_an_edge(void) {
    Arena arena = {0};
    const CalibratedKernels *kernels = kernels_of("h100-sxm-80g", &arena);
    RisingAttention *rising =
        rising_attention_new(&kernels->gpu, NULL, &kernels->profile.generation_attention, &arena);
    AttentionShape shape = {{ATTENTION_BFLOAT16, ATTENTION_BFLOAT16, 128, 0}, 2, 300, 64, 8};
    KernelEdges edges = {0};
    rising_attention_edges(rising, &shape, false, &edges);
    const KernelEdge *edge = edge_at(&edges, "tokens", 385);
    CU_ASSERT_PTR_NOT_NULL_FATAL(edge);
    CU_ASSERT(edge->ratio < 0.8);
    shape.tokens = 384;
    const double before_s = rising_attention_s(rising, &shape);
    shape.tokens = 385;
    CU_ASSERT_DOUBLE_EQUAL(rising_attention_s(rising, &shape) / before_s, edge->ratio, 1e-12);
    arena_free(&arena);
}

// All-to-all over 8 H100 takes 11.0 us with 32 KiB and 8.6 us with 64 KiB.
static void a_collective_falls_at_measured_sizes_alone(void) {
    Arena arena = {0};
    const CalibratedKernels *kernels = kernels_of("h100-sxm-80g", &arena);
    RisingNccl *rising = rising_nccl_new(&kernels->profile.nccl, &arena);
    NcclCall call = {NCCL_ALL_TO_ALL, NCCL_HALF, 2, 8, 20000};
    KernelEdges edges = {0};
    rising_nccl_edges(rising, &call, &edges);
    CU_ASSERT_EQUAL_FATAL(edges.num_edges, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(edge_at(&edges, "message_size", 32768));
    CU_ASSERT_DOUBLE_EQUAL(edges.edges[0].ratio, 0.78, 0.01);
    const double held_s = rising_nccl_s(rising, &call);
    call.num_elements = 32767;
    CU_ASSERT_DOUBLE_EQUAL(rising_nccl_s(rising, &call), held_s, 1e-9 * held_s);
    arena_free(&arena);
}

// Three tokens of a layer on A100 PCIe: the residual grid falls with the inner size where the
// formula does not rise. One more token, hidden or inner size, 1,000 times each.
static void layers_of_experts_never_fall(void) {
    Arena arena = {0};
    const CalibratedKernels *kernels = kernels_of("h100-sxm-80g", &arena);
    const MoeKernel *kernel =
        moe_kernel_find(&kernels->profile.moe, MOE_FP8, "moe_torch_flow_cutlass");
    RisingMoe *rising = rising_moe_new(&kernels->gpu, &arena);
    int num_falls = 0; // of the law alone
    for (int d = 0; d < 3; d++) {
        double before_s = 0, law_before_s = 0;
        for (int i = 0; i < 1000; i++) {
            MoeShape shape = {113, 20, {32, 4, 512, 1, 1.2, false}};
            if (d == 0) shape.routing.num_tokens = 1 + i;
            if (d == 1) shape.hidden_size = 100 + i;
            if (d == 2) shape.inter_size = 20 + i;
            const double now_s = rising_moe_s(rising, kernel, &shape);
            const double law_s = kernel_moe_s(&kernels->gpu, kernel, &shape);
            CU_ASSERT(now_s >= before_s * (1 - 1e-12));
            num_falls += d == 2 && law_s < law_before_s;
            before_s = now_s;
            law_before_s = law_s;
        }
    }
    CU_ASSERT(num_falls > 0);
    arena_free(&arena);
}

CU_TestInfo rising_kernels_tests[] = {
    {"edges are falls and jumps up to twice a size", edges_are_falls_and_jumps_up_to_twice_a_size},
    {"edges lie at the first size at a knot", edges_lie_at_the_first_size_at_a_knot},
    {"steps of the formula between measured sizes are spread",
     steps_of_the_formula_between_measured_sizes_are_spread},
    {"the switch of generation is an edge", the_switch_of_generation_is_an_edge},
    {"a collective falls at measured sizes alone", a_collective_falls_at_measured_sizes_alone},
    {"layers of experts never fall", layers_of_experts_never_fall},
    CU_TEST_INFO_NULL,
};
