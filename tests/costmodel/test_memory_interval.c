#include "costmodel/memory/memory_interval.h"

#include "base/student.h"
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>

static const RankMemory ACCOUNT = {.device_bytes = 60e9,
                                   .cached_bytes = 60e9,
                                   .needs_bytes = 58e9,
                                   .spread = 0.1,
                                   .counted_bytes = 58e9};

// log(64.1 / 58) = 0.1 is once the spread: s = 1 / sqrt(5) = 0.44721, 1/2 + 3/4 (s - s^3 / 3) =
// 81.305 %. 58 GB of 58 are as likely as not.
static void probability_is_that_of_the_log_of_what_is_needed(void) {
    CU_ASSERT_DOUBLE_EQUAL(memory_fit_probability(&ACCOUNT, 58e9 * exp(0.1)), 0.8130495, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(memory_fit_probability(&ACCOUNT, 58e9), 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(memory_fit_probability(&ACCOUNT, 58e9 * exp(-0.1)), 0.1869505, 1e-6);
}

static void what_is_certain_fits_or_does_not(void) {
    RankMemory account = ACCOUNT;
    account.spread = 0;
    CU_ASSERT_EQUAL(memory_fit_probability(&account, 58e9), 1);
    CU_ASSERT_EQUAL(memory_fit_probability(&account, 57.9e9), 0);
    double low, high;
    memory_interval(&account, 80e9, &low, &high);
    CU_ASSERT_EQUAL(low, 60e9);
    CU_ASSERT_EQUAL(high, 60e9);
}

// With much room: 60 GB times exp(+-1.53321 x 0.1) = 51.47 and 69.94 GB.
static void interval_is_a_factor_either_way(void) {
    double low, high;
    memory_interval(&ACCOUNT, 180e9, &low, &high);
    CU_ASSERT_DOUBLE_EQUAL(low, 60e9 / 1.165700, 1e5);
    CU_ASSERT_DOUBLE_EQUAL(high, 60e9 * 1.165700, 1e5);
}

// A law: the upper end is at most what there is exactly where the plan fits with 90 %; and it never
// lies below the account, nor the lower end above it.
static void upper_end_agrees_with_the_probability(void) {
    for (double available = 40e9; available < 100e9; available += 0.07e9) {
        RankMemory account = ACCOUNT;
        account.device_bytes = fmax(account.needs_bytes, fmin(account.cached_bytes, available));
        double low, high;
        memory_interval(&account, available, &low, &high);
        CU_ASSERT(low <= account.device_bytes && account.device_bytes <= high);
        CU_ASSERT_EQUAL(high <= available, memory_fit_probability(&account, available) >= 0.9);
    }
}

// As counted for the search: exp(1.53321 spread) times what is needed, whatever the plan.
static void a_search_counts_on_the_quantile(void) {
    Case c;
    const Evidence evidence = {.memory_spread = 0.2};
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 64}",
                  "{\"micro_batch\": 1}")) {
        stack_bare(&c.scenario.execution.stack);
        c.scenario.execution.stack.residency.allocator_slack_frac = 0.12;
        c.scenario.evidence = &evidence;
        c.scenario.fit_deviates = student_quantile(0.9);
        const RankMemory m = memory_closed_form(&c.scenario, &c.plan, &c.workload, 0);
        // Half of what is cached, 6 %; 0.2^2 + 0.12^2 / 12 = 0.2030^2.
        CU_ASSERT_DOUBLE_EQUAL(m.needs_bytes, m.peak_bytes * 1.06, 1);
        CU_ASSERT_DOUBLE_EQUAL(m.spread, sqrt(0.0412), 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(m.counted_bytes, m.needs_bytes * exp(1.5332062741 * sqrt(0.0412)),
                               1e-6 * m.needs_bytes);
        CU_ASSERT_DOUBLE_EQUAL(memory_fit_probability(&m, m.counted_bytes), 0.9, 1e-9);
        CU_ASSERT(memory_lasting_counted_bytes(&c.scenario, &c.plan, &m) <= m.counted_bytes);
    }
    case_free(&c);
}

// Eight experts on two ranks: four each, 0.3 sqrt(2 ln 2 / 4) = 0.1766 more on the fuller. All that
// the three layers with experts keep of the products grows by that over sqrt(3).
static void uneven_experts_need_more_where_tokens_are_not_dropped(void) {
    static const char *const EVEN[] = {", \"capacity_factor\": 1.25",
                                       ", \"moe_routing\": {\"imbalance\": 1.5}"};
    Case c;
    const Evidence evidence = {.memory_spread = 0.1};
    const char *parallel = "{\"micro_batch\": 1, \"ep\": 2}";
    if (case_make(&c, MADE_UP_MOE, 8, "{\"seq_len\": 2048, \"global_batch\": 64}", parallel)) {
        c.scenario.evidence = &evidence;
        const RankMemory m = memory_closed_form(&c.scenario, &c.plan, &c.workload, 0);
        const double uneven = memory_uneven_bytes(&c.scenario, &c.plan, &c.workload, 0, &m);
        double saved = 0, received = 0;
        for (int i = 0; i < c.workload.num_blocks; i++) {
            const int num = c.workload.chunks[0].num_blocks[i];
            saved += num * c.workload.blocks[i].saved_bytes;
            received += num * c.workload.blocks[i].received_bytes;
        }
        // Of a layer: 4096 pairs x (1024 in, 2 x 512 out of the gate and up, 512 into down) x 2.
        CU_ASSERT_DOUBLE_EQUAL(received, 3 * 4096 * (1024 + 1024 + 512) * 2.0, 1);
        CU_ASSERT_DOUBLE_EQUAL(
            uneven, 0.3 * sqrt(2 * log(2) / 4) / sqrt(3) * m.activations_bytes * received / saved,
            1e-6 * uneven);
        CU_ASSERT_DOUBLE_EQUAL(
            m.spread, hypot(memory_spread(&c.scenario, &c.plan), uneven / m.needs_bytes), 1e-12);
    }
    case_free(&c);
    for (int i = 0; i < 2; i++) {
        char training[200];
        snprintf(training, sizeof training, "{\"seq_len\": 2048, \"global_batch\": 64%s}", EVEN[i]);
        if (case_make(&c, MADE_UP_MOE, 8, training, parallel)) {
            const RankMemory m = memory_closed_form(&c.scenario, &c.plan, &c.workload, 0);
            CU_ASSERT_EQUAL(memory_uneven_bytes(&c.scenario, &c.plan, &c.workload, 0, &m), 0);
        }
        case_free(&c);
    }
}

CU_TestInfo memory_interval_tests[] = {
    {"probability_is_that_of_the_log_of_what_is_needed",
     probability_is_that_of_the_log_of_what_is_needed},
    {"what_is_certain_fits_or_does_not", what_is_certain_fits_or_does_not},
    {"interval_is_a_factor_either_way", interval_is_a_factor_either_way},
    {"upper_end_agrees_with_the_probability", upper_end_agrees_with_the_probability},
    {"a_search_counts_on_the_quantile", a_search_counts_on_the_quantile},
    {"uneven_experts_need_more_where_tokens_are_not_dropped",
     uneven_experts_need_more_where_tokens_are_not_dropped},
    CU_TEST_INFO_NULL,
};
