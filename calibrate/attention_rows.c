#include "calibrate/attention_rows.h"

#include <math.h>
#include <string.h>

enum { MLA_CONTEXT_DIM = 160, MLA_LATENT_DIM = 288 };

static Status read_dtypes(const KernelTable *table, const char *column, Arena *arena, int **out) {
    const char **texts = kernel_table_texts(table, column, arena);
    int *dtypes = ARENA_ARRAY(arena, table->num_rows, int);
    for (int row = 0; row < table->num_rows; row++) {
        int d = 0;
        while (d < NUM_ATTENTION_DTYPES && strcmp(texts[row], ATTENTION_DTYPE_NAMES[d]) != 0) d++;
        if (d == NUM_ATTENTION_DTYPES)
            return kernel_table_error(table, row, "%s \"%.40s\"; expected bfloat16 or fp8", column,
                                      texts[row]);
        dtypes[row] = d;
    }
    *out = dtypes;
    return status_ok();
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

// Batch, and the tokens of a prompt or the keys of a step.
static Status read_sizes(const KernelTable *table, bool isl, bool step, Arena *arena,
                         AttentionShape *shapes) {
    double *batch, *tokens = NULL, *steps = NULL;
    TRY(kernel_table_numbers(table, "batch_size", 1, 1e6, arena, &batch));
    if (isl) TRY(kernel_table_numbers(table, "isl", 1, 1e8, arena, &tokens));
    if (step) TRY(kernel_table_numbers(table, "step", 0, 1e8, arena, &steps));
    for (int row = 0; row < table->num_rows; row++) {
        shapes[row].batch = batch[row];
        shapes[row].tokens = (isl ? tokens[row] : 1) + (step ? steps[row] : 0);
    }
    return status_ok();
}

Status attention_rows(const KernelTable *table, const double *latency_s, bool step, Arena *arena,
                      AttentionRows *out) {
    AttentionRows rows = {.num_rows = table->num_rows};
    int *attn, *cache;
    double *heads, *kv_heads, *head_dim, *window;
    rows.shapes = ARENA_ARRAY(arena, rows.num_rows, AttentionShape);
    TRY(read_sizes(table, true, step, arena, rows.shapes));
    TRY(read_dtypes(table, "attn_dtype", arena, &attn));
    TRY(read_dtypes(table, "kv_cache_dtype", arena, &cache));
    TRY(kernel_table_numbers(table, "num_heads", 1, 1e5, arena, &heads));
    TRY(kernel_table_numbers(table, "num_key_value_heads", 0, 1e5, arena, &kv_heads));
    TRY(kernel_table_numbers(table, "head_dim", 1, 4096, arena, &head_dim));
    TRY(kernel_table_numbers(table, "window_size", 0, 1 << 24, arena, &window));
    for (int row = 0; row < rows.num_rows; row++) {
        AttentionShape *shape = &rows.shapes[row];
        shape->variant =
            (AttentionVariant){attn[row], cache[row], (int)head_dim[row], (int)window[row]};
        shape->heads = heads[row];
        shape->kv_heads = kv_heads[row] > 0 ? kv_heads[row] : heads[row];
        if (shape->kv_heads > shape->heads)
            return kernel_table_error(table, row, "num_key_value_heads %g exceeds num_heads %g",
                                      shape->kv_heads, shape->heads);
    }
    rows_finish(latency_s, arena, &rows);
    *out = rows;
    return status_ok();
}

Status mla_rows(const KernelTable *table, const double *latency_s, bool step, Arena *arena,
                AttentionRows *out) {
    AttentionRows rows = {.num_rows = table->num_rows, .latent = true};
    int *cache;
    double *heads, *tp;
    rows.shapes = ARENA_ARRAY(arena, rows.num_rows, AttentionShape);
    TRY(read_sizes(table, !step, step, arena, rows.shapes));
    TRY(read_dtypes(table, "kv_cache_dtype", arena, &cache));
    TRY(kernel_table_numbers(table, "num_heads", 1, 1e5, arena, &heads));
    TRY(kernel_table_numbers(table, "tp_size", 1, 1e5, arena, &tp));
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

void attention_scores(const AttentionRows *rows, const double *left_out_s, const double *all_s,
                      KindFit *out) {
    out->num_groups = rows->num_groups;
    out->left_out = fit_score(rows->num_rows, left_out_s, rows->latency_s);
    out->all = fit_score(rows->num_rows, all_s, rows->latency_s);
}

FitScore attention_part_score(const AttentionRows *rows, const int *part, int num_part,
                              const double *predicted_s) {
    Arena scratch = {0};
    double *predicted = ARENA_ARRAY(&scratch, num_part, double);
    double *measured = ARENA_ARRAY(&scratch, num_part, double);
    for (int i = 0; i < num_part; i++) {
        predicted[i] = predicted_s[part[i]];
        measured[i] = rows->latency_s[part[i]];
    }
    FitScore score = fit_score(num_part, predicted, measured);
    arena_free(&scratch);
    return score;
}
