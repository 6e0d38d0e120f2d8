#include "calibrate/fit_attention.h"

#include "calibrate/attention_rows.h"
#include "costmodel/kernel_context.h"
#include "costmodel/kernel_generation.h"

#include <math.h>

Status context_attention_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                             Arena *arena, KindFit *out) {
    AttentionRows rows;
    TRY(attention_rows(table, latency_s, false, arena, &rows));
    return context_rows_fit(table, &rows, gpu, arena, out);
}

Status context_attention_price(const KernelTable *table, const Gpu *gpu,
                               const KernelProfile *profile, Arena *arena, double *predicted_s) {
    AttentionRows rows;
    TRY(attention_rows(table, NULL, false, arena, &rows));
    for (int row = 0; row < rows.num_rows; row++)
        predicted_s[row] = rows.problems[row] ? NAN
                                              : kernel_context_s(gpu, &profile->context_attention,
                                                                 &rows.shapes[row]);
    return status_ok();
}

Status generation_attention_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                                Arena *arena, KindFit *out) {
    AttentionRows rows;
    TRY(attention_rows(table, latency_s, true, arena, &rows));
    return generation_rows_fit(table, &rows, gpu, arena, out);
}

Status generation_attention_price(const KernelTable *table, const Gpu *gpu,
                                  const KernelProfile *profile, Arena *arena, double *predicted_s) {
    AttentionRows rows;
    TRY(attention_rows(table, NULL, true, arena, &rows));
    for (int row = 0; row < rows.num_rows; row++)
        predicted_s[row] =
            rows.problems[row]
                ? NAN
                : kernel_generation_s(gpu, &profile->generation_attention, &rows.shapes[row]);
    return status_ok();
}
