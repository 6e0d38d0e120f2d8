// calibrate/fit_attention.h - fits and prices tables of measured attention, plain and latent (MLA),
// of prompts and of generation (costmodel/kernel/kernel_context.h,
// costmodel/kernel/kernel_generation.h; shapes: calibrate/attention_rows.h).
//
// Per kernel: physical parameters, then a residual grid over batch x heads, tokens and heads per
// key-value head; groups that cross-validation leaves out are whole (heads, kv_heads, head_dim,
// window).
#pragma once

#include "calibrate/kinds.h"

Status context_attention_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                             Arena *arena, KindFit *out);
Status context_attention_price(const KernelTable *table, const Gpu *gpu,
                               const KernelProfile *profile, Arena *arena, double *predicted_s,
                               RowEdges *edges);
Status context_mla_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                       Arena *arena, KindFit *out);
Status context_mla_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                         Arena *arena, double *predicted_s, RowEdges *edges);
Status generation_attention_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                                Arena *arena, KindFit *out);
Status generation_attention_price(const KernelTable *table, const Gpu *gpu,
                                  const KernelProfile *profile, Arena *arena, double *predicted_s,
                                  RowEdges *edges);
Status generation_mla_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                          Arena *arena, KindFit *out);
Status generation_mla_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                            Arena *arena, double *predicted_s, RowEdges *edges);
