// What the search takes for granted: bounds are bounds, and shared pieces are the same.
#include "planner/harvest.h"

#include "planner/loose.h"
#include "tests/planner/planner_case.h"

#include <CUnit/CUnit.h>
#include <math.h>

typedef struct {
    const Scenario *scenario;
    Space space;
    LooseCosts loose;
    double *split_bound_s;
} Case;

static void case_open(int number, Arena *arena, Scenario *scenario, Case *out) {
    Status status = case_scenario(number, arena, scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    scenario->cluster.gpu.memory_available_bytes = case_memory_bytes(number, scenario);
    *out = (Case){.scenario = scenario};
    space_build(scenario, arena, &out->space);
    out->split_bound_s = ARENA_ARRAY(arena, out->space.num_splits, double);
    loose_build(&out->space, 2, NULL, &out->loose, out->split_bound_s);
}

static HarvestTask case_task(const Case *c, PlanObjective objective) {
    return (HarvestTask){.space = &c->space,
                         .goal = HARVEST_BOUND,
                         .objective = objective,
                         .loose = &c->loose,
                         .value_limit = INFINITY};
}

// The bound of a candidate from workload and prices of its own.
static double fresh_bound_s(const Scenario *scenario, const Plan *plan) {
    Arena arena = {0};
    Workload workload = workload_build(scenario, plan, &arena);
    Prices prices = chunks_price(scenario, plan, &workload, &arena);
    double bound_s = estimate_lower_bound_s(scenario, plan, &workload, &prices);
    arena_free(&arena);
    return bound_s;
}

static void pieces_shared_by_a_family_are_those_of_each_plan(void) {
    for (int number = 0; number < case_count(60); number++) {
        Arena arena = {0};
        Scenario scenario;
        Case c;
        case_open(number, &arena, &scenario, &c);
        HarvestTask task = case_task(&c, OBJECTIVE_THROUGHPUT);
        for (int split = 0; split < c.space.num_splits; split++) {
            Harvest harvest;
            harvest_split(&task, split, &harvest);
            for (size_t i = 0; i < harvest.num_candidates; i++)
                CU_ASSERT_EQUAL(harvest.candidates[i].step_time_s,
                                fresh_bound_s(&scenario, &harvest.candidates[i].plan));
            harvest_free(&harvest);
        }
        loose_free(&c.loose);
        arena_free(&arena);
    }
}

typedef struct {
    int num_above_price, num_loose_above_tight, num_split_above_loose, num_not_fitting;
} Violations;

static void candidate_check(const Case *c, const Candidate *candidate, PlanObjective objective,
                            int split, Violations *v) {
    const double slack = 1 + 1e-9;
    Arena arena = {0};
    Estimate estimate;
    Status status = estimate_plan(c->scenario, &candidate->plan, &arena, &estimate, NULL);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    double loose_s = loose_bound_s(&c->loose, &candidate->plan);
    v->num_above_price += candidate->step_time_s > estimate.step_time_s * slack;
    v->num_above_price += candidate->value > objective_value(objective, &estimate) * slack;
    v->num_loose_above_tight += loose_s > candidate->step_time_s * slack;
    v->num_loose_above_tight += objective_bound(c->scenario, objective, loose_s, 0) >
                                objective_value(objective, &estimate) * slack;
    v->num_split_above_loose += c->split_bound_s[split] > loose_s * slack;
    v->num_not_fitting += !estimate.fits;
    arena_free(&arena);
}

static void a_bound_is_never_above_the_price(void) {
    for (int number = 0; number < case_count(60); number++) {
        Arena arena = {0};
        Scenario scenario;
        Case c;
        case_open(number, &arena, &scenario, &c);
        PlanObjective objective = (PlanObjective)(number % NUM_OBJECTIVES);
        HarvestTask task = case_task(&c, objective);
        Violations v = {0};
        for (int split = 0; split < c.space.num_splits; split++) {
            Harvest harvest;
            harvest_split(&task, split, &harvest);
            for (size_t i = 0; i < harvest.num_candidates; i += 1 + (size_t)number % 7)
                candidate_check(&c, &harvest.candidates[i], objective, split, &v);
            harvest_free(&harvest);
        }
        CU_ASSERT_EQUAL(v.num_above_price, 0);
        CU_ASSERT_EQUAL(v.num_loose_above_tight, 0);
        CU_ASSERT_EQUAL(v.num_split_above_loose, 0);
        CU_ASSERT_EQUAL(v.num_not_fitting, 0);
        loose_free(&c.loose);
        arena_free(&arena);
    }
}

// --- Memory

typedef struct {
    const Scenario *scenario;
    double last_bytes[SPACE_MAX_SERIES][4][NUM_SCHEDULES];
    int num_falling;
    int64_t num_fitting;
} Memory;

// Least over the ranks of what lasts.
static double static_bytes(const Scenario *scenario, const Plan *plan, const Workload *workload) {
    double least = INFINITY;
    for (int rank = 0; rank < plan->pp; rank++) {
        RankMemory memory = memory_closed_form(scenario, plan, workload, rank);
        least = fmin(least, memory_lasting_bytes(scenario, &memory));
    }
    return least;
}

static bool memory_visit(void *context, const Plan *plans, int num_plans, int series) {
    Memory *m = context;
    for (int i = 0; i < num_plans; i++) {
        Arena arena = {0};
        Workload workload = workload_build(m->scenario, &plans[i], &arena);
        double missing, bytes = static_bytes(m->scenario, &plans[i], &workload);
        estimate_memory(m->scenario, &plans[i], &workload, &missing);
        double *last = &m->last_bytes[series][plans[i].zero_stage][plans[i].schedule];
        m->num_falling += bytes < *last * (1 - 1e-12);
        m->num_fitting += missing <= 0;
        *last = bytes;
        arena_free(&arena);
    }
    return true;
}

static void more_sequences_at_once_never_need_less_static_memory(void) {
    for (int number = 0; number < case_count(60); number++) {
        Arena arena = {0};
        Scenario scenario;
        Case c;
        case_open(number, &arena, &scenario, &c);
        HarvestTask task = case_task(&c, OBJECTIVE_THROUGHPUT);
        Memory *memory = ARENA_NEW(&arena, Memory);
        for (int split = 0; split < c.space.num_splits; split++) {
            *memory = (Memory){.scenario = &scenario};
            space_visit(&c.space, split, &arena, memory_visit, memory);
            CU_ASSERT_EQUAL(memory->num_falling, 0);
            Harvest harvest; // which skips what a smaller micro_batch ruled out
            harvest_split(&task, split, &harvest);
            CU_ASSERT_EQUAL((int64_t)harvest.num_candidates, memory->num_fitting);
            harvest_free(&harvest);
        }
        loose_free(&c.loose);
        arena_free(&arena);
    }
}

CU_TestInfo harvest_tests[] = {
    {"pieces_shared_by_a_family_are_those_of_each_plan",
     pieces_shared_by_a_family_are_those_of_each_plan},
    {"a_bound_is_never_above_the_price", a_bound_is_never_above_the_price},
    {"more_sequences_at_once_never_need_less_static_memory",
     more_sequences_at_once_never_need_less_static_memory},
    CU_TEST_INFO_NULL,
};
