// What is excluded by a step time alone is excluded rightly.
#include "planner/search/pricing.h"

#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

// What best_excludes takes for rounding is a thousand times as much.
static const double SAME_FRAC = 1e-12;

typedef struct {
    int num_known, num_unknown, num_wrong;
} Seen;

static void candidate_compare_prices(const Scenario *scenario, PlanObjective objective,
                                     const Candidate *candidate, Pieces *pieces, Seen *seen) {
    Arena arena = {0}, scratch = {0};
    Candidate raised = *candidate;
    Estimate estimate;
    Status status = estimate_plan(scenario, &candidate->plan, &arena, &estimate, NULL);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const bool known = candidate_raise(objective, &raised, pieces, &scratch);
    seen->num_known += known;
    seen->num_unknown += !known;
    if (known) {
        const double value = objective_value(objective, &estimate);
        seen->num_wrong += fabs(raised.value / value - 1) > SAME_FRAC ||
                           fabs(raised.step_time_s / estimate.step_time_s - 1) > SAME_FRAC ||
                           raised.memory_bytes != estimate.memory.device_bytes;
    } else {
        seen->num_wrong += raised.value != candidate->value;
    }
    arena_free(&scratch);
    arena_free(&arena);
}

static void a_raised_candidate_has_the_value_of_its_estimate(void) {
    Seen seen = {0};
    for (int number = 0; number < case_count(60); number++) {
        Arena arena = {0};
        Scenario scenario;
        Space space;
        Status status = case_scenario(number, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        test_pool(&scenario.cluster)->price_usd_per_gpu_hour = 2;
        space_build(&scenario, &arena, &space);
        const PlanObjective objective = (PlanObjective)(number % NUM_OBJECTIVES);
        const HarvestTask task = {.space = &space,
                                  .goal = HARVEST_BOUND,
                                  .objective = objective,
                                  .value_limit = INFINITY};
        Pieces pieces = {.scenario = &scenario};
        for (int split = 0; split < space.num_splits; split++) {
            Harvest harvest;
            harvest_split(&task, split, &harvest);
            for (size_t i = 0; i < harvest.num_candidates; i += 1 + (size_t)number % 7)
                candidate_compare_prices(&scenario, objective, &harvest.candidates[i], &pieces,
                                         &seen);
            harvest_free(&harvest);
        }
        pieces_free(&pieces);
        arena_free(&arena);
    }
    CU_ASSERT_EQUAL(seen.num_wrong, 0);
    CU_ASSERT(seen.num_known > 1000);
    CU_ASSERT(seen.num_unknown > 0);
}

CU_TestInfo pricing_tests[] = {
    {"a_raised_candidate_has_the_value_of_its_estimate",
     a_raised_candidate_has_the_value_of_its_estimate},
    CU_TEST_INFO_NULL,
};
