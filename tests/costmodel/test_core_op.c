#include "costmodel/kernel/core_op.h"

#include "costmodel/kernel/compute.h"

#include <CUnit/CUnit.h>

// A core of simple numbers in fp32.
static Gpu core_of(CoreLaws *laws) {
    Gpu gpu = {.core = laws};
    CoreLaws *law = &laws[PRECISION_FP32];
    law->call_s = 1e-6;
    law->angle_s = 1e-8;
    for (int i = 0; i < CORE_NUM_PRODUCTS; i++)
        law->products[i] = (CoreProduct){1e9 * (i + 1), 10, 20, 40, 1e-6};
    law->attention[0] = (CoreAttention){1e9, 100, 50, 2e-6};
    law->attention[1] = (CoreAttention){2e9, 100, 50, 2e-6};
    for (int i = 0; i < NUM_CORE_LOOPS; i++)
        for (int d = 0; d < 2; d++) law->bytes_per_s[i][d] = 1e9 * (i + 1) * (d + 1);
    return gpu;
}

static double op_s(const Gpu *gpu, Op op) {
    Pool pool = {.gpu = *gpu};
    op.precision = PRECISION_FP32;
    return op_compute_s(&pool, &op);
}

// 2 x 100 x 200 x 400 flops at 1 GFLOP/s are 16 ms, 1 + 10/100 + 20/200 + 40/400 = 1.3 times that
// and a call; the gradient of weights has the third law; two groups are two calls.
static void products_pay_their_copies(void) {
    CoreLaws laws[NUM_PRECISIONS] = {0};
    Gpu gpu = core_of(laws);
    Op op = {.kind = OP_GEMM, .gemm.groups = 1, .gemm.m = 100, .gemm.n = 200, .gemm.k = 400};
    CU_ASSERT_DOUBLE_EQUAL(op_s(&gpu, op), 20.8e-3 + 1e-6, 1e-12);
    op.phase = PHASE_BACKWARD_WEIGHT;
    CU_ASSERT_DOUBLE_EQUAL(op_s(&gpu, op), 20.8e-3 / 3 + 1e-6, 1e-12);
    op.gemm.groups = 2;
    CU_ASSERT_DOUBLE_EQUAL(op_s(&gpu, op), 2 * (20.8e-3 / 3 + 1e-6), 1e-12);
}

// Run again in the backward list, it is a forward product.
static void recomputed_products_are_forward_ones(void) {
    CoreLaws laws[NUM_PRECISIONS] = {0};
    Gpu gpu = core_of(laws);
    Op op = {.kind = OP_GEMM, .gemm.groups = 1, .gemm.m = 100, .gemm.n = 200, .gemm.k = 400};
    double forward_s = op_s(&gpu, op);
    op.phase = PHASE_BACKWARD_INPUT;
    CU_ASSERT(op_s(&gpu, op) < forward_s);
    op.again = true;
    CU_ASSERT_EQUAL(op_s(&gpu, op), forward_s);
}

// 1e6 flops at 1 GFLOP/s: 1 ms (1 + 100/200 + 50/50) + 2 us.
static void attention_pays_blocks_and_exponentials(void) {
    CoreLaws laws[NUM_PRECISIONS] = {0};
    Gpu gpu = core_of(laws);
    Op op = {.kind = OP_ATTENTION, .flops = 1e6, .attention.keys = 200, .attention.head_dim = 50};
    CU_ASSERT_DOUBLE_EQUAL(op_s(&gpu, op), 2.502e-3, 1e-12);
    op.backward = true;
    CU_ASSERT_DOUBLE_EQUAL(op_s(&gpu, op), 1.252e-3, 1e-12);
}

static void loops_are_known_by_name(void) {
    static const struct {
        const char *name;
        CoreLoop loop;
    } NAMES[] = {
        {"residual_add", CORE_ADD},
        {"input_norm", CORE_RMSNORM},
        {"activation", CORE_ACTIVATION},
        {"gated_activation", CORE_GATED_ACTIVATION},
        {"rope", CORE_ROPE},
        {"embedding", CORE_EMBEDDING},
        {"permute", CORE_ADD},
        {"cross_entropy", CORE_CROSS_ENTROPY},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        Op op = {.name = NAMES[i].name, .kind = OP_MEMORY};
        CU_ASSERT_EQUAL(core_loop(&op), NAMES[i].loop);
    }
    Op norm = {.name = "final_norm", .kind = OP_MEMORY, .memory.subtracts_mean = true};
    CU_ASSERT_EQUAL(core_loop(&norm), CORE_LAYERNORM);
}

// Rope is the sixth loop: 6e6 bytes at 6 GB/s, 1e5 angles of 10 ns, a call; twice the rate
// backward.
static void loops_pay_bytes_and_angles(void) {
    CoreLaws laws[NUM_PRECISIONS] = {0};
    Gpu gpu = core_of(laws);
    Op op = {.name = "rope", .kind = OP_MEMORY, .bytes = 6e6, .memory.angles = 1e5};
    CU_ASSERT_DOUBLE_EQUAL(op_s(&gpu, op), 1e-3 + 1e-3 + 1e-6, 1e-12);
    op.phase = PHASE_BACKWARD_INPUT;
    CU_ASSERT_DOUBLE_EQUAL(op_s(&gpu, op), 0.5e-3 + 1e-3 + 1e-6, 1e-12);
    op.bytes = 0;
    CU_ASSERT_EQUAL(op_s(&gpu, op), 0);
}

CU_TestInfo core_op_tests[] = {
    {"products_pay_their_copies", products_pay_their_copies},
    {"recomputed_products_are_forward_ones", recomputed_products_are_forward_ones},
    {"attention_pays_blocks_and_exponentials", attention_pays_blocks_and_exponentials},
    {"loops_are_known_by_name", loops_are_known_by_name},
    {"loops_pay_bytes_and_angles", loops_pay_bytes_and_angles},
    CU_TEST_INFO_NULL,
};
