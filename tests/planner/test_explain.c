#include "planner/why/explain.h"

#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

// A step of 10 s of compute and 1 s of bubble, certain to +-10 %; 60 GB of 80 GB.
static PlannedEntry entry_of(double compute_s, double bubble_s, double memory_bytes) {
    PlannedEntry entry = {.plan = {.tp = 1, .micro_batch = 1}};
    Estimate *e = &entry.estimate;
    e->term_s[TERM_COMPUTE] = compute_s;
    e->term_s[TERM_BUBBLE] = bubble_s;
    e->step_time_s = compute_s + bubble_s;
    e->step_time_low_s = 0.9 * e->step_time_s;
    e->step_time_high_s = 1.1 * e->step_time_s;
    e->memory.device_bytes = e->memory.peak_bytes = e->memory.activations_bytes = memory_bytes;
    e->memory_available_bytes = 80e9;
    return entry;
}

static const char *loss(PlanObjective objective, double compute_s, double bubble_s,
                        double memory_bytes, Arena *arena) {
    PlannedEntry best = entry_of(10, 1, 60e9);
    PlannedEntry other = entry_of(compute_s, bubble_s, memory_bytes);
    other.loses_frac = objective == OBJECTIVE_MEMORY
                           ? memory_bytes / 60e9 - 1
                           : other.estimate.step_time_s / best.estimate.step_time_s - 1;
    return explain_loss(objective, &best, &other, arena);
}

static void terms_are_told_by_size(void) {
    Arena arena = {0};
    // 10.5 + 0.9 = 11.4 s against 11 s: 3.6 %.
    CU_ASSERT_STRING_EQUAL(loss(OBJECTIVE_THROUGHPUT, 10.5, 0.9, 60e9, &arena),
                           "3.6 % slower: +500 ms compute, -100 ms pipeline bubble");
    CU_ASSERT_STRING_EQUAL(loss(OBJECTIVE_COST, 12.2, 1, 60e9, &arena),
                           "20.0 % more expensive: +2.20 s compute");
    // A share of less than a tenth of all changes is not worth a word.
    CU_ASSERT_STRING_EQUAL(loss(OBJECTIVE_THROUGHPUT, 11, 1.01, 60e9, &arena),
                           "9.2 % slower: +1.00 s compute");
    arena_free(&arena);
}

// -3.41 + 2.83 s are not the difference of 50 ms: the rest, here +630 ms, is told in one sum.
static void what_is_left_out_is_told_where_it_matters(void) {
    Arena arena = {0};
    PlannedEntry best = entry_of(10, 1, 60e9), other = entry_of(10.3, 3.83, 60e9);
    best.estimate.term_s[TERM_TP] = 3.41;
    other.estimate.term_s[TERM_PP] = 0.17;
    other.estimate.term_s[TERM_OTHER] = 0.16;
    best.estimate.step_time_s = 14.41;
    other.estimate.step_time_s = 14.46;
    other.loses_frac = 14.46 / 14.41 - 1;
    CU_ASSERT_STRING_EQUAL(explain_loss(OBJECTIVE_THROUGHPUT, &best, &other, &arena),
                           "0.3 % slower: -3.41 s exposed tensor-parallel communication, +2.83 s "
                           "pipeline bubble, +630 ms in other terms");
    arena_free(&arena);
}

static void much_less_memory_is_worth_a_word(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(loss(OBJECTIVE_THROUGHPUT, 10, 2, 40e9, &arena),
                           "9.1 % slower: +1.00 s pipeline bubble; -20.00 GB memory");
    arena_free(&arena);
}

static void ties_are_called_equal(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(loss(OBJECTIVE_THROUGHPUT, 10, 1.001, 61e9, &arena),
                           "equal within 0.05 %; +1.00 GB memory");
    CU_ASSERT_STRING_EQUAL(loss(OBJECTIVE_THROUGHPUT, 10, 1, 60e9, &arena),
                           "equal within 0.05 %; the same memory");
    CU_ASSERT_STRING_EQUAL(loss(OBJECTIVE_MEMORY, 10, 2, 60e9, &arena),
                           "the same memory; +1.00 s a step");
    arena_free(&arena);
}

static void memory_is_explained_by_its_parts(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(loss(OBJECTIVE_MEMORY, 10, 0.5, 66e9, &arena),
                           "10.0 % more memory: +6.00 GB activations; -500 ms a step");
    arena_free(&arena);
}

// --- Noise

