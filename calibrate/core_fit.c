#include "calibrate/core_fit.h"

#include "calibrate/fit.h"
#include "calibrate/fit_linear.h"
#include "costmodel/kernel/core_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const CORE_SCORE_NAMES[NUM_CORE_SCORES + 1] = {
    "products, forward", "products, backward", "attention", "other operators",
    "collectives",       "messages",           NULL};

static const char *const DTYPE_NAMES[] = {"float32", "float64"};

// Rows of one law: what its costs are in proportion to, and the times.
typedef struct {
    int num_costs, num_rows;
    double *a, *times; // [capacity][num_costs], [capacity]
    Arena *arena;
} Chosen;

static Chosen chosen_new(int num_costs, int capacity, Arena *arena) {
    return (Chosen){.num_costs = num_costs,
                    .a = ARENA_ARRAY(arena, num_costs * capacity, double),
                    .times = ARENA_ARRAY(arena, capacity, double),
                    .arena = arena};
}

static void choose(Chosen *chosen, const double *row, double time_s) {
    for (int j = 0; j < chosen->num_costs; j++)
        chosen->a[chosen->num_rows * chosen->num_costs + j] = row[j];
    chosen->times[chosen->num_rows++] = time_s;
}

static void solve(const Chosen *chosen, double *costs) {
    fit_linear(chosen->a, chosen->times, chosen->num_rows, chosen->num_costs, chosen->arena, costs);
    for (int j = 0; j < chosen->num_costs; j++) costs[j] = fit_round(costs[j]);
}

// --- Products

enum { NO_ROWS = 0, NO_RISE = -1 }; // in the place of a rate

// Where times do not rise with the work, what remains of them tells nothing.
static double rate_of(const Chosen *chosen, double cost_s) {
    if (chosen->num_rows == 0) return NO_ROWS;
    return cost_s > 0 ? fit_round(1 / cost_s) : NO_RISE;
}

static CoreProduct product_fit(const CoreRows *rows, int dtype, int layout, Arena *arena) {
    Chosen chosen = chosen_new(5, rows->num_products, arena);
    double costs[5];
    for (int i = 0; i < rows->num_products; i++) {
        const ProductRow *r = &rows->products[i];
        double flops = 2 * r->m * r->n * r->k;
        const double row[] = {flops, flops / r->m, flops / r->n, flops / r->k, 1};
        if ((int)r->dtype == dtype && r->layout == layout) choose(&chosen, row, r->time_s);
    }
    solve(&chosen, costs);
    double rate = rate_of(&chosen, costs[0]);
    return (CoreProduct){.flops_per_s = rate,
                         .half_m = fit_round(costs[1] * rate),
                         .half_n = fit_round(costs[2] * rate),
                         .half_k = fit_round(costs[3] * rate),
                         .call_s = costs[4]};
}

// --- Attention

static CoreAttention attention_fit(const CoreRows *rows, int dtype, bool backward, Arena *arena) {
    Chosen chosen = chosen_new(4, rows->num_attention, arena);
    double costs[4];
    for (int i = 0; i < rows->num_attention; i++) {
        const AttentionRow *r = &rows->attention[i];
        const double row[] = {r->flops, r->flops / r->tokens, r->flops / r->head_dim, 1};
        if ((int)r->dtype == dtype && r->backward == backward) choose(&chosen, row, r->time_s);
    }
    solve(&chosen, costs);
    double rate = rate_of(&chosen, costs[0]);
    return (CoreAttention){.flops_per_s = rate,
                           .half_tokens = fit_round(costs[1] * rate),
                           .half_head_dim = fit_round(costs[2] * rate),
                           .call_s = costs[3]};
}

// --- Loops

// Beside the call, which is known. Only rope takes angles.
static void loop_fit(const CoreRows *rows, int dtype, CoreLoop loop, int direction, Arena *arena,
                     CoreLaws *laws) {
    const bool rope = loop == CORE_ROPE;
    Chosen chosen = chosen_new(rope ? 2 : 1, rows->num_loops, arena);
    double costs[2];
    for (int i = 0; i < rows->num_loops; i++) {
        const LoopRow *r = &rows->loops[i];
        const double row[] = {r->bytes, r->angles}, time_s = r->time_s - rows->call_s;
        bool tells = direction ? r->backward : r->forward;
        if ((int)r->dtype == dtype && r->loop == loop && tells && time_s > 0)
            choose(&chosen, row, time_s);
    }
    solve(&chosen, costs);
    laws->bytes_per_s[loop][direction] = rate_of(&chosen, costs[0]);
    if (rope) laws->angle_s = costs[1];
}

// --- All laws of a core

static Status rate_check(double rate, const char *folder, const char *table, const char *what,
                         int dtype) {
    if (rate > 0) return status_ok();
    if (rate == NO_ROWS)
        return status_error(STATUS_INVALID, "%s/%s.csv: no rows of %s in %s", folder, table, what,
                            DTYPE_NAMES[dtype]);
    return status_error(STATUS_MACHINE,
                        "%s/%s.csv: times of %s in %s do not rise with the work: other programs "
                        "took the cores; remove the table and measure again",
                        folder, table, what, DTYPE_NAMES[dtype]);
}

static Status laws_check(const CoreLaws *laws, const char *folder, int dtype) {
    for (int i = 0; i < CORE_NUM_PRODUCTS; i++)
        TRY(rate_check(laws->products[i].flops_per_s, folder, i ? "gemm_backward" : "gemm_other",
                       CORE_PRODUCT_NAMES[i], dtype));
    for (int i = 0; i < 2; i++)
        TRY(rate_check(laws->attention[i].flops_per_s, folder, "attention",
                       i ? "attention_backward" : "attention_forward", dtype));
    for (int i = 0; i < 2 * NUM_CORE_LOOPS; i++)
        TRY(rate_check(laws->bytes_per_s[i / 2][i % 2], folder, "memory_bound",
                       CORE_LOOP_NAMES[i / 2], dtype));
    return status_ok();
}

static Status laws_fit(const CoreRows *rows, int dtype, const char *folder, Arena *arena,
                       CoreLaws *laws) {
    laws->call_s = rows->call_s;
    for (int i = 0; i < CORE_NUM_PRODUCTS; i++)
        laws->products[i] = product_fit(rows, dtype, i, arena);
    for (int i = 0; i < 2; i++) laws->attention[i] = attention_fit(rows, dtype, i == 1, arena);
    for (int i = 0; i < 2 * NUM_CORE_LOOPS; i++)
        loop_fit(rows, dtype, (CoreLoop)(i / 2), i % 2, arena, laws);
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
    bests_find(rows, out);
    for (int d = 0; d < NUM_CORE_DTYPES; d++) TRY(laws_fit(rows, d, folder, arena, &out->laws[d]));
    laws_score(rows, arena, out);
    return core_comm_fit(rows, folder, arena, out);
}
