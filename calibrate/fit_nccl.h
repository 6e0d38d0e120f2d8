// calibrate/fit_nccl.h - fits and prices tables of measured collectives
// (costmodel/kernel/kernel_nccl.h).
//
// Per op_name, num_gpus and, where numbers are added, nccl_dtype: a curve through its sizes,
// fitted robustly to log time. message_size counts elements. Groups that cross-validation leaves
// out are single sizes of one operation and group, without the smallest and the largest.
#pragma once

#include "calibrate/kinds.h"

extern const char *const NCCL_ELEMENT_NAMES[]; // of nccl_dtype; ends with NULL

Status nccl_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu, Arena *arena,
                KindFit *out);

Status nccl_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                  Arena *arena, double *predicted_s, RowEdges *edges);
