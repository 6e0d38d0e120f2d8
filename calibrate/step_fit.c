#include "calibrate/step_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double HUBER = 1.345;      // robust standard deviations
static const double HELD_SPREAD = 2;    // of a log factor without any step
static const double CONVERGED = 1e-4;   // change of a log factor
static const double LARGEST_STEP = 0.4; // of a log factor in one round
static const double LEAST_SCALE = 1e-3; // of errors
enum { MAX_ROUNDS = 12, MAX_REWEIGHTS = 30 };

// Rows with the index of their family; those of family `without` have no weight.
typedef struct {
    const StepRows *rows;
    const int *family;      // [num_rows]
    const int *family_rows; // [num_families]
    int num_families, without;
} Problem;

static double row_error(const StepRow *row, const double *change) {
    double error = row->log_ratio;
    for (int i = 0; i < row->num_parameters; i++)
        error -= row->slope[i] * change[row->parameter[i]];
    return error;
}

typedef struct {
    double value, weight;
} Weighted;

static int compare_weighted(const void *a, const void *b) {
    double x = ((const Weighted *)a)->value, y = ((const Weighted *)b)->value;
    return (x > y) - (x < y);
}

// The value below which the share `frac` of the weight lies. Sorts.
static double weighted_quantile(Weighted *values, int n, double frac) {
    double total = 0, sum = 0;
    qsort(values, (size_t)n, sizeof *values, compare_weighted);
    for (int i = 0; i < n; i++) total += values[i].weight;
    for (int i = 0; i < n; i++) {
        sum += values[i].weight;
        if (sum >= frac * total) return values[i].value;
    }
    return 0;
}

static double family_weight(const Problem *p, int row) {
    return p->family[row] == p->without ? 0 : 1.0 / p->family_rows[p->family[row]];
}

// Median of |error| over 0.6745, each family alike.
static double robust_scale(const Problem *p, const double *change, Weighted *scratch) {
    for (int i = 0; i < p->rows->num_rows; i++)
        scratch[i] = (Weighted){fabs(row_error(&p->rows->rows[i], change)), family_weight(p, i)};
    return fmax(LEAST_SCALE, weighted_quantile(scratch, p->rows->num_rows, 0.5) / 0.6745);
}

static void normal_equations(const Problem *p, const double *change, double scale,
                             gsl_matrix *matrix, gsl_vector *right) {
    gsl_matrix_set_zero(matrix);
    gsl_vector_set_zero(right);
    for (int i = 0; i < p->rows->num_rows; i++) {
        const StepRow *row = &p->rows->rows[i];
        double error = row_error(row, change);
        double weight = family_weight(p, i) * fmin(1, HUBER * scale / fmax(fabs(error), 1e-12));
        for (int a = 0; a < row->num_parameters; a++) {
            size_t pa = (size_t)row->parameter[a];
            *gsl_vector_ptr(right, pa) += weight * row->slope[a] * row->log_ratio;
            for (int b = 0; b < row->num_parameters; b++)
                *gsl_matrix_ptr(matrix, pa, (size_t)row->parameter[b]) +=
                    weight * row->slope[a] * row->slope[b];
        }
    }
    double held = scale * scale / (HELD_SPREAD * HELD_SPREAD);
    for (int k = 0; k < p->rows->num_parameters; k++) {
        *gsl_matrix_ptr(matrix, (size_t)k, (size_t)k) += held;
        *gsl_vector_ptr(right, (size_t)k) -= held * p->rows->parameters[k].log_factor;
    }
}

// The change [num_parameters] of the log factors that fits best at the present slopes.
static double change_solve(const Problem *p, double *change) {
    size_t n = (size_t)p->rows->num_parameters;
    memset(change, 0, n * sizeof *change);
    Weighted *scratch = malloc((size_t)p->rows->num_rows * sizeof *scratch + 1);
    if (!scratch) abort(); // as an exhausted arena
    double scale = robust_scale(p, change, scratch);
    gsl_matrix *matrix = gsl_matrix_alloc(n, n);
    gsl_vector *right = gsl_vector_alloc(n), *solution = gsl_vector_alloc(n);
    for (int round = 0; round < MAX_REWEIGHTS; round++) {
        normal_equations(p, change, scale, matrix, right);
        gsl_linalg_cholesky_decomp1(matrix);
        gsl_linalg_cholesky_solve(matrix, right, solution);
        double moved = 0;
        for (size_t k = 0; k < n; k++) {
            moved = fmax(moved, fabs(gsl_vector_get(solution, k) - change[k]));
            change[k] = gsl_vector_get(solution, k);
        }
        scale = robust_scale(p, change, scratch);
        if (moved < CONVERGED / 10) break;
    }
    gsl_vector_free(solution);
    gsl_vector_free(right);
    gsl_matrix_free(matrix);
    free(scratch);
    return scale;
}

