#include "calibrate/core_files.h"
#include "calibrate/core_fit.h"
#include "config/cluster/cluster.h"
#include "costmodel/kernel/compute.h"
#include "costmodel/network/collective.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A core of 100 GFLOP/s in fp32 and 50 in fp64 whose laws are these exactly, on the sizes that
// profile measures.
static const CoreProduct PRODUCT = {1e11, 20, 30, 10, 2e-7};
static const CoreAttention ATTENTION = {8e10, 60, 100, 1e-6};
static const double LOOP_BYTES_PER_S = 4e9, ANGLE_S = 1e-8, CALL_S = 5e-9;

typedef struct {
    Arena arena;
    CoreRows rows;
} Made;

static double product_s(int dtype, double m, double n, double k) {
    CoreProduct law = PRODUCT;
    law.flops_per_s /= 1 + dtype;
    double work = 2 * m * n * k / law.flops_per_s;
    return law.call_s + work * (1 + law.half_m / m + law.half_n / n + law.half_k / k);
}

static void products_make(Made *made) {
    static const double SIZES[] = {32, 64, 256, 1024};
    made->rows.products = ARENA_ARRAY(&made->arena, 2 * 3 * 64, ProductRow);
    for (int i = 0; i < 2 * 3 * 64; i++) {
        int dtype = i % 2, layout = i / 2 % 3, j = i / 6;
        double m = SIZES[j % 4], n = SIZES[j / 4 % 4], k = SIZES[j / 16];
        made->rows.products[i] =
            (ProductRow){(CoreDtype)dtype, layout, m, n, k, product_s(dtype, m, n, k)};
    }
    made->rows.num_products = 2 * 3 * 64;
}

static void attention_make(Made *made) {
    made->rows.attention = ARENA_ARRAY(&made->arena, 2 * 2 * 9, AttentionRow);
    for (int i = 0; i < 2 * 2 * 9; i++) {
        double tokens = 64 << (i / 4 % 3), head_dim = 32 << (i / 12);
        double flops = 4 * 4 * tokens * (tokens + 1) / 2 * head_dim;
        double time_s = ATTENTION.call_s + flops / ATTENTION.flops_per_s *
                                               (1 + ATTENTION.half_tokens / tokens +
                                                ATTENTION.half_head_dim / head_dim);
        made->rows.attention[i] =
            (AttentionRow){(CoreDtype)(i % 2), i / 2 % 2 == 1, flops, tokens, head_dim, time_s};
    }
    made->rows.num_attention = 2 * 2 * 9;
}

static void loops_make(Made *made) {
    int num = 2 * NUM_CORE_LOOPS * 4;
    made->rows.loops = ARENA_ARRAY(&made->arena, num, LoopRow);
    for (int i = 0; i < num; i++) {
        CoreLoop loop = (CoreLoop)(i / 2 % NUM_CORE_LOOPS);
        int j = i / (2 * NUM_CORE_LOOPS);
        double bytes = j % 2 ? 1e6 : 5e4, angles = loop == CORE_ROPE ? j < 2 ? 2e3 : 1e4 : 0;
        double time_s = CALL_S + bytes / LOOP_BYTES_PER_S + angles * ANGLE_S;
        made->rows.loops[i] =
            (LoopRow){(CoreDtype)(i % 2), loop, true, true, false, bytes, angles, time_s};
    }
    made->rows.num_loops = num;
}

// Of two ranks: 1 us and 2 GB/s for everything.
static void comm_make(Made *made) {
    int num = NUM_COMM_OPS * 10;
    made->rows.comm = ARENA_ARRAY(&made->arena, num, CommRow);
    for (int i = 0; i < num; i++) {
        double bytes = 64 * pow(4, i / NUM_COMM_OPS);
        made->rows.comm[i] = (CommRow){(CommOp)(i % NUM_COMM_OPS), 2, bytes, 1e-6 + bytes / 2e9};
    }
    made->rows.num_comm = num;
}

static Made *make(void) {
    Made *made = calloc(1, sizeof *made);
    made->rows.call_s = CALL_S;
    products_make(made);
    attention_make(made);
    loops_make(made);
    comm_make(made);
    return made;
}

static void made_free(Made *made) {
    arena_free(&made->arena);
    free(made);
}

