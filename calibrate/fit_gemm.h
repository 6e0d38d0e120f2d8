// calibrate/fit_gemm.h - fits and prices tables of measured matrix products
// (costmodel/kernel/kernel_gemm.h).
//
// Per gemm_dtype: physical parameters by Nelder-Mead, then a residual grid over m, n, k; groups
// that cross-validation leaves out are whole (n, k).
#pragma once

#include "calibrate/kinds.h"

Status gemm_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu, Arena *arena,
                KindFit *out);

Status gemm_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                  Arena *arena, double *predicted_s, RowEdges *edges);
