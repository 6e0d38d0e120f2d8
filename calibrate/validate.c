#include "calibrate/validate.h"

#include "config/job/scenario.h"
#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>

// --- Prediction

static const char *job_text(const PublishedCase *published, const Scenario *scenario,
                            Arena *arena) {
    return arena_printf(arena, "%s\n%s\n%s\n%d\n%lld\n%lld", published->family,
                        scenario->model.name, scenario->cluster.pools[0].gpu.name,
                        scenario->cluster.num_gpus, (long long)scenario->training.seq_len,
                        (long long)scenario->training.global_batch);
}

static Status case_predict(const PublishedCase *published, Arena *scratch, Arena *arena,
                           ValidateCase *out) {
    Scenario scenario;
    Plan plan;
    TRY(scenario_read(&published->scenario, scratch, &scenario));
    TRY(scenario_refuse_unsupported(&scenario));
    TRY(plan_resolve(&scenario, scratch, &plan));
    TRY(estimate_plan(&scenario, &plan, scratch, &out->estimate, NULL));
    out->job = job_text(published, &scenario, arena);
    const PublishedTruth *truth = &published->truth;
    const Estimate *e = &out->estimate;
    out->measured_s = truth->step_time_s > 0 ? truth->step_time_s
                                             : e->step_time_s * e->mfu_frac / truth->mfu_frac;
    out->error_frac = e->step_time_s / out->measured_s - 1;
    return status_ok();
}

static ValidatePart part_score(const ValidateCase *cases, int num_cases, bool stated,
                               Arena *arena) {
    const ValidateCase **part = ARENA_ARRAY(arena, num_cases, const ValidateCase *);
    int num_part = 0;
    for (int i = 0; i < num_cases; i++)
        if (cases[i].published->stated == stated) part[num_part++] = &cases[i];
    return validate_score(part, num_part, arena);
}

Status validate_run(const PublishedCase *published, int num_cases, ValidateProgress progress,
                    void *context, Arena *arena, ValidateResult *out) {
    ValidateCase *cases = ARENA_ARRAY(arena, num_cases, ValidateCase);
    Arena scratch = {0};
    Status status = status_ok();
    for (int i = 0; i < num_cases; i++) {
        if (progress) progress(context, "cases", i, num_cases);
        arena_reset(&scratch);
        cases[i].published = &published[i];
        status = case_predict(&published[i], &scratch, arena, &cases[i]);
        if (status.code == STATUS_MACHINE) break;
        if (status.code != STATUS_OK) cases[i].refusal = arena_strdup(arena, status.text);
    }
    arena_free(&scratch);
    if (status.code == STATUS_MACHINE) return status;
    *out = (ValidateResult){.cases = cases,
                            .num_cases = num_cases,
                            .stated = part_score(cases, num_cases, true, arena),
                            .assumed = part_score(cases, num_cases, false, arena)};
    return status_ok();
}

// --- The worst

static int compare_errors(const void *a, const void *b) {
    const ValidateCase *x = *(const ValidateCase *const *)a, *y = *(const ValidateCase *const *)b;
    double ex = fabs(x->error_frac), ey = fabs(y->error_frac);
    if (ex != ey) return ex > ey ? -1 : 1;
    return x < y ? -1 : x > y; // both lie in one array
}

int validate_worst(const ValidateResult *result, bool with_assumed, int num_worst, Arena *arena,
                   const ValidateCase ***out) {
    *out = ARENA_ARRAY(arena, result->num_cases, const ValidateCase *);
    int num_found = 0;
    for (int i = 0; i < result->num_cases; i++) {
        const ValidateCase *c = &result->cases[i];
        if (!c->refusal && (with_assumed || c->published->stated)) (*out)[num_found++] = c;
    }
    qsort(*out, (size_t)num_found, sizeof **out, compare_errors);
    return num_found < num_worst ? num_found : num_worst;
}
