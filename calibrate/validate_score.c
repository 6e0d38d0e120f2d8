// Scores of predictions: what calibrate/validate.h defines, over a selection of cases.
#include "calibrate/fit.h"
#include "calibrate/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double mean(const double *values, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += values[i];
    return n > 0 ? sum / n : NAN;
}

// --- Step time

static void errors_score(const ValidateCase *const *cases, int num_cases, Arena *arena,
                         ValidateScore *score) {
    double *errors = ARENA_ARRAY(arena, num_cases, double);
    double *sizes = ARENA_ARRAY(arena, num_cases, double);
    int n = 0;
    for (int i = 0; i < num_cases; i++) {
        if (cases[i]->refusal) continue;
        errors[n] = cases[i]->error_frac;
        sizes[n] = fabs(errors[n]);
        n++;
    }
    score->median_frac = fit_median(sizes, n); // sorts them
    score->mape_frac = mean(sizes, n);
    score->bias_frac = mean(errors, n);
    score->p90_frac = n > 0 ? sizes[(int)(0.9 * n)] : NAN; // 0.9 n < n
}

static void interval_score(const ValidateCase *const *cases, int num_cases, ValidateScore *score) {
    int num_inside = 0, n = 0;
    for (int i = 0; i < num_cases; i++) {
        const Estimate *e = &cases[i]->estimate;
        double measured_s = cases[i]->published->truth.step_time_s;
        if (cases[i]->refusal || measured_s == 0) continue;
        num_inside += e->step_time_low_s <= measured_s && measured_s <= e->step_time_high_s;
        n++;
    }
    score->inside_interval_frac = n > 0 ? (double)num_inside / n : NAN;
}

// --- Memory

static void memory_add(double predicted_bytes, double measured_bytes, ValidateScore *score,
                       double *sum) {
    if (measured_bytes == 0) return;
    double error = fabs(predicted_bytes / measured_bytes - 1);
    *sum += error;
    score->memory_max_frac = score->num_memory++ ? fmax(score->memory_max_frac, error) : error;
}

static void memory_score(const ValidateCase *const *cases, int num_cases, ValidateScore *score) {
    double sum = 0;
    score->memory_max_frac = NAN;
    for (int i = 0; i < num_cases; i++) {
        if (cases[i]->refusal) continue;
        const PublishedTruth *truth = &cases[i]->published->truth;
        const RankMemory *memory = &cases[i]->estimate.memory;
        memory_add(memory->peak_bytes, truth->memory_peak_bytes, score, &sum);
        memory_add(memory->reserved_bytes, truth->memory_reserved_bytes, score, &sum);
    }
    score->memory_mape_frac = score->num_memory > 0 ? sum / score->num_memory : NAN;
}

// --- Order

static int sign(double x) {
    return (x > 0) - (x < 0);
}

static void job_score(const ValidateCase *const *job, int n, double *tau, double *regret_frac) {
    int agreement = 0, pick = 0;
    double best_s = job[0]->measured_s;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++)
            agreement += sign(job[i]->estimate.step_time_s - job[j]->estimate.step_time_s) *
                         sign(job[i]->measured_s - job[j]->measured_s);
        if (job[i]->estimate.step_time_s < job[pick]->estimate.step_time_s) pick = i;
        best_s = fmin(best_s, job[i]->measured_s);
    }
    *tau = 2.0 * agreement / ((double)n * (n - 1));
    *regret_frac = job[pick]->measured_s / best_s - 1;
}

static int compare_jobs(const void *a, const void *b) {
    const ValidateCase *x = *(const ValidateCase *const *)a, *y = *(const ValidateCase *const *)b;
    int order = strcmp(x->job, y->job);
    return order ? order : x < y ? -1 : x > y; // both lie in one array
}

static void order_score(const ValidateCase *const *cases, int num_cases, Arena *arena,
                        ValidateScore *score) {
    const ValidateCase **timed = ARENA_ARRAY(arena, num_cases, const ValidateCase *);
    int n = 0;
    for (int i = 0; i < num_cases; i++)
        if (!cases[i]->refusal && cases[i]->published->truth.step_time_s > 0) timed[n++] = cases[i];
    qsort(timed, (size_t)n, sizeof *timed, compare_jobs);
    double tau_sum = 0, regret_sum = 0;
    for (int first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && strcmp(timed[first]->job, timed[end]->job) == 0;) end++;
        if (end - first < VALIDATE_JOB_CASES) continue;
        double tau, regret_frac;
        job_score(timed + first, end - first, &tau, &regret_frac);
        tau_sum += tau;
        regret_sum += regret_frac;
        score->num_jobs++;
    }
    score->kendall_tau = score->num_jobs > 0 ? tau_sum / score->num_jobs : NAN;
    score->regret_frac = score->num_jobs > 0 ? regret_sum / score->num_jobs : NAN;
}

// --- All

static ValidateScore cases_score(const char *family, const ValidateCase *const *cases,
                                 int num_cases) {
    ValidateScore score = {.family = family, .num_cases = num_cases};
    for (int i = 0; i < num_cases; i++) {
        score.num_refused += cases[i]->refusal != NULL;
        score.num_misfits += !cases[i]->refusal && !cases[i]->estimate.fits;
    }
    Arena scratch = {0};
    errors_score(cases, num_cases, &scratch, &score);
    interval_score(cases, num_cases, &score);
    memory_score(cases, num_cases, &score);
    order_score(cases, num_cases, &scratch, &score);
    arena_free(&scratch);
    return score;
}

static int compare_families(const void *a, const void *b) {
    const ValidateCase *x = *(const ValidateCase *const *)a, *y = *(const ValidateCase *const *)b;
    int order = strcmp(x->published->family, y->published->family);
    return order ? order : x < y ? -1 : x > y; // both lie in one array
}

static double mean_of_families(const ValidateScore *families, int num_families) {
    double sum = 0;
    int n = 0;
    for (int f = 0; f < num_families; f++) {
        if (families[f].num_cases < VALIDATE_FAMILY_CASES || isnan(families[f].mape_frac)) continue;
        sum += families[f].mape_frac;
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

ValidatePart validate_score(const ValidateCase *const *cases, int num_cases, Arena *arena) {
    const ValidateCase **sorted = ARENA_ARRAY(arena, num_cases, const ValidateCase *);
    for (int i = 0; i < num_cases; i++) sorted[i] = cases[i];
    qsort(sorted, (size_t)num_cases, sizeof *sorted, compare_families);
    ValidateScore *families = ARENA_ARRAY(arena, num_cases, ValidateScore);
    int num_families = 0;
    for (int first = 0, end; first < num_cases; first = end) {
        const char *family = sorted[first]->published->family;
        for (end = first + 1;
             end < num_cases && strcmp(sorted[end]->published->family, family) == 0;)
            end++;
        families[num_families++] = cases_score(family, sorted + first, end - first);
    }
    return (ValidatePart){.families = families,
                          .num_families = num_families,
                          .all = cases_score(NULL, sorted, num_cases),
                          .mean_of_families_frac = mean_of_families(families, num_families)};
}
