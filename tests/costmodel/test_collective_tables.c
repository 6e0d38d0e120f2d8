// The model of collectives beside public tables of measured ones (../shared/data/collectives),
// where those are at hand. None of these rows made a curve.
#include "calibrate/fit.h"
#include "calibrate/kernel_table.h"
#include "costmodel/collective.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

// Loads a table of the folder. Prints that it skips and returns false where there is none.
static bool table_load(const char *name, Arena *arena, KernelTable *out) {
    const char *path =
        arena_printf(arena, "%s/../shared/data/collectives/%s", MESHWRIGHT_SOURCE_DIR, name);
    if (kernel_table_load(path, arena, out).code == STATUS_OK) return true;
    printf("skipped: no %s\n", path);
    return false;
}

static double *column(const KernelTable *table, const char *name, Arena *arena) {
    double *values = NULL;
    Status status = kernel_table_numbers(table, name, 0, 1e15, arena, &values);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return values;
}

static Cluster cluster_of(const char *preset, Arena *arena) {
    Scenario scenario = {0};
    const char *text = scenario_text(arena, "\"llama-3.1-8b\"", preset,
                                     "{\"seq_len\": 4096, \"global_batch\": 64}", NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, arena, &scenario).code, STATUS_OK);
    return scenario.cluster;
}

static FitScore score_print(const char *what, int num, const double *predicted_s,
                            const double *measured_s) {
    FitScore score = fit_score(num, predicted_s, measured_s);
    printf("  %s: %d rows, median error %.1f %%, 90th percentile %.1f %%\n", what, num,
           100 * score.median_frac, 100 * score.p90_frac);
    return score;
}

typedef struct {
    const char *file, *cluster;
    double median_frac, p90_frac; // not to be exceeded
} NodeCase;

// All-reduce on 2, 4 and 8 GPUs of one node, 512 KB and more (Vidur project).
static void all_reduce_inside_a_node(void) {
    static const NodeCase CASES[] = {
        {"a100_dgx__all_reduce.csv.gz", "\"dgx-a100-80g:2\"", 0.12, 0.25},
        {"h100_dgx__all_reduce.csv.gz", "\"dgx-h100:2\"", 0.08, 0.25}};
    for (int c = 0; c < 2; c++) {
        Arena arena = {0};
        KernelTable table;
        if (table_load(CASES[c].file, &arena, &table)) {
            const Cluster cluster = cluster_of(CASES[c].cluster, &arena);
            const double *median_ms = column(&table, "time_stats.all_reduce.median", &arena);
            const double *bytes = column(&table, "size", &arena);
            const double *ranks = column(&table, "num_workers", &arena);
            const double *inside = column(&table, "devices_per_node", &arena);
            double *predicted_s = ARENA_ARRAY(&arena, table.num_rows, double);
            double *measured_s = ARENA_ARRAY(&arena, table.num_rows, double);
            int num = 0;
            for (int i = 0; i < table.num_rows; i++) {
                if (ranks[i] != inside[i] || bytes[i] < 512 << 10) continue;
                const Group group = {(int)ranks[i], 1};
                measured_s[num] = median_ms[i] * 1e-3;
                predicted_s[num++] = collective_s(&cluster, COLLECTIVE_ALL_REDUCE, group, bytes[i]);
            }
            FitScore score = score_print(CASES[c].file, num, predicted_s, measured_s);
            CU_ASSERT(score.median_frac < CASES[c].median_frac);
            CU_ASSERT(score.p90_frac < CASES[c].p90_frac);
        }
        arena_free(&arena);
    }
}

CU_TestInfo collective_tables_tests[] = {
    {"all_reduce_inside_a_node", all_reduce_inside_a_node},
    CU_TEST_INFO_NULL,
};