// --- Families

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Families of the rows in alphabetical order, and which each row is of.
static StepFamily *families_find(const StepRows *rows, Arena *arena, int *family,
                                 int *num_families) {
    const char **names = ARENA_ARRAY(arena, rows->num_rows, const char *);
    for (int i = 0; i < rows->num_rows; i++) names[i] = rows->rows[i].published->family;
    qsort(names, (size_t)rows->num_rows, sizeof *names, compare_names);
    StepFamily *families = ARENA_ARRAY(arena, rows->num_rows, StepFamily);
    int n = 0;
    for (int i = 0; i < rows->num_rows; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0) families[n++].name = names[i];
    for (int i = 0; i < rows->num_rows; i++)
        for (int f = 0; f < n; f++)
            if (strcmp(families[f].name, rows->rows[i].published->family) == 0) {
                family[i] = f;
                families[f].num_rows++;
            }
    *num_families = n;
    return families;
}

static double error_frac(double log_ratio) {
    return fabs(exp(-log_ratio) - 1);
}

// --- The fit

static Status rounds_run(const PublishedCase *published, int num_cases, ValidateProgress progress,
                         void *context, Arena *arena, Problem *p, StepFit *fit) {
    StepRows *rows = &fit->rows;
    double change[STEP_MAX_PARAMETERS];
    for (int round = 0; round < MAX_ROUNDS; round++) {
        double moved = 0;
        fit->scale = change_solve(p, change);
        for (int k = 0; k < rows->num_parameters; k++) {
            change[k] = fmin(LARGEST_STEP, fmax(-LARGEST_STEP, change[k]));
            rows->parameters[k].log_factor += change[k];
            moved = fmax(moved, fabs(change[k]));
        }
        TRY(step_rows_predict(published, num_cases, progress, context, arena, rows));
        if (moved < CONVERGED) break;
    }
    return status_ok();
}

static void parameters_count(const Problem *p, StepFit *fit) {
    for (int k = 0; k < fit->rows.num_parameters; k++)
        for (int f = 0; f < p->num_families; f++) {
            int num_rows = 0;
            for (int i = 0; i < fit->rows.num_rows; i++) {
                const StepRow *row = &fit->rows.rows[i];
                for (int a = 0; p->family[i] == f && a < row->num_parameters; a++)
                    num_rows += row->parameter[a] == k && fabs(row->slope[a]) >= 0.01;
            }
            fit->parameters[k].num_rows += num_rows;
            fit->parameters[k].num_families += num_rows > 0;
        }
}

// Leaves out one family after the other: their errors then, and the spread of the parameters.
static void families_leave_out(Problem *p, StepFamily *families, Arena *arena, StepFit *fit) {
    const int n = fit->rows.num_parameters;
    double *left_out = ARENA_ARRAY(arena, fit->rows.num_rows, double);
    double *changes = ARENA_ARRAY(arena, (size_t)p->num_families * (size_t)n, double);
    for (int f = 0; f < p->num_families; f++) {
        double *change = changes + (size_t)f * (size_t)n;
        p->without = f;
        change_solve(p, change);
        for (int i = 0; i < fit->rows.num_rows; i++) {
            if (p->family[i] != f) continue;
            const StepRow *row = &fit->rows.rows[i];
            left_out[i] = row_error(row, change);
            families[f].left_out_frac += error_frac(left_out[i]) / families[f].num_rows;
            families[f].included_frac += error_frac(row->log_ratio) / families[f].num_rows;
        }
    }
    p->without = -1;
    fit->left_out = left_out;
    for (int k = 0; k < n; k++) {
        double mean = 0, square = 0;
        for (int f = 0; f < p->num_families; f++)
            mean += changes[(size_t)f * (size_t)n + (size_t)k] / p->num_families;
        for (int f = 0; f < p->num_families; f++) {
            double off = changes[(size_t)f * (size_t)n + (size_t)k] - mean;
            square += off * off;
        }
        int used = fit->parameters[k].num_families;
        fit->parameters[k].spread = used > 1 ? sqrt(square * (used - 1) / used) : NAN;
    }
}

Status step_fit(const PublishedCase *published, int num_cases, ValidateProgress progress,
                void *context, Arena *arena, StepFit *out) {
    gsl_set_error_handler_off();
    *out = (StepFit){0};
    TRY(step_rows_predict(published, num_cases, progress, context, arena, &out->rows));
    if (out->rows.num_rows == 0)
        return status_error(STATUS_INVALID, "none of %d steps can be predicted", num_cases);
    int *family = ARENA_ARRAY(arena, out->rows.num_rows, int);
    StepFamily *families = families_find(&out->rows, arena, family, &out->num_families);
    int *family_rows = ARENA_ARRAY(arena, out->num_families, int);
    for (int f = 0; f < out->num_families; f++) family_rows[f] = families[f].num_rows;
    double *in_files = ARENA_ARRAY(arena, out->rows.num_rows, double);
    for (int i = 0; i < out->rows.num_rows; i++) {
        in_files[i] = out->rows.rows[i].log_ratio;
        families[family[i]].before_frac += error_frac(in_files[i]) / family_rows[family[i]];
    }
    out->in_files = in_files;
    Problem problem = {&out->rows, family, family_rows, out->num_families, -1};
    if (out->rows.num_parameters > 0)
        TRY(rounds_run(published, num_cases, progress, context, arena, &problem, out));
    parameters_count(&problem, out);
    families_leave_out(&problem, families, arena, out);
    out->families = families;
    return status_ok();
}
