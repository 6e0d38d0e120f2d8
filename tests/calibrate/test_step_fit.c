#include "calibrate/step_fit.h"
#include "calibrate/step_spread.h"
#include "costmodel/step/estimate.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// --- Spreads

// One step of share 0.5 and error 0.1, variance 0.02, spread 0.2: its variance is 0.02 + 0.01, the
// density -(0.01 / 0.03 + log 0.03) / 2. At weight 2 the step counts as two: with theta out,
// 2 x 0.01 / 0.02 - (2 x 0.5 x 0.2 x 0.1 / 0.02)^2 / (1 + 2 x 0.01 / 0.02) = 1 - 1 / 2, and
// 2 log 0.02 + log 2.
static void one_step_has_the_density_worked_out_by_hand(void) {
    const double shares[1][NUM_PARTS] = {{0.5}}, error = 0.1, variance = 0.02;
    const double spread[NUM_PARTS] = {0.2};
    CU_ASSERT_DOUBLE_EQUAL(step_site_log_density(1, shares, &error, &variance, 1, spread),
                           -(0.01 / 0.03 + log(0.03)) / 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(step_site_log_density(1, shares, &error, &variance, 2, spread),
                           -(0.5 + 2 * log(0.02) + log(2)) / 2, 1e-12);
}

// Two steps of one site share their theta: their covariance is 0.25 x 0.04 = 0.01, the variances
// 0.03. For equal errors of 0.1 the form is 2 x 0.01 / (0.03 + 0.01) = 0.5, the determinant 0.0008.
static void steps_of_a_site_share_what_is_wrong(void) {
    const double shares[2][NUM_PARTS] = {{0.5}, {0.5}}, errors[] = {0.1, 0.1};
    const double variances[] = {0.02, 0.02}, spread[NUM_PARTS] = {0.2};
    CU_ASSERT_DOUBLE_EQUAL(step_site_log_density(2, shares, errors, variances, 1, spread),
                           -(0.5 + log(0.0008)) / 2, 1e-12);
}

enum { NUM_MADE = 60 };

// 20 sites of 3 steps: the site's theta is +-size by turns, all of it in one part.
static StepSpread spread_of(double size, int part, StepRow *made, PublishedCase *published,
                            Arena *arena) {
    double errors[NUM_MADE];
    StepRows rows = {.rows = made, .num_rows = NUM_MADE};
    for (int i = 0; i < NUM_MADE; i++) {
        int site = i / 3;
        published[i].family = arena_printf(arena, "%02d", site);
        made[i] = (StepRow){.published = &published[i],
                            .site = published[i].family,
                            .predicted_s = 10,
                            .num_nodes = 4};
        made[i].part_s[part] = 8;
        made[i].part_s[PART_MEMORY] += 2;
        errors[i] = (site % 2 ? 1 : -1) * size * (1 + 0.1 * (site % 5)) * 0.8 +
                    (i % 3 - 1) * 0.02; // what is left of each step
    }
    return step_spread_fit(&rows, errors);
}

static void the_part_that_errs_has_the_spread(void) {
    StepRow rows[NUM_MADE];
    PublishedCase published[NUM_MADE] = {0};
    Arena arena = {0};
    StepSpread small = spread_of(0.05, PART_PRODUCTS, rows, published, &arena);
    StepSpread large = spread_of(0.3, PART_PRODUCTS, rows, published, &arena);
    StepSpread across = spread_of(0.3, PART_ACROSS, rows, published, &arena);
    CU_ASSERT(large.spread[PART_PRODUCTS] > 2 * small.spread[PART_PRODUCTS]);
    CU_ASSERT(large.spread[PART_PRODUCTS] > 2 * across.spread[PART_PRODUCTS]);
    CU_ASSERT(across.spread[PART_ACROSS] > large.spread[PART_ACROSS]);
    CU_ASSERT(fabs(large.inside_frac - 0.8) < 0.1); // sites of equal size: all or none of some
    CU_ASSERT_EQUAL(large.num_sites, 20);
    CU_ASSERT_EQUAL(large.num_nodes, 4);
    arena_free(&arena);
}

// --- Parameters

#define JOB                                                                                        \
    "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": \"%s\", \"training\": "             \
    "{\"seq_len\": "                                                                               \
    "%d, \"global_batch\": 64}, \"parallel\": {\"tp\": %d}}"

enum { NUM_CASES = 12 };

// Steps as they would be if products drew `factor` times the power, and `slip` times as long.
static void case_make(int i, double factor, double slip, Arena *arena, PublishedCase *out) {
    static const int TP[] = {8, 4, 2};
    *out = (PublishedCase){.id = "x", .family = arena_printf(arena, "f%d", i / 3), .stated = true};
    const char *text = arena_printf(arena, JOB, i < 6 ? "dgx-h100:1" : "dgx-a100-80g:1",
                                    i % 2 ? 4096 : 8192, TP[i % 3]);
    Scenario scenario;
    Plan plan;
    Estimate estimate = {.step_time_s = 1};
    Status status = json_parse(text, strlen(text), "t.jsonl:1: scenario", arena, &out->scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(scenario_read(&out->scenario, arena, &scenario).code, STATUS_OK);
    test_pool(&scenario.cluster)->gpu.efficiency.full_rate_watts *= factor;
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, arena, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL(estimate_plan(&scenario, &plan, arena, &estimate, NULL).code, STATUS_OK);
    out->truth.step_time_s = estimate.step_time_s * slip;
}

static double factor_of(const StepFit *fit, const char *name, const char *owner) {
    for (int k = 0; k < fit->rows.num_parameters; k++) {
        const StepParameter *p = &fit->rows.parameters[k];
        if (strcmp(p->quantity->name, name) == 0 && strcmp(p->owner, owner) == 0)
            return exp(p->log_factor);
    }
    return NAN;
}

static StepFit fit_of(const PublishedCase *cases, int num_cases, Arena *arena) {
    StepFit fit;
    CU_ASSERT_EQUAL_FATAL(step_fit(cases, num_cases, NULL, NULL, arena, &fit).code, STATUS_OK);
    return fit;
}

// Hopper draws 1.2 times what its file says, Ampere 1.1 times; the files' values are found again.
static void planted_powers_are_found(void) {
    Arena arena = {0};
    PublishedCase cases[NUM_CASES];
    for (int i = 0; i < NUM_CASES; i++) case_make(i, i < 6 ? 1.2 : 1.1, 1, &arena, &cases[i]);
    StepFit fit = fit_of(cases, NUM_CASES, &arena);
    CU_ASSERT_DOUBLE_EQUAL(factor_of(&fit, "full_rate_watts", "hopper"), 1.2, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(factor_of(&fit, "full_rate_watts", "ampere"), 1.1, 0.01);
    CU_ASSERT_EQUAL_FATAL(fit.num_families, 4);
    for (int f = 0; f < 4; f++) {
        CU_ASSERT(fit.families[f].before_frac > 0.005);
        CU_ASSERT(fit.families[f].included_frac < 0.001);
        CU_ASSERT(fit.families[f].left_out_frac < 0.002);
    }
    arena_free(&arena);
}

// One step of six that took five times as long hardly moves it.
static void an_outlier_is_outvoted(void) {
    Arena arena = {0};
    PublishedCase cases[NUM_CASES];
    for (int i = 0; i < 6; i++) case_make(i, 1.2, i == 4 ? 5 : 1, &arena, &cases[i]);
    StepFit fit = fit_of(cases, 6, &arena);
    CU_ASSERT_DOUBLE_EQUAL(factor_of(&fit, "full_rate_watts", "hopper"), 1.2, 0.03);
    arena_free(&arena);
}

static void a_parameter_without_steps_stays(void) {
    Arena arena = {0};
    PublishedCase cases[6];
    for (int i = 0; i < 6; i++) case_make(i, 1.2, 1, &arena, &cases[i]);
    StepFit fit = fit_of(cases, 6, &arena);
    CU_ASSERT(isnan(factor_of(&fit, "full_rate_watts", "ampere")));
    CU_ASSERT_DOUBLE_EQUAL(factor_of(&fit, "host_layer_s", "megatron-core"), 1, 0.01);
    cases[0].stated = false;
    fit = fit_of(cases, 6, &arena);
    CU_ASSERT_EQUAL(fit.rows.num_refused, 1);
    CU_ASSERT_EQUAL(fit.families[0].num_rows, 2);
    arena_free(&arena);
}

static void nothing_to_fit_is_refused(void) {
    Arena arena = {0};
    PublishedCase one;
    StepFit fit;
    case_make(0, 1, 1, &arena, &one);
    one.stated = false;
    ASSERT_REFUSED(step_fit(&one, 1, NULL, NULL, &arena, &fit), "none of 1 steps can be predicted");
    arena_free(&arena);
}

CU_TestInfo step_fit_tests[] = {
    {"one_step_has_the_density_worked_out_by_hand", one_step_has_the_density_worked_out_by_hand},
    {"steps_of_a_site_share_what_is_wrong", steps_of_a_site_share_what_is_wrong},
    {"the_part_that_errs_has_the_spread", the_part_that_errs_has_the_spread},
    {"planted_powers_are_found", planted_powers_are_found},
    {"an_outlier_is_outvoted", an_outlier_is_outvoted},
    {"a_parameter_without_steps_stays", a_parameter_without_steps_stays},
    {"nothing_to_fit_is_refused", nothing_to_fit_is_refused},
    CU_TEST_INFO_NULL,
};
