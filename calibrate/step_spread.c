#include "calibrate/step_spread.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Where there is no run to tell: products 5 %, as the kernel profiles' residuals on left-out shapes
// and the clock; attention and memory-bound operators twice that (their kernels differ by stack);
// host and networks by what published measurements of the same thing differ.
const double STEP_SPREAD_PRIORS[NUM_PARTS + 1] = {
    [PART_PRODUCTS] = 0.05, [PART_ATTENTION] = 0.1, [PART_MEMORY] = 0.1,    [PART_HOST] = 0.3,
    [PART_INSIDE] = 0.2,    [PART_ACROSS] = 0.3,    [PART_OPTIMIZER] = 0.2, [NUM_PARTS] = 0.05,
};
static const double PRIOR_SPREAD = 0.6931; // log 2
static const double SITE_ROWS = 8;         // a site counts as at most so many steps
static const double QUANTILE_90 = 1.2816;

enum { NUM_SPREADS = NUM_PARTS + 1, NUM_SOUGHT = NUM_SPREADS + NUM_PARTS };

double step_site_log_density(int num_rows, const double (*shares)[NUM_PARTS], const double *errors,
                             const double *variances, double weight, const double *spread) {
    double matrix_data[NUM_PARTS * NUM_PARTS], right_data[NUM_PARTS], solution_data[NUM_PARTS];
    gsl_matrix_view matrix = gsl_matrix_view_array(matrix_data, NUM_PARTS, NUM_PARTS);
    gsl_vector_view right = gsl_vector_view_array(right_data, NUM_PARTS);
    gsl_vector_view solution = gsl_vector_view_array(solution_data, NUM_PARTS);
    gsl_matrix_set_identity(&matrix.matrix);
    gsl_vector_set_zero(&right.vector);
    double squares = 0, logs = 0;
    for (int i = 0; i < num_rows; i++) {
        double w = weight / variances[i];
        squares += w * errors[i] * errors[i];
        logs += weight * log(variances[i]);
        for (int a = 0; a < NUM_PARTS; a++) {
            double wa = w * shares[i][a] * spread[a];
            right_data[a] += wa * errors[i];
            for (int b = 0; b < NUM_PARTS; b++)
                matrix_data[a * NUM_PARTS + b] += wa * shares[i][b] * spread[b];
        }
    }
    gsl_linalg_cholesky_decomp1(&matrix.matrix);
    gsl_linalg_cholesky_solve(&matrix.matrix, &right.vector, &solution.vector);
    for (int a = 0; a < NUM_PARTS; a++) {
        squares -= right_data[a] * solution_data[a];
        logs += 2 * log(matrix_data[a * NUM_PARTS + a]);
    }
    return -(squares + logs) / 2;
}

// --- All sites

typedef struct {
    int num_rows;
    double (*shares)[NUM_PARTS];
    double *errors, *known, *variances; // [num_rows] variances: scratch
    double *weights;                    // [num_rows] one over the rows of the family
    int *first;                         // [num_sites + 1] rows of a site stand together
    int num_sites;
} Sites;

static int compare_sites(const void *a, const void *b) {
    const StepRow *x = *(const StepRow *const *)a, *y = *(const StepRow *const *)b;
    int order = strcmp(x->site, y->site);
    return order ? order : x < y ? -1 : x > y; // both lie in one array
}

static Sites sites_of(const StepRows *rows, const double *errors, Arena *arena) {
    const int n = rows->num_rows;
    const StepRow **sorted = ARENA_ARRAY(arena, n, const StepRow *);
    Sites s = {.num_rows = n, .errors = ARENA_ARRAY(arena, n, double)};
    s.shares = arena_alloc(arena, (size_t)n * sizeof *s.shares);
    s.known = ARENA_ARRAY(arena, n, double);
    s.variances = ARENA_ARRAY(arena, n, double);
    s.weights = ARENA_ARRAY(arena, n, double);
    s.first = ARENA_ARRAY(arena, n + 1, int);
    for (int i = 0; i < n; i++) sorted[i] = &rows->rows[i];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_sites);
    for (int i = 0; i < n; i++) {
        const StepRow *row = sorted[i];
        int family_rows = 0;
        for (int j = 0; j < n; j++)
            family_rows += strcmp(sorted[j]->published->family, row->published->family) == 0;
        s.weights[i] = 1.0 / family_rows;
        s.errors[i] = errors[row - rows->rows];
        s.known[i] = row->known_variance;
        for (int k = 0; k < NUM_PARTS; k++) s.shares[i][k] = row->part_s[k] / row->predicted_s;
        if (i == 0 || strcmp(row->site, sorted[i - 1]->site) != 0) s.first[s.num_sites++] = i;
    }
    s.first[s.num_sites] = n;
    return s;
}

// Of the parts, of a row.
static double variance_of(const Sites *s, int row, const double *spread) {
    double variance = 0;
    for (int k = 0; k < NUM_PARTS; k++) {
        double part = s->shares[row][k] * spread[k];
        variance += part * part;
    }
    return variance;
}

