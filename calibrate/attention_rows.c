#include "calibrate/attention_rows.h"

#include "calibrate/fit_segment.h"

#include <math.h>
#include <string.h>

enum { MLA_CONTEXT_DIM = 160, MLA_LATENT_DIM = 288 };

// A column of formats; where one is unknown the row gets a problem.
static int *read_dtypes(const KernelTable *table, const char *column, const char **problems,
                        Arena *arena) {
    int *dtypes = kernel_table_choices(table, column, ATTENTION_DTYPE_NAMES, arena);
    const char **texts = kernel_table_texts(table, column, arena);
    for (int row = 0; row < table->num_rows; row++)
        if (dtypes[row] < 0 && !problems[row])
            problems[row] = arena_printf(arena, "%s: \"%.40s\"; expected one of bfloat16, fp8",
                                         column, texts[row]);
    return dtypes;
}

// Target, groups and folds of shapes that are there.
static void rows_finish(const double *latency_s, Arena *arena, AttentionRows *rows) {
    rows->latency_s = latency_s;
    if (!latency_s) return;
    double *target = ARENA_ARRAY(arena, rows->num_rows, double);
    uint64_t *keys = ARENA_ARRAY(arena, rows->num_rows, uint64_t);
    for (int row = 0; row < rows->num_rows; row++) {
        const AttentionShape *shape = &rows->shapes[row];
        double key[] = {shape->heads, shape->kv_heads, shape->variant.head_dim,
                        shape->variant.window_size};
        keys[row] = fit_key(key, 4);
        target[row] = log(latency_s[row]);
    }
    rows->log_latency = target;
    rows->folds = ARENA_ARRAY(arena, rows->num_rows, int);
    rows->num_groups = fit_folds(rows->num_rows, keys, ATTENTION_FOLDS, rows->folds);
}

static void rows_start(AttentionRows *rows, Arena *arena) {
    rows->shapes = ARENA_ARRAY(arena, rows->num_rows, AttentionShape);
    rows->problems = ARENA_ARRAY(arena, rows->num_rows, const char *);
    rows->prompt_tokens = ARENA_ARRAY(arena, rows->num_rows, double);
    rows->heads_alone = ARENA_ARRAY(arena, rows->num_rows, bool);
}

// Batch, and the tokens of a prompt or the keys of a step.
static Status read_sizes(const KernelTable *table, bool isl, bool step, Arena *arena,
                         AttentionRows *rows) {
    AttentionShape *shapes = rows->shapes;
    double *batch, *tokens = NULL, *steps = NULL;
    TRY(kernel_table_counts(table, "batch_size", 1, 1e6, arena, &batch));
    if (isl) TRY(kernel_table_counts(table, "isl", 1, 1e8, arena, &tokens));
    if (step) TRY(kernel_table_counts(table, "step", 0, 1e8, arena, &steps));
    for (int row = 0; row < table->num_rows; row++) {
        rows->prompt_tokens[row] = isl ? tokens[row] : 1;
        shapes[row].batch = batch[row];
        shapes[row].tokens = rows->prompt_tokens[row] + (step ? steps[row] : 0);
    }
    return status_ok();
}

Status attention_rows(const KernelTable *table, const double *latency_s, bool step, Arena *arena,
                      AttentionRows *out) {
    AttentionRows rows = {.num_rows = table->num_rows};
    double *heads, *kv_heads, *head_dim, *window;
    rows_start(&rows, arena);
    TRY(read_sizes(table, true, step, arena, &rows));
    const int *attn = read_dtypes(table, "attn_dtype", rows.problems, arena);
    const int *cache = read_dtypes(table, "kv_cache_dtype", rows.problems, arena);
    TRY(kernel_table_counts(table, "num_heads", 1, 1e5, arena, &heads));
    TRY(kernel_table_counts(table, "num_key_value_heads", 0, 1e5, arena, &kv_heads));
    TRY(kernel_table_counts(table, "head_dim", 1, 4096, arena, &head_dim));
    TRY(kernel_table_counts(table, "window_size", 0, 1 << 24, arena, &window));
    for (int row = 0; row < rows.num_rows; row++) {
        AttentionShape *shape = &rows.shapes[row];
        shape->variant =
            (AttentionVariant){attn[row], cache[row], (int)head_dim[row], (int)window[row]};
        shape->heads = heads[row];
        rows.heads_alone[row] = kv_heads[row] == 0;
        shape->kv_heads = rows.heads_alone[row] ? heads[row] : kv_heads[row];
        if (shape->kv_heads > shape->heads)
            rows.problems[row] = arena_printf(arena,
                                              "num_key_value_heads: %.0f; expected at most "
                                              "num_heads %.0f",
                                              shape->kv_heads, shape->heads);
    }
    rows_finish(latency_s, arena, &rows);
    *out = rows;
    return status_ok();
}