static void laws_come_back(void) {
    Made *made = make();
    CoreFit fit;
    CU_ASSERT_EQUAL(core_fit(&made->rows, "made", &made->arena, &fit).code, STATUS_OK);
    for (int d = 0; d < NUM_CORE_DTYPES; d++) {
        for (int i = 0; i < CORE_NUM_PRODUCTS; i++) {
            const CoreProduct *law = &fit.laws[d].products[i];
            CU_ASSERT_DOUBLE_EQUAL(law->flops_per_s, 1e11 / (1 + d), 1e8);
            CU_ASSERT_DOUBLE_EQUAL(law->half_m, 20, 0.1);
            CU_ASSERT_DOUBLE_EQUAL(law->half_n, 30, 0.1);
            CU_ASSERT_DOUBLE_EQUAL(law->half_k, 10, 0.1);
            CU_ASSERT_DOUBLE_EQUAL(law->call_s, 2e-7, 2e-9);
        }
        const CoreAttention *law = &fit.laws[d].attention[1];
        CU_ASSERT_DOUBLE_EQUAL(law->flops_per_s, 8e10, 1e8);
        CU_ASSERT_DOUBLE_EQUAL(law->half_tokens, 60, 0.2);
        CU_ASSERT_DOUBLE_EQUAL(law->half_head_dim, 100, 0.2);
        CU_ASSERT_DOUBLE_EQUAL(fit.laws[d].bytes_per_s[CORE_RMSNORM][1], 4e9, 1e7);
        CU_ASSERT_DOUBLE_EQUAL(fit.laws[d].bytes_per_s[CORE_ROPE][0], 4e9, 1e7);
        CU_ASSERT_DOUBLE_EQUAL(fit.laws[d].angle_s, 1e-8, 1e-10);
    }
    for (int i = 0; i < CORE_SCORE_COLLECTIVES; i++) CU_ASSERT(fit.scores[i].p90_frac < 1e-3);
    CU_ASSERT(fit.scores[CORE_SCORE_MESSAGES].p90_frac < 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(fit.link.p2p_latency_s, 1e-6, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(fit.link.bandwidth_bytes_per_s * fit.link.p2p_efficiency_frac, 2e9, 2e7);
    made_free(made);
}

static void missing_rows_are_named(void) {
    Made *made = make();
    CoreFit fit;
    for (int i = 0; i < made->rows.num_loops; i++)
        if (made->rows.loops[i].loop == CORE_OPTIMIZER) made->rows.loops[i].loop = CORE_ADD;
    Status status = core_fit(&made->rows, "made", &made->arena, &fit);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text, "made/memory_bound.csv: no rows of optimizer in float32");
    made_free(made);
}

// Products that take the same time whatever their size tell no rate, which is not their absence.
static void times_that_do_not_rise_are_refused(void) {
    Made *made = make();
    CoreFit fit;
    for (int i = 0; i < made->rows.num_products; i++)
        if (made->rows.products[i].layout == 0) made->rows.products[i].time_s = 1e-3;
    Status status = core_fit(&made->rows, "made", &made->arena, &fit);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(status.text, "made/gemm_other.csv: times of forward in float32 do not rise"));
    made_free(made);
}

// One size of a gather took 1,000 times as long, and its neighbours are predicted by it.
static void collectives_of_a_busy_computer_are_refused(void) {
    Made *made = make();
    CoreFit fit;
    made->rows.comm[5 * NUM_COMM_OPS].time_s *= 1000;
    Status status = core_fit(&made->rows, "made", &made->arena, &fit);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "made/comm.csv: times of all_gather scatter by a"));
    made_free(made);
}

// A product of the Program on a cluster that was written and read again: m 64, n 256, k 1024 take
// 2e-7 s + 33.55 MFLOP / 100 GFLOP/s (1 + 20/64 + 30/256 + 10/1024) = 483.1 us; an all-reduce of
// 4096 bytes among two 1 us + 2.048 us.
static void written_files_price_as_fitted(void) {
    Made *made = make();
    CoreFit fit;
    char folder[] = "/tmp/meshwright-core-XXXXXX", text[128];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    CoreMachine machine = {"Made CPU", "OpenBLAS 1", "none", "2000-01-01", 2, 32e9, 16e9, 1e6};
    CU_ASSERT_EQUAL(core_fit(&made->rows, "made", &made->arena, &fit).code, STATUS_OK);
    CU_ASSERT_EQUAL(core_files_write(folder, &machine, &fit).code, STATUS_OK);
    JsonNode root;
    int size = snprintf(text, sizeof text, "\"%s/cluster.json\"", folder);
    CU_ASSERT_EQUAL(json_parse(text, (size_t)size, "made", &made->arena, &root).code, STATUS_OK);
    Cluster cluster;
    Status status = cluster_load(&root, &made->arena, &cluster);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code == STATUS_OK) {
        Op op = {.kind = OP_GEMM,
                 .precision = PRECISION_FP32,
                 .gemm.groups = 1,
                 .gemm.m = 64,
                 .gemm.n = 256,
                 .gemm.k = 1024};
        CU_ASSERT_DOUBLE_EQUAL(op_compute_s(&cluster.pools[0], &op), 483.1e-6, 0.5e-6);
        CU_ASSERT_EQUAL(cluster.num_gpus, 2);
        CU_ASSERT_EQUAL(cluster.pools[0].price_usd_per_gpu_hour, 0);
        double reduce_s =
            collective_s(cluster_machines(&cluster, 0), COLLECTIVE_ALL_REDUCE, (Group){2, 1}, 4096);
        CU_ASSERT_DOUBLE_EQUAL(reduce_s, 3.048e-6, 2e-9);
    }
    static const char *const NAMES[] = {"cpu", "link", "cluster"};
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%s/%s.json", folder, NAMES[i]);
        unlink(text);
    }
    rmdir(folder);
    made_free(made);
}

CU_TestInfo core_fit_tests[] = {
    {"laws_come_back", laws_come_back},
    {"missing_rows_are_named", missing_rows_are_named},
    {"times_that_do_not_rise_are_refused", times_that_do_not_rise_are_refused},
    {"collectives_of_a_busy_computer_are_refused", collectives_of_a_busy_computer_are_refused},
    {"written_files_price_as_fitted", written_files_price_as_fitted},
    CU_TEST_INFO_NULL,
};
