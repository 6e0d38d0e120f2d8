#include "calibrate/fit_attention.h"

#include "calibrate/attention_phase.h"
#include "costmodel/kernel/rising_attention.h"

#include <math.h>
#include <string.h>

static Status limits_check(const AttentionPhase *phase, const KernelTable *table,
                           const AttentionRows *rows, const Gpu *gpu, Arena *arena) {
    KernelLimits limits = kernel_limits_new(table, arena);
    for (int row = 0; row < rows->num_rows; row++)
        phase->limits(gpu, &rows->shapes[row], &limits.least_s[row], &limits.work_s[row]);
    return kernel_table_check_limits(table, rows->latency_s, &limits, phase->limit_name);
}

// Seconds of the rows of a fold (-1: of all); NAN where one is no attention.
static void rows_price(const AttentionPhase *phase, const AttentionRows *rows, const Gpu *gpu,
                       const void *kernels, int fold, double *price_s) {
    for (int row = 0; row < rows->num_rows; row++) {
        if (fold >= 0 && rows->folds[row] != fold) continue;
        price_s[row] = rows->problems[row] ? NAN : phase->price_s(gpu, kernels, &rows->shapes[row]);
    }
}

static void left_out_price(const AttentionPhase *phase, const AttentionRows *rows, const Gpu *gpu,
                           const void *parts, double *left_out_s) {
    for (int fold = 0; fold < ATTENTION_FOLDS; fold++) {
        Arena scratch = {0};
        const void *kernels = phase->fit(parts, fold, NULL, &scratch);
        rows_price(phase, rows, gpu, kernels, fold, left_out_s);
        arena_free(&scratch);
    }
}

static Status table_fit(const AttentionPhase *phase, AttentionRead *read, const KernelTable *table,
                        const double *latency_s, const Gpu *gpu, Arena *arena, KindFit *out) {
    AttentionRows rows;
    TRY(read(table, latency_s, phase->step, arena, &rows));
    TRY(attention_rows_check(table, &rows, gpu));
    TRY(limits_check(phase, table, &rows, gpu, arena));
    double *left_out_s = ARENA_ARRAY(arena, rows.num_rows, double);
    double *all_s = ARENA_ARRAY(arena, rows.num_rows, double);
    const void *parts = phase->start(&rows, gpu, arena);
    left_out_price(phase, &rows, gpu, parts, left_out_s);
    const void *kernels = phase->fit(parts, -1, left_out_s, arena);
    rows_price(phase, &rows, gpu, kernels, -1, all_s);
    attention_scores(&rows, left_out_s, all_s, out);
    out->section = phase->to_json(kernels);
    return status_ok();
}

// The edges of a shape by its row's columns.
static void edges_name(const AttentionPhase *phase, double prompt_tokens, KernelEdges *edges) {
    for (int i = 0; i < edges->num_edges; i++) {
        KernelEdge *edge = &edges->edges[i];
        if (strcmp(edge->dimension, "heads") == 0) {
            edge->dimension = "num_heads";
        } else if (strcmp(edge->dimension, "batch") == 0) {
            edge->dimension = "batch_size";
        } else if (phase->step) {
            edge->dimension = "step";
            edge->at -= prompt_tokens;
        } else {
            edge->dimension = "isl";
        }
    }
}

typedef struct {
    const AttentionPhase *phase;
    AttentionRead *read;
    const ContextKernels *context;
    const GenerationKernels *generation; // one of the two
} TableKind;

static Status table_price(const TableKind *kind, const KernelTable *table, const Gpu *gpu,
                          Arena *arena, double *predicted_s, RowEdges *edges) {
    AttentionRows rows;
    RisingAttention *attention = rising_attention_new(gpu, kind->context, kind->generation, arena);
    TRY(kind->read(table, NULL, kind->phase->step, arena, &rows));
    for (int row = 0; row < rows.num_rows; row++) {
        predicted_s[row] =
            rows.problems[row] ? NAN : rising_attention_s(attention, &rows.shapes[row]);
        if (!edges || isnan(predicted_s[row])) continue;
        KernelEdges found = {0};
        rising_attention_edges(attention, &rows.shapes[row], rows.heads_alone[row], &found);
        edges_name(kind->phase, rows.prompt_tokens[row], &found);
        edges[row] = row_edges(&found, arena);
    }
    return status_ok();
}

Status context_attention_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                             Arena *arena, KindFit *out) {
    return table_fit(&CONTEXT_PHASE, attention_rows, table, latency_s, gpu, arena, out);
}

Status context_attention_price(const KernelTable *table, const Gpu *gpu,
                               const KernelProfile *profile, Arena *arena, double *predicted_s,
                               RowEdges *edges) {
    const TableKind kind = {&CONTEXT_PHASE, attention_rows, .context = &profile->context_attention};
    return table_price(&kind, table, gpu, arena, predicted_s, edges);
}

Status context_mla_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                       Arena *arena, KindFit *out) {
    return table_fit(&CONTEXT_PHASE, mla_rows, table, latency_s, gpu, arena, out);
}

Status context_mla_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                         Arena *arena, double *predicted_s, RowEdges *edges) {
    const TableKind kind = {&CONTEXT_PHASE, mla_rows, .context = &profile->context_mla};
    return table_price(&kind, table, gpu, arena, predicted_s, edges);
}

Status generation_attention_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                                Arena *arena, KindFit *out) {
    return table_fit(&GENERATION_PHASE, attention_rows, table, latency_s, gpu, arena, out);
}

Status generation_attention_price(const KernelTable *table, const Gpu *gpu,
                                  const KernelProfile *profile, Arena *arena, double *predicted_s,
                                  RowEdges *edges) {
    const TableKind kind = {&GENERATION_PHASE, attention_rows,
                            .generation = &profile->generation_attention};
    return table_price(&kind, table, gpu, arena, predicted_s, edges);
}

Status generation_mla_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu,
                          Arena *arena, KindFit *out) {
    return table_fit(&GENERATION_PHASE, mla_rows, table, latency_s, gpu, arena, out);
}

Status generation_mla_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                            Arena *arena, double *predicted_s, RowEdges *edges) {
    const TableKind kind = {&GENERATION_PHASE, mla_rows, .generation = &profile->generation_mla};
    return table_price(&kind, table, gpu, arena, predicted_s, edges);
}
