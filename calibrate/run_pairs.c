#include "calibrate/run_pairs.h"

#include "calibrate/fit.h"
#include "calibrate/run_update.h"
#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A step whose scenario can be predicted.
typedef struct {
    const PublishedCase *published;
    const char *group; // family and GPU
} Step;

typedef struct {
    const char *family;
    double before_frac, after_frac; // |error|
    double before_width, after_width;
    bool before_inside, after_inside;
} Pair;

typedef struct {
    Scenario scenario;
    Plan plan;
    double measured_s; // 0: only the utilization is known, before anything is predicted
} Loaded;

static Status step_load(const PublishedCase *published, Arena *scratch, Loaded *out) {
    TRY(scenario_read(&published->scenario, scratch, &out->scenario));
    TRY(scenario_refuse_unsupported(&out->scenario));
    TRY(plan_resolve(&out->scenario, scratch, &out->plan));
    out->measured_s = published->truth.step_time_s;
    return status_ok();
}

static bool is_inside(const Estimate *e, double measured_s) {
    return e->step_time_low_s <= measured_s && measured_s <= e->step_time_high_s;
}

static Status pair_run(const Step *from, const Step *to, Arena *scratch, Pair *out) {
    Loaded known, asked;
    RunUpdate update;
    Estimate before, after;
    TRY(step_load(from->published, scratch, &known));
    TRY(run_update(&known.scenario, &known.plan, known.measured_s, 0, &update));
    TRY(step_load(to->published, scratch, &asked));
    TRY(estimate_plan(&asked.scenario, &asked.plan, scratch, &before, NULL));
    asked.scenario.calibration = &update.posterior;
    TRY(estimate_plan(&asked.scenario, &asked.plan, scratch, &after, NULL));
    *out = (Pair){.family = to->published->family,
                  .before_frac = fabs(before.step_time_s / asked.measured_s - 1),
                  .after_frac = fabs(after.step_time_s / asked.measured_s - 1),
                  .before_width = before.step_time_high_s / before.step_time_low_s - 1,
                  .after_width = after.step_time_high_s / after.step_time_low_s - 1,
                  .before_inside = is_inside(&before, asked.measured_s),
                  .after_inside = is_inside(&after, asked.measured_s)};
    return status_ok();
}

// --- Groups

static int compare_steps(const void *a, const void *b) {
    const Step *x = a, *y = b;
    int order = strcmp(x->group, y->group);
    return order ? order : x->published < y->published ? -1 : x->published > y->published;
}

// The steps that can be predicted, a group after the other.
static Status steps_find(const PublishedCase *published, int num_cases, Arena *arena, Step *steps,
                         int *num_steps) {
    Arena scratch = {0};
    Status status = status_ok();
    *num_steps = 0;
    for (int i = 0; i < num_cases && status.code != STATUS_MACHINE; i++) {
        Loaded loaded;
        arena_reset(&scratch);
        if (!published[i].stated || published[i].truth.step_time_s == 0) continue;
        status = step_load(&published[i], &scratch, &loaded);
        if (status.code != STATUS_OK) continue;
        steps[(*num_steps)++] =
            (Step){&published[i], arena_printf(arena, "%s\n%s", published[i].family,
                                               loaded.scenario.cluster.pools[0].gpu.name)};
    }
    arena_free(&scratch);
    qsort(steps, (size_t)*num_steps, sizeof *steps, compare_steps);
    return status.code == STATUS_MACHINE ? status : status_ok();
}

static int group_end(const Step *steps, int num_steps, int first) {
    int end = first + 1;
    while (end < num_steps && strcmp(steps[end].group, steps[first].group) == 0) end++;
    return end;
}

