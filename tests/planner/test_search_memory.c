// Plans near the limit of memory: those that fit as surely as is asked for, and riskier ones.
#include "costmodel/memory/memory_interval.h"
#include "planner/questions/riskier.h"
#include "tests/planner/planner_case.h"
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

enum { NUM_CASES = 60 };

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

static PlannerResult search(const Scenario *scenario, const PlannerOptions *options, Arena *arena) {
    PlannerResult result = {0};
    CU_ASSERT_EQUAL(planner_search(scenario, options, arena, &result).code, STATUS_OK);
    return result;
}

// The made-up stack caches half as much as it needs, and half of that has to be there; how much
// that is is uncertain by 0.5 / sqrt(12).
static void what_is_cached_is_needed_by_half(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, "{}")) {
        const Evidence certain = {0};
        const PlannerOptions even = {.top = 1, .brief = true, .fit_probability_frac = 0.5};
        const PlannerOptions sure = {.top = 1, .brief = true, .fit_probability_frac = 0.9};
        double *available = &test_pool(&c.scenario.cluster)->gpu.memory_available_bytes;
        stack_bare(&c.scenario.execution.stack);
        c.scenario.execution.stack.residency.allocator_slack_frac = 0.5;
        c.scenario.evidence = &certain;
        *available = 80e9;
        const PlannedEntry fastest = search(&c.scenario, &even, &c.arena).entries[0];
        const double peak_bytes = fastest.estimate.memory.peak_bytes;
        CU_ASSERT_DOUBLE_EQUAL(fastest.estimate.memory.device_bytes, 1.5 * peak_bytes, 1);
        CU_ASSERT_DOUBLE_EQUAL(fastest.estimate.memory.needs_bytes, 1.25 * peak_bytes, 1);

        *available = 1.2501 * peak_bytes;
        const PlannerResult tight = search(&c.scenario, &even, &c.arena);
        CU_ASSERT_EQUAL_FATAL(tight.num_entries, 1);
        CU_ASSERT_EQUAL(tight.entries[0].estimate.step_time_s, fastest.estimate.step_time_s);
        CU_ASSERT_DOUBLE_EQUAL(tight.entries[0].estimate.memory.device_bytes, *available, 1);
        CU_ASSERT_DOUBLE_EQUAL(tight.entries[0].estimate.fits_probability_frac, 0.5, 1e-3);
        const PlannerResult slower = search(&c.scenario, &sure, &c.arena);
        CU_ASSERT_EQUAL_FATAL(slower.num_entries, 1);
        CU_ASSERT(slower.entries[0].estimate.step_time_s > fastest.estimate.step_time_s);
        CU_ASSERT(slower.entries[0].estimate.fits_probability_frac >= 0.9);

        *available = 1.2499 * peak_bytes;
        const PlannerResult other = search(&c.scenario, &even, &c.arena);
        CU_ASSERT(other.num_entries == 0 ||
                  other.entries[0].estimate.step_time_s > fastest.estimate.step_time_s);
    }
    case_free(&c);
}

// Asked for more, the best is never better, and fits as surely as was asked for.
static void the_surer_the_slower(void) {
    static const double ASKED[] = {0.5, 0.7, 0.9, 0.99};
    enum { NUM_ASKED = sizeof ASKED / sizeof *ASKED };
    int num_slower = 0, num_none = 0;
    for (int number = 0; number < case_count_slow(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        double last_s = 0;
        for (int i = 0; i < NUM_ASKED; i++) {
            const PlannerOptions options = {.top = 1,
                                            .max_memory_bytes =
                                                case_memory_bytes(number, &scenario),
                                            .fit_probability_frac = ASKED[i],
                                            .brief = true};
            const PlannerResult result = search(&scenario, &options, &arena);
            if (result.num_entries == 0) {
                num_none += last_s > 0;
                last_s = INFINITY;
                continue;
            }
            const Estimate *e = &result.entries[0].estimate;
            CU_ASSERT(e->fits_probability_frac >= ASKED[i] * (1 - 1e-9));
            CU_ASSERT_EQUAL(ASKED[i] >= 0.9 && e->memory_high_bytes > e->memory_available_bytes,
                            false);
            CU_ASSERT(e->step_time_s >= last_s * (1 - 1e-9));
            num_slower += last_s > 0 && e->step_time_s > last_s * (1 + 1e-9);
            last_s = e->step_time_s;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_slower > 0);
    CU_ASSERT(num_none > 0);
}

// What a search that asks for a half finds, where it is better than the best and less sure.
static void riskier_plans_are_those_that_a_half_would_find(void) {
    int num_riskier = 0, num_alone = 0;
    for (int number = 0; number < case_count_slow(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        PlannerOptions options = {.max_memory_bytes = case_memory_bytes(number, &scenario),
                                  .brief = true};
        PlannerResult result = search(&scenario, &options, &arena);
        CU_ASSERT_EQUAL(planner_find_riskier(&scenario, &options, &arena, &result).code, STATUS_OK);
        options.fit_probability_frac = 0.5;
        const PlannerResult half = search(&scenario, &options, &arena);
        const double best_s =
            result.num_entries > 0 ? result.entries[0].estimate.step_time_s : INFINITY;
        const bool better = half.num_entries > 0 && half.entries[0].estimate.step_time_s <=
                                                        best_s * (1 - RISKIER_MIN_GAIN_FRAC);
        CU_ASSERT_EQUAL(result.num_riskier > 0, better);
        CU_ASSERT(result.num_riskier <= RISKIER_MAX_ENTRIES);
        if (better)
            CU_ASSERT_DOUBLE_EQUAL(result.riskier[0].estimate.step_time_s,
                                   half.entries[0].estimate.step_time_s, 1e-9 * best_s);
        for (int i = 0; i < result.num_riskier; i++) {
            const Estimate *e = &result.riskier[i].estimate;
            CU_ASSERT(e->fits_probability_frac >= 0.5 && e->fits_probability_frac < 0.9);
            CU_ASSERT(e->step_time_s <= best_s * (1 - RISKIER_MIN_GAIN_FRAC));
        }
        num_riskier += result.num_riskier > 0 && result.num_entries > 0;
        num_alone += result.num_riskier > 0 && result.num_entries == 0;
        arena_free(&arena);
    }
    CU_ASSERT(num_riskier > 0);
    CU_ASSERT(num_alone > 0);
}

CU_TestInfo search_memory_tests[] = {
    {"what_is_cached_is_needed_by_half", what_is_cached_is_needed_by_half},
    {"the_surer_the_slower", the_surer_the_slower},
    {"riskier_plans_are_those_that_a_half_would_find",
     riskier_plans_are_those_that_a_half_would_find},
    CU_TEST_INFO_NULL,
};
