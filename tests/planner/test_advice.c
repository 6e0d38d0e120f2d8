#include "planner/questions/advice.h"

#include "planner/questions/neighbour.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

enum { NUM_CASES = 60 };

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const char *wanted; // the change whose step is noted; NULL
    double step_time_s;
    int num_visited, num_illegal, num_same;
} Visits;

static void neighbour_note(void *context, const Plan *plan, const char *change) {
    Visits *v = context;
    Arena arena = {0};
    v->num_visited++;
    v->num_illegal += plan_check(v->scenario, plan).code != STATUS_OK;
    v->num_same += strcmp(case_key(plan, &arena), case_key(v->plan, &arena)) == 0;
    CU_ASSERT_PTR_NOT_NULL(strstr(change, " instead of "));
    CU_ASSERT(plan->pp > 1 || plan->vpp <= v->plan->vpp);
    if (v->wanted && strcmp(v->wanted, change) == 0) {
        Estimate estimate;
        CU_ASSERT_EQUAL(estimate_plan(v->scenario, plan, &arena, &estimate, NULL).code, STATUS_OK);
        v->step_time_s = estimate.step_time_s;
    }
    arena_free(&arena);
}

typedef struct {
    const Scenario *scenario;
    int num_layers[8];
    double missing_bytes, even_missing_bytes;
} EightStages;

static void eight_stages_note(void *context, const Plan *plan, const char *change) {
    EightStages *seen = context;
    Arena arena = {0};
    if (strcmp(change, "pp 8 instead of 4, tp 1 instead of 2") == 0) {
        for (int c = 0; c < 8; c++) seen->num_layers[c] = plan->chunks[c].num_layers;
        Workload workload = workload_build(seen->scenario, plan, &arena);
        estimate_memory(seen->scenario, plan, &workload, &seen->missing_bytes);
        Plan even = *plan;
        plan_default_chunks(&seen->scenario->model, 8, &arena, &even.chunks);
        workload = workload_build(seen->scenario, &even, &arena);
        estimate_memory(seen->scenario, &even, &workload, &seen->even_missing_bytes);
    }
    arena_free(&arena);
}

// Eight cards of 24 GB, a vocabulary of 151,936 at both ends of 36 layers: even stages miss, what
// is named has few layers at the ends.
static void a_neighbour_has_the_split_that_fits(void) {
    Arena arena = {0};
    Scenario scenario;
    Plan plan;
    Status status =
        case_preset("qwen3-8b", "rtx4090-node:1", 4096, 128,
                    "{\"tp\": 2, \"pp\": 4, \"recompute\": \"full\"}", &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &plan).code, STATUS_OK);
    const PlannerOptions options = {.fit_probability_frac = 0.5};
    const Scenario limited = planner_limited(&scenario, &options, &arena);
    EightStages seen = {.scenario = &limited};
    neighbours_visit(&limited, &plan, eight_stages_note, &seen);
    CU_ASSERT(seen.even_missing_bytes > 1e9);
    CU_ASSERT(seen.missing_bytes <= 0);
    int num_layers = 0;
    for (int c = 0; c < 8; c++) num_layers += seen.num_layers[c];
    CU_ASSERT_EQUAL(num_layers, 36);
    CU_ASSERT(seen.num_layers[0] < seen.num_layers[4] && seen.num_layers[7] < seen.num_layers[4]);
    arena_free(&arena);
}

static void neighbours_are_legal_and_differ(void) {
    int num_visited = 0;
    for (int number = 0; number < case_count(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        PlannerResult result;
        const PlannerOptions options = {.top = 3, .brief = true};
        CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &result).code, STATUS_OK);
        for (int i = 0; i < result.num_entries; i++) {
            Visits v = {.scenario = &scenario, .plan = &result.entries[i].plan};
            neighbours_visit(&scenario, v.plan, neighbour_note, &v);
            CU_ASSERT_EQUAL(v.num_illegal, 0);
            CU_ASSERT_EQUAL(v.num_same, 0);
            num_visited += v.num_visited;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_visited > 5 * case_count(NUM_CASES));
}

// The search proved that nothing in its space is better; what would be lies outside: more memory
// or another job.
static void the_best_has_no_change_that_fits(void) {
    int num_lacking = 0, num_of_job = 0;
    for (int number = 0; number < case_count(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        const PlannerOptions options = {
            .top = 1, .brief = true, .max_memory_bytes = case_memory_bytes(number, &scenario)};
        PlannerResult result;
        CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &result).code, STATUS_OK);
        planner_advise(&scenario, &options, &arena, &result);
        for (int i = 0; i < result.num_entries; i++) {
            const Advice *advice = &result.entries[i].advice;
            CU_ASSERT_PTR_NOT_NULL_FATAL(advice->limit);
            CU_ASSERT(!advice->change || advice->missing_bytes > 0 || advice->is_of_job);
            num_lacking += advice->missing_bytes > 0;
            num_of_job += advice->is_of_job;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_lacking > 0 && num_of_job > 0);
}

