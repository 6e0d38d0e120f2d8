#include "sim/repetition.h"

#include <CUnit/CUnit.h>

static const Disturb SLOW = {.kind = DISTURB_SLOW_GPU, .factor = 2};
static const Disturb JITTER = {.kind = DISTURB_JITTER, .jitter_frac = 0.1};
static const Disturb LINK = {.kind = DISTURB_LINK, .bandwidth_factor = 0.5};

static void nothing_disturbed_is_one_run(void) {
    RunPlan plan = runs_plan(NULL, 0, 10);
    CU_ASSERT_EQUAL(plan.num_runs, 1);
    CU_ASSERT_EQUAL(plan.shown_run, 0);
}

// 1 undisturbed, 1 with the slow GPU, 3 with jitter as well, 3 with everything.
static void causes_come_one_after_the_other(void) {
    const Disturb disturb[] = {LINK, JITTER, SLOW};
    RunPlan plan = runs_plan(disturb, 3, 3);
    CU_ASSERT_EQUAL(plan.num_runs, 8);
    CU_ASSERT_EQUAL(plan.shown_run, 5);
    static const struct {
        DisturbCause cause;
        int repetition;
    } EXPECTED[] = {
        {CAUSE_NONE, 0},   {CAUSE_STRAGGLERS, 0}, {CAUSE_JITTER, 0},  {CAUSE_JITTER, 1},
        {CAUSE_JITTER, 2}, {CAUSE_NETWORK, 0},    {CAUSE_NETWORK, 1}, {CAUSE_NETWORK, 2},
    };
    for (int run = 0; run < plan.num_runs; run++) {
        int repetition;
        CU_ASSERT_EQUAL(run_cause(&plan, run, &repetition), EXPECTED[run].cause);
        CU_ASSERT_EQUAL(repetition, EXPECTED[run].repetition);
    }
    CU_ASSERT_EQUAL(plan.kinds[CAUSE_NONE], 0);
    CU_ASSERT_EQUAL(plan.kinds[CAUSE_JITTER], 1u << DISTURB_SLOW_GPU | 1u << DISTURB_JITTER);
    CU_ASSERT_EQUAL(plan.kinds[CAUSE_NETWORK], plan.kinds[CAUSE_JITTER] | 1u << DISTURB_LINK);
}

// Without chance all repetitions are the same: one run stands for them.
static void what_is_certain_is_played_once(void) {
    const Disturb disturb[] = {SLOW, LINK};
    Arena arena = {0};
    RunPlan plan = runs_plan(disturb, 2, 3);
    CU_ASSERT_EQUAL(plan.num_runs, 3);
    RunSummary summary = runs_summarize(&plan, (double[]){10, 12, 15}, &arena);
    for (int i = 0; i < 3; i++) CU_ASSERT_EQUAL(summary.step_s[i], 15);
    CU_ASSERT_EQUAL(summary.mean_s, 15);
    CU_ASSERT_EQUAL(summary.p95_s, 15);
    CU_ASSERT_EQUAL(summary.cause_s[CAUSE_STRAGGLERS], 2);
    CU_ASSERT_EQUAL(summary.cause_s[CAUSE_JITTER], 0);
    CU_ASSERT_EQUAL(summary.cause_s[CAUSE_NETWORK], 3);
    arena_free(&arena);
}

// Undisturbed 10 s; jitter 11, 13 and 12 s, mean 12; with the link 16, 12 and 14 s, mean 14. The
// 95th percentile lies 0.95 x 2 = 1.9 places up in 12, 14, 16: 14 + 0.9 x 2 = 15.8 s.
static void means_differ_by_cause(void) {
    const Disturb disturb[] = {JITTER, LINK};
    Arena arena = {0};
    RunPlan plan = runs_plan(disturb, 2, 3);
    RunSummary summary = runs_summarize(&plan, (double[]){10, 11, 13, 12, 16, 12, 14}, &arena);
    CU_ASSERT_EQUAL(summary.undisturbed_s, 10);
    CU_ASSERT_DOUBLE_EQUAL(summary.mean_s, 14, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(summary.p95_s, 15.8, 1e-12);
    CU_ASSERT_EQUAL(summary.cause_s[CAUSE_STRAGGLERS], 0);
    CU_ASSERT_DOUBLE_EQUAL(summary.cause_s[CAUSE_JITTER], 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(summary.cause_s[CAUSE_NETWORK], 2, 1e-12);
    arena_free(&arena);
}

// Of 1 .. 21 the 95th percentile is the 20th number.
static void a_percentile_is_of_the_sorted_numbers(void) {
    Arena arena = {0};
    double numbers[21];
    for (int i = 0; i < 21; i++) numbers[i] = 1 + (i * 8) % 21;
    CU_ASSERT_DOUBLE_EQUAL(percentile(numbers, 21, 0.95, &arena), 20, 1e-12);
    CU_ASSERT_EQUAL(percentile(numbers, 1, 0.95, &arena), 1);
    CU_ASSERT_EQUAL(percentile(numbers, 21, 1, &arena), 21);
    arena_free(&arena);
}

CU_TestInfo repetition_tests[] = {
    {"nothing_disturbed_is_one_run", nothing_disturbed_is_one_run},
    {"causes_come_one_after_the_other", causes_come_one_after_the_other},
    {"what_is_certain_is_played_once", what_is_certain_is_played_once},
    {"means_differ_by_cause", means_differ_by_cause},
    {"a_percentile_is_of_the_sorted_numbers", a_percentile_is_of_the_sorted_numbers},
    CU_TEST_INFO_NULL,
};
