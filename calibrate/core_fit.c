#include "calibrate/core_fit.h"

#include "calibrate/fit.h"
#include "costmodel/core_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const CORE_SCORE_NAMES[NUM_CORE_SCORES + 1] = {
    "products, forward", "products, backward", "attention", "other operators",
    "collectives",       "messages",           NULL};

static const char *const DTYPE_NAMES[] = {"float32", "float64"};

enum { MOST_ROWS = 4096 };

// What a fit of a law sees: rows of one kind, and how the parameters make their time.
typedef struct {
    const void *rows[MOST_ROWS]; // [num_rows]
    int num_rows;
    double target[MOST_ROWS]; // [num_rows], log seconds
} Chosen;
static void choose(Chosen *chosen, const void *row, double time_s) {
    if (chosen->num_rows == MOST_ROWS) return;
    chosen->target[chosen->num_rows] = log(time_s);
    chosen->rows[chosen->num_rows++] = row;
}

static void solve(const Chosen *chosen, FitModel model, const FitParameter *parameters, int num,
                  double *values) {
    FitProblem problem = {.num_rows = chosen->num_rows,
                          .target = chosen->target,
                          .model = model,
                          .context = chosen,
                          .num_parameters = num,
                          .parameters = parameters};
    fit_simplex(&problem, values);
}

static Status missing(const char *folder, const char *table, const char *what, int dtype) {
    return status_error(STATUS_INVALID, "%s/%s.csv: no rows of %s in %s", folder, table, what,
                        DTYPE_NAMES[dtype]);
}

// --- Products

static CoreProduct product_of(const double *v) {
    return (CoreProduct){
        .flops_per_s = v[0], .half_m = v[1], .half_n = v[2], .half_k = v[3], .call_s = v[4]};
}

static double product_model(const void *context, int row, const double *values) {
    const ProductRow *r = ((const Chosen *)context)->rows[row];
    CoreProduct law = product_of(values);
    return log(core_product_s(&law, r->m, r->n, r->k));
}

static void products_fit(const CoreRows *rows, int dtype, int layout, double best, Chosen *chosen,
                         CoreProduct *out) {
    const FitParameter parameters[] = {
        {"flops_per_s", 1.1 * best, 0.3 * best, 3 * best, true},
        {"half_m", 5, 0, 500, false},
        {"half_n", 5, 0, 500, false},
        {"half_k", 10, 0, 1000, false},
        {"call_s", 3e-7, 1e-9, 1e-4, true},
    };
    double values[5];
    chosen->num_rows = 0;
    for (int i = 0; i < rows->num_products; i++) {
        const ProductRow *r = &rows->products[i];
        if ((int)r->dtype == dtype && r->layout == layout) choose(chosen, r, r->time_s);
    }
    if (chosen->num_rows == 0) return;
    solve(chosen, product_model, parameters, 5, values);
    *out = product_of(values);
}

// --- Attention

static CoreAttention attention_of(const double *v) {
    return (CoreAttention){
        .flops_per_s = v[0], .half_tokens = v[1], .half_head_dim = v[2], .call_s = v[3]};
}

static double attention_model(const void *context, int row, const double *values) {
    const AttentionRow *r = ((const Chosen *)context)->rows[row];
    CoreAttention law = attention_of(values);
    return log(core_attention_s(&law, r->flops, r->tokens, r->head_dim));
}

static void attention_fit(const CoreRows *rows, int dtype, bool backward, double best,
                          Chosen *chosen, CoreAttention *out) {
    const FitParameter parameters[] = {
        {"flops_per_s", 0.7 * best, 0.02 * best, 3 * best, true},
        {"half_tokens", 60, 0, 2000, false},
        {"half_head_dim", 60, 0, 5000, false},
        {"call_s", 3e-7, 1e-9, 1e-4, true},
    };
    double values[4];
    chosen->num_rows = 0;
    for (int i = 0; i < rows->num_attention; i++) {
        const AttentionRow *r = &rows->attention[i];
        if ((int)r->dtype == dtype && r->backward == backward) choose(chosen, r, r->time_s);
    }
    if (chosen->num_rows == 0) return;
    solve(chosen, attention_model, parameters, 4, values);
    *out = attention_of(values);
}

// --- Loops

static double loop_model(const void *context, int row, const double *values) {
    const LoopRow *r = ((const Chosen *)context)->rows[row];
    return log(values[2] + r->bytes / values[0] + r->angles * values[1]);
}

static void loop_fit(const CoreRows *rows, int dtype, CoreLoop loop, int direction, Chosen *chosen,
                     CoreLaws *laws) {
    const bool rope = loop == CORE_ROPE;
    const FitParameter parameters[] = {
        {"bytes_per_s", 5e9, 1e7, 1e12, true},
        {"angle_s", rope ? 2e-8 : 0, 0, rope ? 1e-6 : 1e-30, false},
        {"call_s", fmax(rows->call_s, 1e-10), fmax(rows->call_s, 1e-10) * 0.999,
         fmax(rows->call_s, 1e-10) * 1.001, true},
    };
    double values[3];
    chosen->num_rows = 0;
    for (int i = 0; i < rows->num_loops; i++) {
        const LoopRow *r = &rows->loops[i];
        if ((int)r->dtype == dtype && r->loop == loop && (direction ? r->backward : r->forward))
            choose(chosen, r, r->time_s);
    }
    if (chosen->num_rows == 0) return;
    solve(chosen, loop_model, parameters, 3, values);
    laws->bytes_per_s[loop][direction] = values[0];
    if (rope) laws->angle_s = values[1];
}

