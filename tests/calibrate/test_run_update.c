#include "calibrate/run_pairs.h"
#include "calibrate/run_update.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

// One part of share 0.5, spread 0.2, noise 0.03: half of 0.04 goes over 0.25 x 0.04 + 0.03 = 0.04.
// An error of 0.1 moves it by 0.02 / 0.04 x 0.1 = 0.05; 0.04 - 0.02^2 / 0.04 = 0.03 is left.
static void one_part_by_hand(void) {
    const double slope[NUM_PARTS] = {0.5};
    double mean[NUM_PARTS] = {0.01}, covariance[NUM_PARTS][NUM_PARTS] = {{0.04}};
    run_update_linear(slope, 0.1, 0.03, mean, covariance);
    CU_ASSERT_DOUBLE_EQUAL(mean[0], 0.06, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(covariance[0][0], 0.03, 1e-15);
}

// Two parts that only their sum is known of: after an exact measurement of it they are opposites.
static void what_is_told_of_the_sum_joins_its_parts(void) {
    const double slope[NUM_PARTS] = {0.5, 0.5};
    double mean[NUM_PARTS] = {0}, covariance[NUM_PARTS][NUM_PARTS] = {{0.04, 0}, {0, 0.04}};
    run_update_linear(slope, 0.1, 0, mean, covariance);
    CU_ASSERT_DOUBLE_EQUAL(mean[0], 0.1, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(mean[1], 0.1, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(covariance[0][0], 0.02, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(covariance[0][1], -0.02, 1e-15);
}

static void noise_without_end_tells_nothing(void) {
    const double slope[NUM_PARTS] = {0.5, 0.3};
    double mean[NUM_PARTS] = {0.2}, covariance[NUM_PARTS][NUM_PARTS] = {{0.04, 0.01}, {0.01, 0.02}};
    run_update_linear(slope, 1, 1e30, mean, covariance);
    CU_ASSERT_DOUBLE_EQUAL(mean[0], 0.2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(covariance[0][1], 0.01, 1e-12);
    run_update_linear(slope, 0, 0.01, mean, covariance);
    CU_ASSERT_EQUAL(mean[0], 0.2); // as predicted: narrower, not moved
    CU_ASSERT(covariance[0][0] < 0.04);
}

// Each further measurement leaves less uncertain.
static void more_runs_narrow(void) {
    const double slope[NUM_PARTS] = {0.4, 0.3, 0.1, 0, 0.2};
    double mean[NUM_PARTS] = {0}, covariance[NUM_PARTS][NUM_PARTS] = {{0}};
    for (int k = 0; k < NUM_PARTS; k++) covariance[k][k] = 0.04;
    for (int run = 0; run < 5; run++) {
        double before[NUM_PARTS][NUM_PARTS];
        memcpy(before, covariance, sizeof before);
        run_update_linear(slope, 0.1, 0.01, mean, covariance);
        for (int k = 0; k < NUM_PARTS; k++) {
            CU_ASSERT(covariance[k][k] <= before[k][k] && covariance[k][k] > 0);
            CU_ASSERT(slope[k] == 0 || covariance[k][k] < before[k][k]);
        }
    }
    CU_ASSERT_EQUAL(covariance[3][3], 0.04); // no share, nothing told
    CU_ASSERT_EQUAL(mean[3], 0);
}

// --- Whole steps

// On one GPU nothing overlaps. A run twice as long as predicted: slower factors of all parts that
// have a share, a prediction between the two, a narrower interval.
static void a_slower_run_slows_its_parts(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 1, TRAINING, NULL)) {
        stack_bare(&c.scenario.execution.stack);
        Estimate before;
        RunUpdate u;
        CU_ASSERT_EQUAL(estimate_plan(&c.scenario, &c.plan, &c.arena, &before, NULL).code,
                        STATUS_OK);
        double measured_s = 1.2 * before.step_time_s;
        CU_ASSERT_EQUAL_FATAL(run_update(&c.scenario, &c.plan, measured_s, 0, &u).code, STATUS_OK);
        CU_ASSERT(u.posterior.factor[PART_PRODUCTS] > 1.01);
        CU_ASSERT(u.posterior.factor[PART_ATTENTION] > 1.01);
        CU_ASSERT_DOUBLE_EQUAL(u.posterior.factor[PART_ACROSS], 1, 1e-9);
        CU_ASSERT(u.after.step_time_s > before.step_time_s && u.after.step_time_s < measured_s);
        CU_ASSERT(u.after.step_time_high_s / u.after.step_time_s <
                  before.step_time_high_s / before.step_time_s);
        for (int k = 0; k < NUM_PARTS; k++)
            CU_ASSERT(u.posterior.covariance[k][k] <= c.scenario.calibration->covariance[k][k]);
    }
    case_free(&c);
}

// Without noise the run is met exactly, although the parts overlap.
static void a_run_without_noise_is_met(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 16, TRAINING, "{\"tp\": 2, \"pp\": 2, \"ep\": 2}")) {
        Calibration calibration = *c.scenario.calibration;
        calibration.step_spread = 0;
        c.scenario.calibration = &calibration;
        RunUpdate u;
        Estimate before;
        CU_ASSERT_EQUAL(estimate_plan(&c.scenario, &c.plan, &c.arena, &before, NULL).code,
                        STATUS_OK);
        double measured_s = 1.3 * before.step_time_s;
        CU_ASSERT_EQUAL_FATAL(run_update(&c.scenario, &c.plan, measured_s, 0, &u).code, STATUS_OK);
        CU_ASSERT_DOUBLE_EQUAL(u.after.step_time_s, measured_s, 1e-4 * measured_s);
    }
    case_free(&c);
}

// Runs from half to 30 times as long as predicted: every factor rises with the run and without
// jumps, and what a run tells of a part that takes less than 3 % of the step is little.
static void factors_rise_with_the_run(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 16, TRAINING, "{\"tp\": 2, \"pp\": 2, \"ep\": 2}")) {
        const double ratio = pow(60, 1.0 / 80);
        double before[NUM_PARTS] = {0}, factor_s = 0.5;
        for (int i = 0; i <= 80; i++, factor_s *= ratio) {
            Estimate estimate;
            RunUpdate u;
            estimate_plan(&c.scenario, &c.plan, &c.arena, &estimate, NULL);
            Status status =
                run_update(&c.scenario, &c.plan, factor_s * estimate.step_time_s, 0, &u);
            CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
            for (int k = 0; k < NUM_PARTS; k++) {
                CU_ASSERT(i == 0 || u.posterior.factor[k] >= before[k]);
                CU_ASSERT(i == 0 || u.posterior.factor[k] <= before[k] * pow(ratio, 3.1));
                before[k] = u.posterior.factor[k];
                double share = u.before.part_s[k] / u.before.step_time_s;
                double left = u.posterior.covariance[k][k];
                double variance = c.scenario.calibration->covariance[k][k];
                CU_ASSERT(share > 0.03 || left > 0.9 * variance);
            }
        }
    }
    case_free(&c);
}

