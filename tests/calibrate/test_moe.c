#include "calibrate/fit_moe.h"

#include "calibrate/kinds.h"
#include "costmodel/kernel/kernel_moe.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char HEADER[] = "moe_dtype,kernel_source,num_tokens,hidden_size,inter_size,topk,"
                             "num_experts,moe_tp_size,moe_ep_size,distribution,latency_ms\n";

// What the synthetic table is made with.
static MoeKernel truth(void) {
    return (MoeKernel){.kernel_source = "made_up",
                       .moe_dtype = MOE_BFLOAT16,
                       .gated = true,
                       .launch_s = 30e-6,
                       .pair_s = 1e-9,
                       .expert_s = 10e-9,
                       .local_expert_s = 20e-9,
                       .token_passes = 2,
                       .row_passes = 1.5,
                       .inner_passes = 1,
                       .max_frac = 0.7,
                       .half_rows = 30,
                       .half_k = 200,
                       .tail_frac = 0.5,
                       .memory_frac = 0.85,
                       .cache_frac = 0.5,
                       .cache_power = 8,
                       .cache_speedup = 3,
                       .overlap_power = 2};
}

static MoeShape shape_of(double tokens, double hidden, double inter, int topk, int experts, int ep,
                         double skew) {
    return (MoeShape){hidden, inter, {tokens, topk, experts, ep, skew, false}};
}

static char *table_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/meshwright-test-moe-%d.csv", (int)getpid());
    return path;
}

// Rows of 4 shapes; factor changes the unit.
static void table_write(const Gpu *gpu, double factor, const char *extra) {
    static const int SHAPES[4][4] = {
        {2048, 768, 8, 64}, {4096, 1536, 8, 128}, {6144, 4096, 2, 16}, {7168, 2048, 8, 256}};
    MoeKernel kernel = truth();
    FILE *file = fopen(table_path(), "w");
    fputs(HEADER, file);
    for (int s = 0; s < 4; s++)
        for (int ep = 1; ep <= 8; ep *= 2)
            for (int tp = 1; tp <= 4; tp *= 2)
                for (double tokens = 1; tokens < 20000; tokens *= 4) {
                    const int *d = SHAPES[s];
                    double skew = ep == 2 ? 1.2 : 0;
                    MoeShape shape =
                        shape_of(tokens, d[0], (double)d[1] / tp, d[2], d[3], ep, skew);
                    fprintf(file, "bfloat16,made_up,%.0f,%d,%d,%d,%d,%d,%d,%s,%.9g\n", tokens, d[0],
                            d[1], d[2], d[3], tp, ep, skew > 0 ? "power_law_1.2" : "balanced",
                            1e3 * factor * kernel_moe_s(gpu, &kernel, &shape));
                }
    fputs(extra, file);
    fclose(file);
}

static Status table_fit(const Gpu *gpu, Arena *arena, KindFit *fit) {
    int num_rows;
    return kind_fit_file(kind_find("moe"), table_path(), NULL, gpu, arena, &num_rows, fit);
}

