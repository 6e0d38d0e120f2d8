#include "calibrate/fit_nccl.h"

#include "calibrate/kinds.h"
#include "costmodel/kernel/kernel_nccl.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// A latency that grows by 1 us a rank and a wire of 300 GB/s.
static double made_up_s(NcclOp op, int num_gpus, double bytes) {
    return 8e-6 + 1e-6 * num_gpus + nccl_wire_frac(op, num_gpus) * bytes / 300e9;
}

static char *table_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/meshwright-test-nccl-%d.csv", (int)getpid());
    return path;
}

static void table_write(double factor, const char *extra) {
    FILE *file = fopen(table_path(), "w");
    fputs("op_name,nccl_dtype,num_gpus,message_size,latency_ms\n", file);
    for (int op = 0; op < NUM_NCCL_OPS; op++)
        for (int gpus = 2; gpus <= 8; gpus += 6)
            for (double elements = 256; elements < 3e8; elements *= 2)
                fprintf(file, "%s,half,%d,%.0f,%.9g\n", NCCL_OP_NAMES[op], gpus, elements,
                        1e3 * factor * made_up_s((NcclOp)op, gpus, 2 * elements));
    fputs(extra, file);
    fclose(file);
}

static Status table_fit(Arena *arena, KindFit *fit, NcclKernels *kernels) {
    Gpu gpu;
    int num_rows;
    TRY(gpu_load_named("h100-sxm-80g", arena, &gpu));
    TRY(kind_fit_file(kind_find("nccl"), table_path(), NULL, &gpu, arena, &num_rows, fit));
    // Its points are raw text in the tree: read what a file would hold.
    char *text = cJSON_PrintUnformatted(fit->section);
    JsonNode node;
    Status status = json_parse(text, strlen(text), "section", arena, &node);
    cJSON_free(text);
    TRY(status);
    return nccl_kernels_read(&node, arena, kernels);
}

static void sizes_left_out_are_found_between_their_neighbours(void) {
    Arena arena = {0};
    KindFit fit = {0};
    NcclKernels kernels = {0};
    table_write(1, "");
    CU_ASSERT_EQUAL(table_fit(&arena, &fit, &kernels).code, STATUS_OK);
    CU_ASSERT(fit.left_out.median_frac < 0.02);
    CU_ASSERT(fit.all.median_frac < 0.01);
    CU_ASSERT_EQUAL(kernels.num_curves, 8);
    cJSON_Delete(fit.section);
    unlink(table_path());
    arena_free(&arena);
}

// 4 of 2 and 8 GPUs: the latency 2/6, the wire 2/3 of the way, which is what made_up_s does.
static void group_sizes_between_measured_ones_interpolate(void) {
    Arena arena = {0};
    KindFit fit = {0};
    NcclKernels kernels = {0};
    table_write(1, "");
    CU_ASSERT_EQUAL(table_fit(&arena, &fit, &kernels).code, STATUS_OK);
    for (int op = 0; op < NUM_NCCL_OPS; op++)
        for (double bytes = 512; bytes < 6e8; bytes *= 8) {
            double expected_s = made_up_s((NcclOp)op, 4, bytes);
            double s = kernel_nccl_s(&kernels, (NcclOp)op, NCCL_HALF, 4, bytes);
            CU_ASSERT_DOUBLE_EQUAL(s / expected_s, 1, 0.06);
        }
    cJSON_Delete(fit.section);
    unlink(table_path());
    arena_free(&arena);
}

// Copies take the curve of any format, sums only their own.
static void sums_are_priced_in_their_own_format(void) {
    Arena arena = {0};
    KindFit fit = {0};
    NcclKernels kernels = {0};
    table_write(1, "");
    CU_ASSERT_EQUAL(table_fit(&arena, &fit, &kernels).code, STATUS_OK);
    CU_ASSERT(isnan(kernel_nccl_s(&kernels, NCCL_ALL_REDUCE, NCCL_INT8, 8, 1e6)));
    CU_ASSERT(kernel_nccl_s(&kernels, NCCL_ALL_GATHER, NCCL_INT8, 8, 1e6) > 0);
    cJSON_Delete(fit.section);
    unlink(table_path());
    arena_free(&arena);
}

static void more_bytes_and_more_ranks_are_never_faster(void) {
    static const double BYTES[] = {1024, 1048576, 1073741824}, SECONDS[] = {1e-5, 2e-5, 4e-3};
    NcclCurve curve = {NCCL_ALL_GATHER, NCCL_ANY, 8, 3, BYTES, SECONDS, 0, 0};
    NcclKernels kernels = {.num_curves = 1, .curves = &curve};
    double before = 0;
    for (double bytes = 1; bytes < 1e12; bytes *= 3) {
        double s = kernel_nccl_s(&kernels, NCCL_ALL_GATHER, NCCL_HALF, 8, bytes);
        CU_ASSERT(s >= before);
        CU_ASSERT(kernel_nccl_s(&kernels, NCCL_ALL_GATHER, NCCL_HALF, 16, bytes) >= s);
        CU_ASSERT(kernel_nccl_s(&kernels, NCCL_ALL_GATHER, NCCL_HALF, 4, bytes) <= s);
        before = s;
    }
    // Twice the last point's bytes take twice its time.
    CU_ASSERT_DOUBLE_EQUAL(nccl_curve_s(&curve, 2147483648.0), 8e-3, 1e-9);
}

static void tables_that_cannot_be_are_refused(void) {
    static const struct {
        double factor;
        const char *extra, *problem;
    } CASES[] = {
        {0.01, "", "the bandwidth of nvlink4"},
        {1, "broadcast,half,8,1024,0.01\n", "op_name: \"broadcast\"; expected one of all_gather"},
        {1, "all_reduce,half,4,1024,0.01\n", "message_size: 1 sizes of all_reduce on 4 GPUs"},
        {1, "all_reduce,half,1,1024,0.01\n", "num_gpus"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        KindFit fit = {0};
        NcclKernels kernels = {0};
        table_write(CASES[i].factor, CASES[i].extra);
        Status status = table_fit(&arena, &fit, &kernels);
        CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
        CU_ASSERT(strstr(status.text, CASES[i].problem) != NULL);
        unlink(table_path());
        arena_free(&arena);
    }
}

CU_TestInfo nccl_tests[] = {
    {"sizes_left_out_are_found_between_their_neighbours",
     sizes_left_out_are_found_between_their_neighbours},
    {"group_sizes_between_measured_ones_interpolate",
     group_sizes_between_measured_ones_interpolate},
    {"sums_are_priced_in_their_own_format", sums_are_priced_in_their_own_format},
    {"more_bytes_and_more_ranks_are_never_faster", more_bytes_and_more_ranks_are_never_faster},
    {"tables_that_cannot_be_are_refused", tables_that_cannot_be_are_refused},
    CU_TEST_INFO_NULL,
};
