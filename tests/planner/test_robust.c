#include "planner/why/robust.h"

#include "base/random.h"
#include "costmodel/step/interval.h"
#include "planner/why/explain.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

enum { NUM_CASES = 60 };

// Of independent parts with variances v the least of sum s^2 v over shares s is 1 / sum (1 / v), at
// s in proportion to 1 / v. Here v = 0.01, ..., 0.07, and 0.0016 beside it in every step.
static void the_least_of_independent_parts_is_that_of_the_formula(void) {
    Calibration c = {.step_spread = 0.04};
    double inverse = 0;
    for (int k = 0; k < NUM_PARTS; k++) {
        c.covariance[k][k] = 0.004 * (k + 1);
        c.run_spread[k] = sqrt(0.006 * (k + 1));
        inverse += 1 / (0.01 * (k + 1));
    }
    const double expected = exp(1.2816 * sqrt(1 / inverse + 0.0016));
    const double found = robust_least_raise(&c);
    CU_ASSERT(found <= expected * (1 + 1e-12));
    CU_ASSERT_DOUBLE_EQUAL(found, expected, 1e-5);
}

// One part that is certain: a plan of it alone has the spread of a step only.
static void a_certain_part_leaves_the_spread_of_a_step(void) {
    Calibration c = {.step_spread = 0.05};
    for (int k = 1; k < NUM_PARTS; k++) c.covariance[k][k] = 0.01;
    CU_ASSERT_DOUBLE_EQUAL(robust_least_raise(&c), exp(1.2816 * 0.05), 1e-9);
    CU_ASSERT_EQUAL(robust_least_raise(NULL), 1);
}

// The next of an endless row of numbers between 0 and 1.
static double draw(uint32_t *place) {
    const uint32_t counter[RANDOM_WORDS] = {(*place)++};
    return random_uniform(7, counter);
}

// A covariance that is G G' of random numbers: positive semidefinite, with parts that go together.
static Calibration random_calibration(uint32_t *place) {
    Calibration c = {.step_spread = 0.05 * draw(place)};
    double g[NUM_PARTS][NUM_PARTS];
    for (int i = 0; i < NUM_PARTS; i++)
        for (int j = 0; j < NUM_PARTS; j++) g[i][j] = 0.2 * (draw(place) - 0.5);
    for (int i = 0; i < NUM_PARTS; i++)
        for (int j = 0; j < NUM_PARTS; j++)
            for (int k = 0; k < NUM_PARTS; k++) c.covariance[i][j] += g[i][k] * g[j][k];
    for (int k = 0; k < NUM_PARTS; k++) c.run_spread[k] = 0.1 * draw(place);
    return c;
}

static void no_shares_have_a_narrower_interval(void) {
    uint32_t place = 0;
    double nearest = INFINITY;
    for (int number = 0; number < 200; number++) {
        const Calibration c = random_calibration(&place);
        const double least = robust_least_raise(&c);
        for (int i = 0; i < 200; i++) {
            double shares[NUM_PARTS], sum = 0, low, high;
            for (int k = 0; k < NUM_PARTS; k++) sum += shares[k] = -log(draw(&place));
            for (int k = 0; k < NUM_PARTS; k++) shares[k] /= sum;
            const double variance = interval_variance(&c, shares, 1);
            interval_set(NULL, NULL, variance, 1, &low, &high);
            CU_ASSERT(least <= high * (1 + 1e-12));
            nearest = fmin(nearest, high / least);
        }
    }
    CU_ASSERT(nearest < 1.01); // not a bound that holds because it is far away
}

// The calibration of a case: every second one makes what crosses nodes, or the host, doubtful.
static void case_doubt(int number, Scenario *scenario, Calibration *out) {
    if (number % 2 == 0) return;
    *out = *scenario->calibration;
    const int part = number % 4 == 1 ? PART_HOST : PART_INSIDE;
    out->covariance[part][part] = 1;
    scenario->calibration = out;
}

static void the_best_by_the_upper_end_are_those_of_pricing_everything(void) {
    int num_other = 0, num_pruned = 0;
    for (int number = 0; number < case_count_slow(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        Calibration doubtful;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        case_doubt(number, &scenario, &doubtful);
        PlannerOptions options = {.top = 1 + number % 4,
                                  .objective = number % 3 ? OBJECTIVE_THROUGHPUT : OBJECTIVE_COST,
                                  .max_memory_bytes = case_memory_bytes(number, &scenario),
                                  .fit_probability_frac = 0.5,
                                  .brief = true};
        PlannerResult mean, found, all;
        CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &mean).code, STATUS_OK);
        options.robust = true;
        CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &found).code, STATUS_OK);
        options.exhaustive = true;
        CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &all).code, STATUS_OK);
        CU_ASSERT_TRUE(found.robust && found.stats.optimal);
        CU_ASSERT_EQUAL_FATAL(found.num_entries, all.num_entries);
        for (int i = 0; i < found.num_entries; i++)
            CU_ASSERT_EQUAL(found.entries[i].estimate.step_time_high_s,
                            all.entries[i].estimate.step_time_high_s);
        if (found.num_entries > 0) {
            const double best = found.entries[0].estimate.step_time_high_s;
            CU_ASSERT(best <= mean.entries[0].estimate.step_time_high_s);
            num_other += best < mean.entries[0].estimate.step_time_high_s;
        }
        num_pruned += found.stats.priced < all.stats.priced;
        arena_free(&arena);
    }
    CU_ASSERT(num_other > 0);
    CU_ASSERT(num_pruned > case_count_slow(NUM_CASES) / 3);
}

// 11 s to 13.2 s against 10 s to 11 s: 20 % slower at the upper end, of which 10 % is the step and
// 1.2 / 1.1 = 9.1 % the interval.
static void a_robust_loss_is_told_by_step_and_interval(void) {
    Arena arena = {0};
    const PlannedEntry best = {.estimate = {.step_time_s = 10, .step_time_high_s = 11}};
    const PlannedEntry other = {.estimate = {.step_time_s = 11, .step_time_high_s = 13.2},
                                .loses_frac = 0.2};
    CU_ASSERT_STRING_EQUAL(explain_robust(&best, &other, &arena),
                           "20.0 % slower at the upper end of its interval: the step +10.0 %, the "
                           "width above it +9.1 %");
    arena_free(&arena);
}

CU_TestInfo robust_tests[] = {
    {"the_least_of_independent_parts_is_that_of_the_formula",
     the_least_of_independent_parts_is_that_of_the_formula},
    {"a_certain_part_leaves_the_spread_of_a_step", a_certain_part_leaves_the_spread_of_a_step},
    {"no_shares_have_a_narrower_interval", no_shares_have_a_narrower_interval},
    {"the_best_by_the_upper_end_are_those_of_pricing_everything",
     the_best_by_the_upper_end_are_those_of_pricing_everything},
    {"a_robust_loss_is_told_by_step_and_interval", a_robust_loss_is_told_by_step_and_interval},
    CU_TEST_INFO_NULL,
};