Status mla_rows(const KernelTable *table, const double *latency_s, bool step, Arena *arena,
                AttentionRows *out) {
    AttentionRows rows = {.num_rows = table->num_rows, .latent = true};
    double *heads, *tp;
    rows_start(&rows, arena);
    TRY(read_sizes(table, !step, step, arena, &rows));
    const int *cache = read_dtypes(table, "kv_cache_dtype", rows.problems, arena);
    TRY(kernel_table_counts(table, "num_heads", 1, 1e5, arena, &heads));
    TRY(kernel_table_counts(table, "tp_size", 1, 1e5, arena, &tp));
    for (int row = 0; row < rows.num_rows; row++) {
        AttentionShape *shape = &rows.shapes[row];
        shape->variant = (AttentionVariant){ATTENTION_BFLOAT16, cache[row],
                                            step ? MLA_LATENT_DIM : MLA_CONTEXT_DIM, 0};
        shape->heads = heads[row];
        shape->kv_heads = 1;
    }
    rows_finish(latency_s, arena, &rows);
    *out = rows;
    return status_ok();
}

// Rows of one kernel.
static int variant_num_rows(const AttentionRows *rows, const AttentionVariant *variant) {
    int num_rows = 0;
    for (int row = 0; row < rows->num_rows; row++)
        num_rows += memcmp(&rows->shapes[row].variant, variant, sizeof *variant) == 0;
    return num_rows;
}

Status attention_rows_check(const KernelTable *table, const AttentionRows *rows, const Gpu *gpu) {
    const AttentionVariant *before = NULL;
    for (int row = 0; row < rows->num_rows; row++) {
        const AttentionVariant *v = &rows->shapes[row].variant;
        if (rows->problems[row]) return kernel_table_error(table, row, "%s", rows->problems[row]);
        if (attention_peak_flops_per_s(gpu, v->attn_dtype) <= 0)
            return kernel_table_error(table, row, "attn_dtype: %s has no %s units", gpu->name,
                                      ATTENTION_DTYPE_NAMES[v->attn_dtype]);
        if (before && memcmp(v, before, sizeof *v) == 0) continue;
        before = v;
        int num_rows = variant_num_rows(rows, v);
        if (num_rows < SEGMENT_FEWEST_ROWS)
            return kernel_table_error(
                table, row,
                "%d rows with attn_dtype %s, kv_cache_dtype %s, head_dim %d, window_size %d; "
                "expected at least %d",
                num_rows, ATTENTION_DTYPE_NAMES[v->attn_dtype],
                ATTENTION_DTYPE_NAMES[v->kv_cache_dtype], v->head_dim, v->window_size,
                SEGMENT_FEWEST_ROWS);
    }
    if (rows->num_groups >= 2) return status_ok();
    return status_at(STATUS_INVALID, table->file, "",
                     "all rows have the same heads, head_dim and window_size; expected at least 2 "
                     "such groups, to leave one out");
}

void attention_scores(const AttentionRows *rows, const double *left_out_s, const double *all_s,
                      KindFit *out) {
    out->num_groups = rows->num_groups;
    out->left_out = fit_score(rows->num_rows, left_out_s, rows->latency_s);
    out->all = fit_score(rows->num_rows, all_s, rows->latency_s);
    out->fitted_s = all_s;
}
