#include "planner/questions/tune.h"

#include "planner/harvest/harvest.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

enum { NUM_CASES = 12, FIRST_CASE = 8 }; // the first in which a choice helps

static int num_values(const SwitchRow *row) {
    int num = 0;
    while (row->values[num]) num++;
    return num;
}

// The best plan over all combinations, each searched by itself.
static double best_of_all_s(const Scenario *scenario, const PlannerOptions *options) {
    SwitchChoice open[MAX_SWITCHES];
    const int num_open = switches_open(scenario, open);
    int64_t num = 1;
    double best_s = INFINITY;
    for (int i = 0; i < num_open; i++) num *= num_values(open[i].row);
    for (int64_t number = 0; number < num; number++) {
        Arena arena = {0};
        Scenario changed = *scenario;
        int64_t rest = number;
        for (int i = 0; i < num_open; i++) {
            const int values = num_values(open[i].row);
            const SwitchChoice choice = {open[i].row, (int)(rest % values)};
            CU_ASSERT_EQUAL(switch_apply(&changed, choice, &arena, &changed).code, STATUS_OK);
            rest /= values;
        }
        PlannerResult result = {0};
        // STATUS_INVALID where the software runs nothing so
        if (switches_run(&changed, open, num_open) &&
            planner_search(&changed, options, &arena, &result).code == STATUS_OK &&
            result.num_entries > 0)
            best_s = fmin(best_s, result.entries[0].estimate.step_time_s);
        arena_free(&arena);
    }
    return best_s;
}

// The plan that the tuning leads to.
static double tuned_s(const Scenario *scenario, const PlannerOptions *options, Tuning *tuning) {
    Arena arena = {0};
    Scenario changed = *scenario;
    double step_time_s = INFINITY;
    CU_ASSERT_EQUAL(planner_tune(scenario, options, &arena, tuning).code, STATUS_OK);
    for (int i = 0; i < tuning->num_choices; i++)
        CU_ASSERT_EQUAL(switch_apply(&changed, tuning->choices[i], &arena, &changed).code,
                        STATUS_OK);
    PlannerResult result = {0};
    if (planner_search(&changed, options, &arena, &result).code == STATUS_OK &&
        result.num_entries > 0)
        step_time_s = result.entries[0].estimate.step_time_s;
    arena_free(&arena);
    return step_time_s;
}

static void no_combination_is_better(void) {
    int num_tuned = 0;
    for (int i = 0; i < case_count(NUM_CASES); i++) {
        const int number = FIRST_CASE + 2 * i;
        Arena arena = {0};
        Scenario scenario;
        Tuning tuning;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        const PlannerOptions options = {
            .top = 1, .brief = true, .max_memory_bytes = case_memory_bytes(number, &scenario)};
        const double step_time_s = tuned_s(&scenario, &options, &tuning);
        const double wanted_s = best_of_all_s(&scenario, &options);
        CU_ASSERT(tuning.proven);
        CU_ASSERT(step_time_s == wanted_s || fabs(step_time_s / wanted_s - 1) < 1e-8);
        num_tuned += tuning.num_choices > 0;
        arena_free(&arena);
    }
    CU_ASSERT(num_tuned > 0);
}

static void a_signal_ends_it_without_a_proof(void) {
    Arena arena = {0};
    Scenario scenario;
    Tuning tuning;
    const atomic_bool end_soon = true;
    CU_ASSERT_EQUAL_FATAL(case_scenario(0, &arena, &scenario).code, STATUS_OK);
    const PlannerOptions options = {.top = 1, .brief = true, .end_soon = &end_soon};
    CU_ASSERT_EQUAL(planner_tune(&scenario, &options, &arena, &tuning).code, STATUS_OK);
    CU_ASSERT(!tuning.proven);
    CU_ASSERT_EQUAL(tuning.num_searches, 0);
    arena_free(&arena);
}

CU_TestInfo tune_tests[] = {
    {"no combination is better", no_combination_is_better},
    {"a signal ends it without a proof", a_signal_ends_it_without_a_proof},
    CU_TEST_INFO_NULL,
};
