#include "calibrate/fit_gemm.h"

#include "costmodel/kernel_gemm.h"

#include <math.h>

Status gemm_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu, Arena *arena,
                KindFit *out) {
    (void)latency_s, (void)gpu, (void)arena, (void)out;
    return status_at(STATUS_INVALID, table->file, "", "fitting gemm is not supported yet");
}

Status gemm_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                  Arena *arena, double *predicted_s) {
    (void)gpu, (void)profile, (void)arena;
    for (int row = 0; row < table->num_rows; row++) predicted_s[row] = NAN;
    return status_ok();
}
