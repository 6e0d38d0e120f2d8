// Tables of measured kernels: CSV, plain or packed by gzip.
#include "calibrate/kernel_table.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    static const char *const SIZES[] = {"m", "n", "k", NULL};
    KernelTable table;
    double *latency_s, *counts;
    (void)text;
    (void)size;
    if (kernel_table_load(fuzz_path(), arena, &table).code != STATUS_OK) return;
    if (kernel_table_require(&table, SIZES).code != STATUS_OK) return;
    if (kernel_table_counts(&table, "m", 1, 1e9, arena, &counts).code != STATUS_OK) return;
    if (kernel_table_latency_s(&table, arena, &latency_s).code != STATUS_OK) return;
    kernel_table_check_repeats(&table, SIZES, latency_s);
}
