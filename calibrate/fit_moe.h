// calibrate/fit_moe.h - fits and prices tables of measured expert layers
// (costmodel/kernel/kernel_moe.h).
//
// Per kernel_source and moe_dtype it fits physical parameters by least squares with Cauchy weights,
// then a residual grid. Some runs of the public tables took a wrong variant of the kernel and are 3
// to 5 times as long; they must not pull. Groups that cross-validation leaves out are whole
// (hidden_size, inter_size, topk, num_experts).
#pragma once

#include "calibrate/kinds.h"

Status moe_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu, Arena *arena,
               KindFit *out);

Status moe_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                 Arena *arena, double *predicted_s, RowEdges *edges);