static void a_made_up_kernel_is_found_again(void) {
    Arena arena = {0};
    Gpu gpu;
    KindFit fit = {0};
    CU_ASSERT_EQUAL(gpu_load_named("h100-sxm-80g", &arena, &gpu).code, STATUS_OK);
    table_write(&gpu, 1, "");
    CU_ASSERT_EQUAL(table_fit(&gpu, &arena, &fit).code, STATUS_OK);
    CU_ASSERT_EQUAL(fit.num_groups, 4);
    CU_ASSERT(fit.left_out.median_frac < 0.03);
    CU_ASSERT(fit.all.median_frac < 0.01);
    // Its grid is raw text in the tree: read what a file would hold.
    char *text = cJSON_PrintUnformatted(fit.section);
    MoeKernels kernels;
    JsonNode node;
    CU_ASSERT_EQUAL_FATAL(json_parse(text, strlen(text), "section", &arena, &node).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(moe_kernels_read(&node, &arena, &kernels).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(kernels.num_kernels, 1);
    cJSON_free(text);
    CU_ASSERT_DOUBLE_EQUAL(kernels.kernels[0].memory_frac, 0.85, 0.05);
    CU_ASSERT(kernels.kernels[0].gated);
    cJSON_Delete(fit.section);
    unlink(table_path());
    arena_free(&arena);
}

// Microseconds in the column of milliseconds make every row 1000 times too fast.
static void tables_beyond_the_peak_are_refused(void) {
    Arena arena = {0};
    Gpu gpu;
    KindFit fit = {0};
    CU_ASSERT_EQUAL(gpu_load_named("h100-sxm-80g", &arena, &gpu).code, STATUS_OK);
    table_write(&gpu, 0.1, "");
    Status status = table_fit(&gpu, &arena, &fit);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT(strstr(status.text, "the GPU's dense peak") != NULL);
    unlink(table_path());
    arena_free(&arena);
}

static void rows_that_are_no_layer_are_refused(void) {
    static const struct {
        const char *row, *problem;
    } CASES[] = {
        {"bfloat16,made_up,1,1024,1024,8,64,1,1,zipf,1\n",
         "distribution: \"zipf\"; expected balanced or power_law_A"},
        {"bfloat16,made_up,1,1024,1024,65,64,1,1,balanced,1\n", "topk"},
        {"bfloat16,made_up,1,1024,1024,8,64,1,3,balanced,1\n",
         "moe_ep_size: 3 does not divide num_experts 64"},
        {"nvfp4,made_up,1,1024,1024,8,64,1,1,balanced,1\n", "has no nvfp4 units"},
        {"bfloat16,other,1,1024,1024,8,64,1,1,balanced,1\n", "only 1 rows of other in bfloat16"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Gpu gpu;
        KindFit fit = {0};
        CU_ASSERT_EQUAL(gpu_load_named("h100-sxm-80g", &arena, &gpu).code, STATUS_OK);
        table_write(&gpu, 1, CASES[i].row);
        Status status = table_fit(&gpu, &arena, &fit);
        CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
        CU_ASSERT(strstr(status.text, CASES[i].problem) != NULL);
        unlink(table_path());
        arena_free(&arena);
    }
}

// 64 tokens, 2 of 8 experts each: 128 pairs, 16 an expert; on 4 ranks a rank has 2 experts.
static void balanced_loads_are_equal(void) {
    MoeLoad load = moe_load(&(MoeRouting){64, 2, 8, 1, 0, false});
    CU_ASSERT_DOUBLE_EQUAL(load.num_active, 8, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(load.num_rows, 128, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(load.num_tiles[0], 16, 1e-9); // 8 rows a tile
    CU_ASSERT_DOUBLE_EQUAL(load.num_tiles[5], 8, 1e-9);
    MoeLoad rank = moe_load(&(MoeRouting){64, 2, 8, 4, 0, false});
    CU_ASSERT_DOUBLE_EQUAL(rank.num_active, 2, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(rank.num_rows, 32, 1e-9);
}

static void no_pair_is_lost(void) {
    for (double tokens = 1; tokens < 5000; tokens *= 3)
        for (int skewed = 0; skewed < 2; skewed++)
            for (int limited = 0; limited < 2; limited++) {
                MoeRouting routing = {tokens, 8, 64, 1, skewed * 1.2, limited != 0};
                CU_ASSERT_DOUBLE_EQUAL(moe_load(&routing).num_rows, tokens * 8, 1e-6);
            }
}

// 16384 tokens, 8 of 256 experts on 8 ranks: balanced a rank has 16384 rows, skewed more, but not
// more than all.
static void the_busiest_rank_has_more_than_its_share(void) {
    MoeLoad even = moe_load(&(MoeRouting){16384, 8, 256, 8, 0, false});
    MoeLoad skewed = moe_load(&(MoeRouting){16384, 8, 256, 8, 1.2, false});
    CU_ASSERT_DOUBLE_EQUAL(even.num_rows, 16384, 1e-6);
    CU_ASSERT(skewed.num_rows > 1.2 * even.num_rows);
    CU_ASSERT(skewed.num_rows < 8 * even.num_rows);
}

// Every token prefers one expert in each of the 8 groups of 32; 4 groups are kept, so the first
// rank of 8 keeps its own choice and gets the 4 lost ones: 5 of 8.
static void a_group_limit_moves_choices_to_the_first_group(void) {
    MoeLoad load = moe_load(&(MoeRouting){1024, 8, 256, 8, 0, true});
    CU_ASSERT_DOUBLE_EQUAL(load.num_rows, 5 * 1024, 1e-6);
}

static void more_work_is_never_faster(void) {
    Arena arena = {0};
    Gpu gpu;
    MoeKernel kernel = truth();
    CU_ASSERT_EQUAL(gpu_load_named("h100-sxm-80g", &arena, &gpu).code, STATUS_OK);
    double before = 0;
    for (double tokens = 1; tokens < 1e6; tokens *= 2) {
        MoeShape shape = shape_of(tokens, 4096, 1536, 8, 128, 1, 0);
        double s = kernel_moe_s(&gpu, &kernel, &shape);
        CU_ASSERT(s >= before);
        before = s;
    }
    MoeShape narrow = shape_of(512, 4096, 768, 8, 128, 1, 0);
    MoeShape wide = shape_of(512, 4096, 1536, 8, 128, 1, 0);
    CU_ASSERT(kernel_moe_s(&gpu, &kernel, &narrow) < kernel_moe_s(&gpu, &kernel, &wide));
    Gpu faster = gpu;
    faster.memory_bandwidth_bytes_per_s *= 2;
    CU_ASSERT(kernel_moe_s(&faster, &kernel, &wide) < kernel_moe_s(&gpu, &kernel, &wide));
    arena_free(&arena);
}

CU_TestInfo moe_tests[] = {
    {"a_made_up_kernel_is_found_again", a_made_up_kernel_is_found_again},
    {"tables_beyond_the_peak_are_refused", tables_beyond_the_peak_are_refused},
    {"rows_that_are_no_layer_are_refused", rows_that_are_no_layer_are_refused},
    {"balanced_loads_are_equal", balanced_loads_are_equal},
    {"no_pair_is_lost", no_pair_is_lost},
    {"the_busiest_rank_has_more_than_its_share", the_busiest_rank_has_more_than_its_share},
    {"a_group_limit_moves_choices_to_the_first_group",
     a_group_limit_moves_choices_to_the_first_group},
    {"more_work_is_never_faster", more_work_is_never_faster},
    CU_TEST_INFO_NULL,
};
