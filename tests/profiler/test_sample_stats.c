#include "profiler/sample_stats.h"

#include <CUnit/CUnit.h>

// 1 to 9 in any order: median 5, quartiles 3 and 7. The interval: (9 - 1.96 x 3) / 2 = 1.56, so
// the first; (9 + 5.88) / 2 = 7.44, so 8 + 1 = the ninth.
static void median_quartiles_and_interval_of_nine(void) {
    double samples[] = {9, 1, 8, 2, 7, 3, 6, 4, 5};
    SampleStats stats = sample_stats(samples, 9);
    CU_ASSERT_DOUBLE_EQUAL(stats.median, 5, 0);
    CU_ASSERT_DOUBLE_EQUAL(stats.spread_frac, 0.8, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(stats.low, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(stats.high, 9, 0);
}

// 0 to 99: (100 - 19.6) / 2 = 40.2: the 40th is 39; (100 + 19.6) / 2 = 59.8: the 61st is 60.
static void interval_of_a_hundred(void) {
    double samples[100];
    for (int i = 0; i < 100; i++) samples[i] = (i * 37) % 100;
    SampleStats stats = sample_stats(samples, 100);
    CU_ASSERT_DOUBLE_EQUAL(stats.median, 49.5, 0);
    CU_ASSERT_DOUBLE_EQUAL(stats.low, 39, 0);
    CU_ASSERT_DOUBLE_EQUAL(stats.high, 60, 0);
}

static void one_sample_is_its_own_interval(void) {
    double sample = 3;
    SampleStats stats = sample_stats(&sample, 1);
    CU_ASSERT(stats.median == 3 && stats.low == 3 && stats.high == 3 && stats.spread_frac == 0);
}

// Four times the samples of the same numbers halve the interval.
static void more_samples_are_surer(void) {
    double few[100], many[400];
    for (int i = 0; i < 400; i++) many[i] = i % 100;
    for (int i = 0; i < 100; i++) few[i] = i;
    SampleStats a = sample_stats(few, 100), b = sample_stats(many, 400);
    CU_ASSERT_DOUBLE_EQUAL(b.high - b.low, (a.high - a.low) / 2, 1);
}

CU_TestInfo sample_stats_tests[] = {
    {"median_quartiles_and_interval_of_nine", median_quartiles_and_interval_of_nine},
    {"interval_of_a_hundred", interval_of_a_hundred},
    {"one_sample_is_its_own_interval", one_sample_is_its_own_interval},
    {"more_samples_are_surer", more_samples_are_surer},
    CU_TEST_INFO_NULL,
};