// With a constraint in the way the nearest change is to give it up, and it saves what it says.
static void a_constraint_in_the_way_is_told(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(case_preset("llama-3.1-8b", "dgx-h100:2", 4096, 64,
                                      "{\"tp\": 8, \"pp\": 1}", &arena, &scenario)
                              .code,
                          STATUS_OK);
    const PlannerOptions options = {.top = 1};
    PlannerResult result;
    CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &result).code, STATUS_OK);
    planner_advise(&scenario, &options, &arena, &result);
    const Advice *advice = &result.entries[0].advice;
    CU_ASSERT_STRING_EQUAL(advice->limit, "tp_exposed");
    CU_ASSERT_PTR_NOT_NULL_FATAL(advice->change);
    CU_ASSERT_PTR_NOT_NULL(strstr(advice->change, "tp 4 instead of 8"));
    CU_ASSERT_EQUAL(advice->missing_bytes, 0);
    Visits v = {.scenario = &scenario, .plan = &result.entries[0].plan, .wanted = advice->change};
    neighbours_visit(&scenario, v.plan, neighbour_note, &v);
    const double gain_frac = 1 - v.step_time_s / result.entries[0].estimate.step_time_s;
    CU_ASSERT_DOUBLE_EQUAL(advice->gain_frac, gain_frac, 1e-12);
    arena_free(&arena);
}

// A stated number of layers and ranks is more than the job needs: fewer layers, and another group.
static void fewer_layers_and_other_groups_are_neighbours(void) {
    static const char *const CHANGES[] = {"recompute_layers 5 instead of 6",
                                          "recompute_layers 3 instead of 6",
                                          "zero_group 8 instead of 4", "zero_group 2 instead of 4",
                                          "recompute none instead of full of 6 layers a stage"};
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(case_preset("llama-3.1-8b", "dgx-h100:2", 4096, 64,
                                      "{\"tp\": 1, \"pp\": 2, \"micro_batch\": 1, \"recompute\": "
                                      "\"full\", \"recompute_layers\": 6, \"zero_group\": 4}",
                                      &arena, &scenario)
                              .code,
                          STATUS_OK);
    Plan plan;
    Estimate estimate;
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL(estimate_plan(&scenario, &plan, &arena, &estimate, NULL).code, STATUS_OK);
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
        Visits v = {.scenario = &scenario, .plan = &plan, .wanted = CHANGES[i]};
        neighbours_visit(&scenario, &plan, neighbour_note, &v);
        CU_ASSERT(v.step_time_s > 0); // it was among them
        CU_ASSERT_EQUAL(v.num_illegal + v.num_same, 0);
        const bool fewer = strstr(CHANGES[i], "zero_group") == NULL;
        if (fewer) CU_ASSERT(v.step_time_s < estimate.step_time_s);
    }
    arena_free(&arena);
}

// A pipeline of full recomputation because nothing else fits.
static void memory_is_the_limit_where_it_forbids_most(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(
        case_preset("llama-3.1-8b", "dgx-h100:1", 8192, 64, "{\"tp\": 1}", &arena, &scenario).code,
        STATUS_OK);
    const PlannerOptions options = {.top = 1, .max_memory_bytes = 33e9};
    PlannerResult result;
    CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &result).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(result.num_entries, 1);
    planner_advise(&scenario, &options, &arena, &result);
    const Advice *advice = &result.entries[0].advice;
    CU_ASSERT_STRING_EQUAL(advice->limit, "memory");
    CU_ASSERT(advice->missing_bytes > 0);
    const char *text = advice_text(advice, &arena);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "limited by memory"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "GB more on each GPU"));
    arena_free(&arena);
}

static void advice_is_one_sentence(void) {
    Arena arena = {0};
    const Advice bubble = {.limit = "bubble",
                           .limit_frac = 0.041,
                           .change = "vpp 10 instead of 5",
                           .gain_frac = 0.012};
    CU_ASSERT_STRING_EQUAL(advice_text(&bubble, &arena),
                           "limited by the pipeline bubble; vpp 10 instead of 5 would be 1.2 % "
                           "faster");
    const Advice compute = {.limit = "compute", .limit_frac = 0.98};
    CU_ASSERT_STRING_EQUAL(advice_text(&compute, &arena), "limited by computation");
    CU_ASSERT_PTR_NULL(advice_text(&(Advice){0}, &arena));
    arena_free(&arena);
}

static void there_is_none_for_memory_and_energy(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(case_scenario(3, &arena, &scenario).code, STATUS_OK);
    const PlannerOptions options = {.top = 2, .objective = OBJECTIVE_ENERGY};
    PlannerResult result;
    CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &result).code, STATUS_OK);
    planner_advise(&scenario, &options, &arena, &result);
    for (int i = 0; i < result.num_entries; i++) CU_ASSERT_PTR_NULL(result.entries[i].advice.limit);
    arena_free(&arena);
}

CU_TestInfo advice_tests[] = {
    {"a_neighbour_has_the_split_that_fits", a_neighbour_has_the_split_that_fits},
    {"neighbours_are_legal_and_differ", neighbours_are_legal_and_differ},
    {"the_best_has_no_change_that_fits", the_best_has_no_change_that_fits},
    {"a_constraint_in_the_way_is_told", a_constraint_in_the_way_is_told},
    {"fewer_layers_and_other_groups_are_neighbours", fewer_layers_and_other_groups_are_neighbours},
    {"memory_is_the_limit_where_it_forbids_most", memory_is_the_limit_where_it_forbids_most},
    {"advice_is_one_sentence", advice_is_one_sentence},
    {"there_is_none_for_memory_and_energy", there_is_none_for_memory_and_energy},
    CU_TEST_INFO_NULL,
};