static void what_two_plans_share_cancels(void) {
    Scenario scenario = {0};
    PlannedEntry a = entry_of(10, 1, 60e9), b = entry_of(10, 1, 60e9);
    // Only the jitter of runs is left: 0.5 % of 11 s.
    CU_ASSERT_DOUBLE_EQUAL(explain_difference_uncertainty_s(&scenario, &a, &b), 0.055, 1e-12);
    // A bubble of 2 s instead of 1 s is 1 s +-10 % longer: sqrt(0.055^2 + 0.1^2).
    b = entry_of(10, 2, 60e9);
    CU_ASSERT_DOUBLE_EQUAL(explain_difference_uncertainty_s(&scenario, &a, &b), 0.114127, 1e-6);
    CU_ASSERT_FALSE(explain_within_noise(&scenario, OBJECTIVE_THROUGHPUT, &a, &b));
}

static void other_kernels_have_errors_of_their_own(void) {
    const Pool pool = {.gpu.efficiency.residual_median_frac = 0.05};
    const Scenario scenario = {.cluster = test_cluster(&pool)};
    PlannedEntry a = entry_of(10, 1, 60e9), b = entry_of(10.2, 1, 60e9);
    b.plan.tp = 2;
    // e = 0.05 x 1.9001 / sqrt(8) = 0.03359; e^2 (10^2 + 10.2^2) = 0.23022;
    // (0.1 x 0.2)^2 = 0.0004; 0.055^2 = 0.003025; in all sqrt(0.23364) = 0.48337.
    CU_ASSERT_DOUBLE_EQUAL(explain_difference_uncertainty_s(&scenario, &a, &b), 0.48337, 1e-4);
    CU_ASSERT_TRUE(explain_within_noise(&scenario, OBJECTIVE_THROUGHPUT, &a, &b));
    // The same where another pool's kernels are known better, whichever comes first.
    const Pool pools[3] = {{.gpu.efficiency.residual_median_frac = 0.01},
                           {.gpu.efficiency.residual_median_frac = 0.05},
                           {.gpu.efficiency.residual_median_frac = 0.01}};
    for (int i = 0; i < 2; i++) {
        const Scenario mixed = {.cluster =
                                    cluster_of_pools("two", pools + i, 2, &(ClusterNetwork){0})};
        CU_ASSERT_DOUBLE_EQUAL(explain_difference_uncertainty_s(&mixed, &a, &b), 0.48337, 1e-4);
    }
    // With the same kernels 0.2 s is more than 0.0585 s.
    b.plan.tp = 1;
    CU_ASSERT_FALSE(explain_within_noise(&scenario, OBJECTIVE_THROUGHPUT, &a, &b));
}

// 1 % of 11 s is 0.11 s. What the two share cancels, so the uncertainty of 0.1 s of bubble is only
// sqrt(0.055^2 + 0.01^2) = 0.056 s, but no release of the software keeps such a lead.
static void less_than_a_percent_is_always_noise(void) {
    Scenario scenario = {0};
    PlannedEntry a = entry_of(10, 1, 60e9), b = entry_of(10, 1.1, 60e9);
    CU_ASSERT(explain_difference_uncertainty_s(&scenario, &a, &b) < 0.1);
    CU_ASSERT_TRUE(explain_within_noise(&scenario, OBJECTIVE_THROUGHPUT, &a, &b));
    b = entry_of(10, 1.12, 60e9);
    CU_ASSERT_FALSE(explain_within_noise(&scenario, OBJECTIVE_THROUGHPUT, &a, &b));
}

static void memory_is_exact(void) {
    Scenario scenario = {0};
    PlannedEntry a = entry_of(10, 1, 60e9), b = entry_of(10, 1, 60.1e9);
    CU_ASSERT_FALSE(explain_within_noise(&scenario, OBJECTIVE_MEMORY, &a, &b));
    CU_ASSERT_TRUE(explain_within_noise(&scenario, OBJECTIVE_MEMORY, &a, &a));
}

CU_TestInfo explain_tests[] = {
    {"terms_are_told_by_size", terms_are_told_by_size},
    {"what_is_left_out_is_told_where_it_matters", what_is_left_out_is_told_where_it_matters},
    {"much_less_memory_is_worth_a_word", much_less_memory_is_worth_a_word},
    {"ties_are_called_equal", ties_are_called_equal},
    {"memory_is_explained_by_its_parts", memory_is_explained_by_its_parts},
    {"what_two_plans_share_cancels", what_two_plans_share_cancels},
    {"other_kernels_have_errors_of_their_own", other_kernels_have_errors_of_their_own},
    {"less_than_a_percent_is_always_noise", less_than_a_percent_is_always_noise},
    {"memory_is_exact", memory_is_exact},
    CU_TEST_INFO_NULL,
};
