#include "calibrate/sustained.h"

#include "calibrate/kernel_table.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const char *const SHAPE[] = {"gemm_dtype", "m", "n", "k", NULL};
enum { NUM_SHAPE_COLUMNS = 4 };

static const char *cell_of(const KernelTable *table, int row, const char *name) {
    return table->cells[row * table->num_columns + kernel_table_column(table, name)];
}

static bool is_same_shape(const KernelTable *a, int row, const KernelTable *b, int other) {
    for (int i = 0; i < NUM_SHAPE_COLUMNS; i++)
        if (strcmp(cell_of(a, row, SHAPE[i]), cell_of(b, other, SHAPE[i])) != 0) return false;
    return true;
}

static double mean_frac(const KernelTable *products, const double *short_s,
                        const KernelTable *sustained, const double *steady_ms) {
    double sum = 0;
    int num = 0;
    for (int row = 0; row < sustained->num_rows; row++) {
        if (strcmp(cell_of(sustained, row, "data"), "normal") != 0) continue;
        for (int i = 0; i < products->num_rows; i++) {
            if (!is_same_shape(sustained, row, products, i)) continue;
            sum += log(short_s[i] / (1e-3 * steady_ms[row]));
            num++;
        }
    }
    return num > 0 ? exp(sum / num) : NAN;
}

Status sustained_frac_read(const char *folder, Arena *arena, double *out) {
    static const char *const STEADY[] = {"gemm_dtype",        "m", "n", "k", "data",
                                         "latency_ms_steady", NULL};
    const char *of_short = arena_printf(arena, "%s/gemm.csv", folder);
    const char *of_long = arena_printf(arena, "%s/sustained.csv", folder);
    KernelTable products, sustained;
    double *short_s, *steady_ms;
    *out = NAN;
    if (access(of_short, F_OK) != 0 || access(of_long, F_OK) != 0) return status_ok();
    TRY(kernel_table_load(of_short, arena, &products));
    TRY(kernel_table_require(&products, SHAPE));
    TRY(kernel_table_latency_s(&products, arena, &short_s));
    TRY(kernel_table_load(of_long, arena, &sustained));
    TRY(kernel_table_require(&sustained, STEADY));
    TRY(kernel_table_numbers(&sustained, "latency_ms_steady", 1e-4, 6e5, arena, &steady_ms));
    *out = mean_frac(&products, short_s, &sustained, steady_ms);
    return status_ok();
}

double sustained_full_rate_watts(const Gpu *gpu, double frac) {
    const double exponent = gpu->efficiency.power_exponent;
    return gpu->power_watts / pow(fmin(frac, 1), 1 / (exponent > 0 ? exponent : 1.0 / 3));
}