// --- Pairs

// Of the bundled runs, those of the families that have several on one machine: calibrated on one
// the other is predicted about as well, in the mean of all and in the mean of families, where
// nothing is wrong with the machine, and more surely.
static void a_run_does_no_harm_to_another(void) {
    static const char *const FAMILIES[] = {"internevo",        "mosaicml-llm-foundry",
                                           "megatron-sc21",    "nemo-24.05-h100",
                                           "mbridge-26.04.01", "fms-fsdp"};
    Arena arena = {0};
    PublishedCase *published;
    PairsResult pairs;
    int num_cases, num_kept = 0;
    CU_ASSERT_EQUAL_FATAL(published_load_bundled(&arena, &published, &num_cases).code, STATUS_OK);
    for (int i = 0; i < num_cases; i++)
        for (int f = 0; f < 6; f++)
            if (strcmp(published[i].family, FAMILIES[f]) == 0) published[num_kept++] = published[i];
    CU_ASSERT_EQUAL_FATAL(run_pairs(published, num_kept, NULL, NULL, &arena, &pairs).code,
                          STATUS_OK);
    CU_ASSERT_EQUAL(pairs.num_families, 6);
    CU_ASSERT(pairs.all.num_pairs > 80);
    CU_ASSERT(pairs.all.after_mean_frac < pairs.all.before_mean_frac + 0.003);
    CU_ASSERT(pairs.after_families_frac < pairs.before_families_frac + 0.003);
    CU_ASSERT(pairs.all.after_width_frac < pairs.all.before_width_frac);
    CU_ASSERT(pairs.all.after_inside_frac > 0.7);
    arena_free(&arena);
}

CU_TestInfo run_update_tests[] = {
    {"one_part_by_hand", one_part_by_hand},
    {"what_is_told_of_the_sum_joins_its_parts", what_is_told_of_the_sum_joins_its_parts},
    {"noise_without_end_tells_nothing", noise_without_end_tells_nothing},
    {"more_runs_narrow", more_runs_narrow},
    {"a_slower_run_slows_its_parts", a_slower_run_slows_its_parts},
    {"a_run_without_noise_is_met", a_run_without_noise_is_met},
    {"factors_rise_with_the_run", factors_rise_with_the_run},
    {"a_run_does_no_harm_to_another", a_run_does_no_harm_to_another},
    CU_TEST_INFO_NULL,
};