static Status pairs_find(const Step *steps, int num_steps, ValidateProgress progress, void *context,
                         Pair *pairs, int *num_pairs) {
    Arena scratch = {0};
    Status status = status_ok();
    for (int first = 0, end; first < num_steps; first = end) {
        end = group_end(steps, num_steps, first);
        int n = end - first, offsets[] = {1, n / 2};
        for (int i = 0; n > 1 && i < 2 * n && status.code == STATUS_OK; i++) {
            int offset = offsets[i % 2];
            if (i % 2 && offset <= 1) continue; // the same pair
            if (progress) progress(context, "pairs", first + i / 2, num_steps);
            arena_reset(&scratch);
            const Step *from = &steps[first + i / 2];
            const Step *to = &steps[first + (i / 2 + offset) % n];
            status = pair_run(from, to, &scratch, &pairs[(*num_pairs)++]);
        }
    }
    arena_free(&scratch);
    return status;
}

// --- Scores

// Of the pairs of a family, or of all where it is NULL.
static PairsScore pairs_score(const Pair *pairs, int num_pairs, const char *family) {
    PairsScore score = {.family = family};
    Arena scratch = {0};
    double *values[4];
    for (int i = 0; i < 4; i++) values[i] = ARENA_ARRAY(&scratch, num_pairs, double);
    int n = 0;
    for (int i = 0; i < num_pairs; i++) {
        const Pair *p = &pairs[i];
        if (family && strcmp(p->family, family) != 0) continue;
        const double four[] = {p->before_frac, p->after_frac, p->before_width, p->after_width};
        for (int v = 0; v < 4; v++) values[v][n] = four[v];
        score.before_mean_frac += p->before_frac;
        score.after_mean_frac += p->after_frac;
        score.before_inside_frac += p->before_inside;
        score.after_inside_frac += p->after_inside;
        n++;
    }
    double *sums[] = {&score.before_mean_frac, &score.after_mean_frac, &score.before_inside_frac,
                      &score.after_inside_frac};
    for (int i = 0; i < 4; i++) *sums[i] = n > 0 ? *sums[i] / n : NAN;
    score.num_pairs = n;
    score.before_median_frac = fit_median(values[0], n);
    score.after_median_frac = fit_median(values[1], n);
    score.before_width_frac = fit_median(values[2], n);
    score.after_width_frac = fit_median(values[3], n);
    arena_free(&scratch);
    return score;
}

// The groups stand in alphabetical order, so those of a family are together.
static void families_score(const Pair *pairs, int num_pairs, Arena *arena, PairsResult *out) {
    PairsScore *families = ARENA_ARRAY(arena, num_pairs, PairsScore);
    double *changes = ARENA_ARRAY(arena, num_pairs, double);
    int num_large = 0;
    for (int i = 0; i < num_pairs; i++) {
        if (i > 0 && strcmp(pairs[i].family, pairs[i - 1].family) == 0) continue;
        PairsScore score = pairs_score(pairs, num_pairs, pairs[i].family);
        families[out->num_families++] = score;
        if (score.num_pairs < VALIDATE_FAMILY_CASES) continue;
        out->before_families_frac += score.before_mean_frac;
        out->after_families_frac += score.after_mean_frac;
        changes[num_large++] = score.after_mean_frac - score.before_mean_frac;
    }
    out->families = families;
    out->change_median_frac = num_large > 0 ? fit_median(changes, num_large) : NAN;
    out->before_families_frac /= num_large; // NAN where there is none
    out->after_families_frac /= num_large;
    out->all = pairs_score(pairs, num_pairs, NULL);
}

Status run_pairs(const PublishedCase *published, int num_cases, ValidateProgress progress,
                 void *context, Arena *arena, PairsResult *out) {
    Step *steps = ARENA_ARRAY(arena, num_cases, Step);
    Pair *pairs = ARENA_ARRAY(arena, 2 * num_cases, Pair);
    int num_steps, num_pairs = 0;
    *out = (PairsResult){0};
    TRY(steps_find(published, num_cases, arena, steps, &num_steps));
    TRY(pairs_find(steps, num_steps, progress, context, pairs, &num_pairs));
    if (num_pairs == 0)
        return status_error(STATUS_INVALID, "no two of %d cases are of one family and GPU",
                            num_cases);
    families_score(pairs, num_pairs, arena, out);
    return status_ok();
}