static double shared_frac_of(const gsl_vector *place, int part) {
    return 1 / (1 + exp(-gsl_vector_get(place, (size_t)(NUM_SPREADS + part))));
}

// Minus the log posterior density of the spreads' logs and of the logit of shared_frac, where the
// uniform density is f (1 - f).
static double loss(const gsl_vector *logs, void *context) {
    Sites *s = context;
    double spread[NUM_SPREADS], site[NUM_PARTS], run[NUM_PARTS], sum = 0;
    for (int k = 0; k < NUM_SPREADS; k++) {
        double log_spread = gsl_vector_get(logs, (size_t)k);
        double off = (log_spread - log(STEP_SPREAD_PRIORS[k])) / PRIOR_SPREAD;
        spread[k] = exp(log_spread);
        sum += off * off / 2;
    }
    for (int k = 0; k < NUM_PARTS; k++) {
        double shared = shared_frac_of(logs, k);
        site[k] = spread[k] * sqrt(shared);
        run[k] = spread[k] * sqrt(1 - shared);
        sum -= log(shared) + log(1 - shared);
    }
    for (int i = 0; i < s->num_rows; i++)
        s->variances[i] =
            s->known[i] + spread[NUM_PARTS] * spread[NUM_PARTS] + variance_of(s, i, run);
    for (int g = 0; g < s->num_sites; g++) {
        int first = s->first[g], n = s->first[g + 1] - first;
        sum -= step_site_log_density(n, (const double(*)[NUM_PARTS])(s->shares + first),
                                     s->errors + first, s->variances + first,
                                     fmin(1, SITE_ROWS / n), site);
    }
    return sum;
}

static void spreads_search(Sites *sites, double *spread, double *shared_frac) {
    gsl_multimin_function function = {loss, NUM_SOUGHT, sites};
    gsl_vector *place = gsl_vector_calloc(NUM_SOUGHT), *steps = gsl_vector_alloc(NUM_SOUGHT);
    for (int k = 0; k < NUM_SPREADS; k++)
        gsl_vector_set(place, (size_t)k, log(STEP_SPREAD_PRIORS[k]));
    gsl_multimin_fminimizer *s =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, NUM_SOUGHT);
    for (int restart = 0; restart < 8; restart++) {
        gsl_vector_set_all(steps, restart % 2 ? -0.3 : 0.3);
        gsl_multimin_fminimizer_set(s, &function, place, steps);
        for (int i = 0; i < 1500; i++) {
            if (gsl_multimin_fminimizer_iterate(s)) break;
            if (gsl_multimin_fminimizer_size(s) < 1e-4) break;
        }
        gsl_vector_memcpy(place, s->x);
    }
    for (int k = 0; k < NUM_SPREADS; k++) spread[k] = exp(gsl_vector_get(place, (size_t)k));
    for (int k = 0; k < NUM_PARTS; k++) shared_frac[k] = shared_frac_of(place, k);
    gsl_multimin_fminimizer_free(s);
    gsl_vector_free(steps);
    gsl_vector_free(place);
}

// --- The factor of all

// Share of the steps, each family alike (or each step), that lie in the interval.
static double inside_of(const Sites *s, const double *spread, double factor, bool families) {
    double inside = 0, all = 0;
    for (int i = 0; i < s->num_rows; i++) {
        double fitted = variance_of(s, i, spread) + spread[NUM_PARTS] * spread[NUM_PARTS];
        double variance = s->known[i] + factor * factor * fitted;
        double weight = families ? s->weights[i] : 1;
        all += weight;
        if (fabs(s->errors[i]) <= QUANTILE_90 * sqrt(variance)) inside += weight;
    }
    return inside / all;
}

StepSpread step_spread_fit(const StepRows *rows, const double *errors) {
    gsl_set_error_handler_off();
    Arena arena = {0};
    Sites sites = sites_of(rows, errors, &arena);
    StepSpread out = {.num_sites = sites.num_sites};
    double spread[NUM_SPREADS], low = 0, high = 20;
    spreads_search(&sites, spread, out.shared_frac);
    while (high - low > 1e-6) {
        double middle = (low + high) / 2;
        *(inside_of(&sites, spread, middle, true) >= 0.8 ? &high : &low) = middle;
    }
    out.scale = high;
    out.inside_frac = inside_of(&sites, spread, high, false);
    for (int k = 0; k < NUM_PARTS; k++) {
        out.spread[k] = high * spread[k] * sqrt(out.shared_frac[k]);
        out.run_spread[k] = high * spread[k] * sqrt(1 - out.shared_frac[k]);
    }
    out.step_spread = high * spread[NUM_PARTS];
    for (int i = 0; i < rows->num_rows; i++)
        out.num_nodes = fmax(out.num_nodes, rows->rows[i].num_nodes);
    arena_free(&arena);
    return out;
}
