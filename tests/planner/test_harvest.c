// What the search takes for granted: bounds are bounds, and shared pieces are the same.
#include "planner/harvest/harvest.h"

#include "planner/harvest/best.h"
#include "planner/harvest/harvest_family.h"
#include "planner/harvest/loose.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

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
    test_pool(&scenario->cluster)->gpu.memory_available_bytes = case_memory_bytes(number, scenario);
    *out = (Case){.scenario = scenario};
    space_build(scenario, arena, &out->space);
    out->split_bound_s = ARENA_ARRAY(arena, out->space.num_splits, double);
    loose_build(&out->space, 2, NULL, NULL, &out->loose, out->split_bound_s);
}

static HarvestTask case_task(const Case *c, PlanObjective objective) {
    return (HarvestTask){.space = &c->space,
                         .goal = HARVEST_BOUND,
                         .objective = objective,
                         .loose = &c->loose,
                         .value_limit = INFINITY,
                         .wants_miss = true};
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
    for (int number = 0; number < case_count_slow(60); number++) {
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
    for (int number = 0; number < case_count_slow(60); number++) {
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
    double last_bytes[SPACE_MAX_SERIES][NUM_ZERO_LEVELS][NUM_SCHEDULES];
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

static bool memory_visit(void *context, const SpaceFamily *family) {
    Memory *m = context;
    for (int i = 0; i < case_num_plans(family); i++) {
        const Plan plan = case_plan(family, i);
        Arena arena = {0};
        Workload workload = workload_build(m->scenario, &plan, &arena);
        double missing, bytes = static_bytes(m->scenario, &plan, &workload);
        estimate_memory(m->scenario, &plan, &workload, &missing);
        m->num_fitting += missing <= 0;
        if (plan.zero_group == family->plans[0].zero_group) {
            double *last = &m->last_bytes[family->series][plan_zero_level(&plan)][plan.schedule];
            m->num_falling += bytes < *last * (1 - 1e-12);
            *last = bytes;
        }
        arena_free(&arena);
    }
    return true;
}

static void more_sequences_at_once_never_need_less_static_memory(void) {
    for (int number = 0; number < case_count_slow(60); number++) {
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

// --- Some layers recomputed

typedef struct {
    const Scenario *scenario;
    int num_plans, num_floors_above, num_rising, num_above_smaller, num_faster, num_worse_ranks;
} Layers;

// The account of the worst rank, every rank looked at.
static double worst_peak_bytes(const Scenario *scenario, const Plan *plan,
                               const Workload *workload) {
    double worst = 0;
    for (int rank = 0; rank < plan->pp; rank++)
        worst = fmax(worst, memory_closed_form(scenario, plan, workload, rank).peak_bytes);
    return worst;
}

// What is said of memory in planner/harvest/harvest_family.h and workload/pass/block.h.
static void layers_memory_check(Layers *l, FamilyParts *parts, const Plan *plan,
                                double *last_floor) {
    Arena arena = {0};
    double missing, shared_missing;
    const Workload workload = workload_build(l->scenario, plan, &arena);
    const RankMemory memory = estimate_memory(l->scenario, plan, &workload, &missing);
    const RankMemory shared = family_memory(parts, plan, &shared_missing);
    CU_ASSERT_EQUAL(shared.device_bytes, memory.device_bytes);
    CU_ASSERT_EQUAL(shared_missing, missing);
    l->num_worse_ranks +=
        worst_peak_bytes(l->scenario, plan, &workload) > memory.peak_bytes * (1 + 1e-12);
    if (plan->recompute_layers > 0) {
        const double floor = family_floor_missing(parts, plan);
        l->num_floors_above += floor > missing;
        l->num_rising += floor > *last_floor * (1 + 1e-9);
        *last_floor = floor;
    }
    arena_free(&arena);
}

static void layers_time_check(Layers *l, const Plan *plan, double *last_s) {
    Arena arena = {0};
    Estimate estimate;
    CU_ASSERT_EQUAL(estimate_plan(l->scenario, plan, &arena, &estimate, NULL).code, STATUS_OK);
    l->num_faster += estimate.step_time_s < *last_s * (1 - 1e-12);
    *last_s = estimate.step_time_s;
    arena_free(&arena);
}

static bool layers_check(void *context, const SpaceFamily *family) {
    Layers *l = context;
    Pieces pieces = {.scenario = l->scenario};
    Arena scratch = {0};
    FamilyParts parts = {.scenario = l->scenario, .pieces = &pieces, .arena = &scratch};
    family_start(&parts, family);
    for (int i = 0; i < family->num_plans; i++) {
        double floor = INFINITY, last_s = 0;
        Plan none = family->plans[i];
        if (family->num_layers[i] == 0) continue;
        none.recompute = RECOMPUTE_NONE;
        layers_time_check(l, &none, &last_s);
        for (int k = 1; k <= family->num_layers[i]; k++) {
            const Plan some = space_first_layers(&family->plans[i], k);
            layers_memory_check(l, &parts, &some, &floor);
            layers_time_check(l, &some, &last_s);
            l->num_plans++;
        }
        layers_memory_check(l, &parts, &family->plans[i], &floor);
        layers_time_check(l, &family->plans[i], &last_s);
    }
    pieces_free(&pieces);
    arena_free(&scratch);
    return true;
}

static void more_recomputed_layers_take_longer_and_have_a_falling_floor(void) {
    Layers l = {0};
    for (int number = 0; number < case_count_slow(60); number += 2) {
        Arena arena = {0};
        Scenario scenario;
        Case c;
        case_open(number, &arena, &scenario, &c);
        test_pool(&scenario.cluster)->gpu.memory_available_bytes /=
            2; // so that the floor misses too
        l.scenario = &scenario;
        for (int split = 0; split < c.space.num_splits; split += 1 + number % 3)
            space_visit(&c.space, split, &arena, layers_check, &l);
        loose_free(&c.loose);
        arena_free(&arena);
    }
    CU_ASSERT(l.num_plans > 1000);
    CU_ASSERT_EQUAL(l.num_floors_above, 0);
    CU_ASSERT_EQUAL(l.num_rising, 0);
    CU_ASSERT_EQUAL(l.num_faster, 0);
    CU_ASSERT_EQUAL(l.num_worse_ranks, 0);
}

// --- The number that suffices

static void the_fewest_layers_that_fit_are_kept_alone(void) {
    int num_some = 0, num_pruned = 0;
    for (int number = 0; number < case_count_slow(60); number++) {
        Arena arena = {0};
        Scenario scenario;
        Case c;
        case_open(number, &arena, &scenario, &c);
        HarvestTask all = case_task(&c, OBJECTIVE_THROUGHPUT), fewest = all;
        fewest.first_layers_by_time = true;
        for (int split = 0; split < c.space.num_splits; split++) {
            Harvest a, b;
            harvest_split(&all, split, &a);
            harvest_split(&fewest, split, &b);
            CU_ASSERT_EQUAL(a.considered, b.considered);
            if (a.num_candidates == 0) CU_ASSERT_EQUAL(a.missing_bytes, b.missing_bytes);
            num_pruned += b.num_candidates < a.num_candidates;
            // Every kept one is kept among all; every other is like a kept one and recomputes more.
            size_t k = 0;
            for (size_t i = 0; i < a.num_candidates; i++) {
                const Plan *plan = &a.candidates[i].plan;
                bool found = false;
                for (k = 0; k < b.num_candidates && !found; k++)
                    found = plans_differ_in_layers(plan, &b.candidates[k].plan) &&
                            b.candidates[k].step_time_s <= a.candidates[i].step_time_s;
                CU_ASSERT_TRUE(found);
            }
            for (k = 0; k < b.num_candidates; k++)
                num_some += b.candidates[k].plan.recompute_layers > 0;
            harvest_free(&a);
            harvest_free(&b);
        }
        loose_free(&c.loose);
        arena_free(&arena);
    }
    CU_ASSERT(num_some > 100);
    CU_ASSERT(num_pruned > 10);
}

CU_TestInfo harvest_tests[] = {
    {"pieces_shared_by_a_family_are_those_of_each_plan",
     pieces_shared_by_a_family_are_those_of_each_plan},
    {"a_bound_is_never_above_the_price", a_bound_is_never_above_the_price},
    {"more_sequences_at_once_never_need_less_static_memory",
     more_sequences_at_once_never_need_less_static_memory},
    {"more_recomputed_layers_take_longer_and_have_a_falling_floor",
     more_recomputed_layers_take_longer_and_have_a_falling_floor},
    {"the_fewest_layers_that_fit_are_kept_alone", the_fewest_layers_that_fit_are_kept_alone},
    CU_TEST_INFO_NULL,
};