// --- All laws of a core

static Status laws_check(const CoreLaws *laws, const char *folder, int dtype) {
    for (int i = 0; i < CORE_NUM_PRODUCTS; i++)
        if (laws->products[i].flops_per_s <= 0)
            return missing(folder, i ? "gemm_backward" : "gemm_other", CORE_PRODUCT_NAMES[i],
                           dtype);
    for (int i = 0; i < 2; i++)
        if (laws->attention[i].flops_per_s <= 0)
            return missing(folder, "attention", i ? "attention_backward" : "attention_forward",
                           dtype);
    for (int i = 0; i < 2 * NUM_CORE_LOOPS; i++)
        if (laws->bytes_per_s[i / 2][i % 2] <= 0)
            return missing(folder, "memory_bound", CORE_LOOP_NAMES[i / 2], dtype);
    return status_ok();
}

static Status laws_fit(const CoreRows *rows, int dtype, const char *folder, Chosen *chosen,
                       CoreFit *fit) {
    CoreLaws *laws = &fit->laws[dtype];
    double best = fit->best_flops_per_s[dtype];
    laws->call_s = rows->call_s;
    for (int i = 0; i < CORE_NUM_PRODUCTS; i++)
        products_fit(rows, dtype, i, best, chosen, &laws->products[i]);
    for (int i = 0; i < 2; i++)
        attention_fit(rows, dtype, i == 1, best, chosen, &laws->attention[i]);
    for (int i = 0; i < 2 * NUM_CORE_LOOPS; i++)
        loop_fit(rows, dtype, (CoreLoop)(i / 2), i % 2, chosen, laws);
    laws->present = true;
    return laws_check(laws, folder, dtype);
}

static void bests_find(const CoreRows *rows, CoreFit *fit) {
    double longest_bytes = 0;
    for (int i = 0; i < rows->num_products; i++) {
        const ProductRow *r = &rows->products[i];
        double *best = &fit->best_flops_per_s[r->dtype];
        *best = fmax(*best, 2 * r->m * r->n * r->k / r->time_s);
    }
    for (int i = 0; i < rows->num_loops; i++) {
        const LoopRow *r = &rows->loops[i];
        if (r->copy) fit->copy_bytes_per_s = fmax(fit->copy_bytes_per_s, r->bytes / r->time_s);
        if (r->loop != CORE_ADD || !r->forward || r->bytes < longest_bytes) continue;
        longest_bytes = r->bytes;
        fit->add_bytes_per_s = r->bytes / r->time_s;
    }
}

// --- Scores

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

CoreScore core_score(double *errors, int num_rows) {
    if (num_rows == 0) return (CoreScore){0};
    qsort(errors, (size_t)num_rows, sizeof *errors, compare);
    return (CoreScore){num_rows, errors[num_rows / 2], errors[(num_rows - 1) * 9 / 10]};
}

static void laws_score(const CoreRows *rows, Arena *arena, CoreFit *fit) {
    double *errors = ARENA_ARRAY(arena, rows->num_products, double);
    for (int backward = 0; backward < 2; backward++) {
        int num = 0;
        for (int i = 0; i < rows->num_products; i++) {
            const ProductRow *r = &rows->products[i];
            const CoreProduct *law = &fit->laws[r->dtype].products[r->layout];
            if ((r->layout > 0) == backward)
                errors[num++] = fabs(core_product_s(law, r->m, r->n, r->k) / r->time_s - 1);
        }
        fit->scores[backward ? CORE_SCORE_BACKWARD : CORE_SCORE_FORWARD] = core_score(errors, num);
    }
    errors = ARENA_ARRAY(arena, rows->num_attention, double);
    for (int i = 0; i < rows->num_attention; i++) {
        const AttentionRow *r = &rows->attention[i];
        const CoreAttention *law = &fit->laws[r->dtype].attention[r->backward];
        errors[i] = fabs(core_attention_s(law, r->flops, r->tokens, r->head_dim) / r->time_s - 1);
    }
    fit->scores[CORE_SCORE_ATTENTION] = core_score(errors, rows->num_attention);
    errors = ARENA_ARRAY(arena, rows->num_loops, double);
    int num = 0;
    for (int i = 0; i < rows->num_loops; i++) {
        const LoopRow *r = &rows->loops[i];
        double time_s =
            core_loop_s(&fit->laws[r->dtype], r->loop, !r->forward, r->bytes, r->angles);
        if (r->forward || r->backward) errors[num++] = fabs(time_s / r->time_s - 1);
    }
    fit->scores[CORE_SCORE_LOOPS] = core_score(errors, num);
}

Status core_fit(const CoreRows *rows, const char *folder, Arena *arena, CoreFit *out) {
    *out = (CoreFit){0};
    Chosen *chosen = ARENA_NEW(arena, Chosen);
    bests_find(rows, out);
    for (int d = 0; d < NUM_CORE_DTYPES; d++) TRY(laws_fit(rows, d, folder, chosen, out));
    laws_score(rows, arena, out);
    return core_comm_fit(rows, folder, arena, out);
}
