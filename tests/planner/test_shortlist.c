// Jobs that differ in how fast their links are: the law that shortlists stand on, and searches that
// take their configurations from one.
#include "planner/search/shortlist.h"

#include "costmodel/step/step_time.h"
#include "tests/planner/planner_case.h"
#include "whatif/change.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

enum { NUM_SPEEDS = 4, NUM_NEAR = 3 }; // all, and those that share a list

static const char *const PATHS[] = {"cluster.scale_out.nic_bytes_per_s",
                                    "cluster.scale_out.oversubscription"};
// The fastest first.
static const double VALUES[][NUM_SPEEDS] = {{2e11, 1.6e11, 1.5e11, 3e9}, {1, 1.2, 1.3, 8}};
enum { NUM_PATHS = sizeof PATHS / sizeof *PATHS };

// The scenario with a number at a path.
static const Scenario *changed(const Scenario *scenario, int path, int speed, Arena *arena) {
    Scenario *out = ARENA_NEW(arena, Scenario);
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    const cJSON *base;
    const Status opened = change_base(scenario, &PATHS[path], 1, true, arena, &base);
    CU_ASSERT_EQUAL_FATAL(opened.code, STATUS_OK);
    cJSON *document = cJSON_Duplicate(base, true);
    cJSON *value = cJSON_CreateNumber(VALUES[path][speed]);
    json_own(arena, document);
    json_own(arena, value);
    CU_ASSERT_EQUAL_FATAL(change_set(scenario, document, PATHS[path], value).code, STATUS_OK);
    *root = (JsonNode){.file = scenario->file, .item = document};
    CU_ASSERT_EQUAL_FATAL(scenario_read(root, arena, out).code, STATUS_OK);
    return out;
}

// --- The law

typedef struct {
    const Scenario *speeds[NUM_SPEEDS];
    int every, num_seen; // one of so many plans is looked at
    int num_plans, num_slowed, num_broken;
} Law;

static double step_of(const Scenario *scenario, const Plan *plan) {
    Arena arena = {0};
    const Workload workload = workload_build(scenario, plan, &arena);
    const Prices prices = chunks_price(scenario, plan, &workload, &arena);
    const double step_s = plan_step_time_s(scenario, plan, &workload, &prices, &arena);
    arena_free(&arena);
    return step_s;
}

static bool law_visit(void *context, const SpaceFamily *family) {
    Law *law = context;
    for (int i = 0; i < case_num_plans(family); i++) {
        if (law->num_seen++ % law->every != 0) continue;
        const Plan plan = case_plan(family, i);
        double last_s = step_of(law->speeds[0], &plan);
        const double fastest_s = last_s;
        if (isnan(last_s)) continue;
        law->num_plans++;
        for (int k = 1; k < NUM_SPEEDS; k++) {
            const double step_s = step_of(law->speeds[k], &plan);
            law->num_broken += step_s < last_s * (1 - 1e-9);
            last_s = step_s;
        }
        law->num_slowed += last_s > fastest_s * 1.001;
    }
    return true;
}

static void no_plan_is_faster_on_slower_links(void) {
    int num_plans = 0, num_slowed = 0, num_broken = 0;
    for (int number = 0; num_plans < case_count_slow(600); number++) {
        Arena arena = {0};
        Scenario scenario;
        if (case_scenario(number, &arena, &scenario).code == STATUS_OK &&
            scenario.cluster.num_gpus > scenario.cluster.pools[0].gpus_per_node) {
            const int path = number % NUM_PATHS;
            Space space;
            Law law = {.every = 199};
            for (int k = 0; k < NUM_SPEEDS; k++)
                law.speeds[k] = changed(&scenario, path, k, &arena);
            space_build(&scenario, &arena, &space);
            for (int i = 0; i < space.num_splits; i++)
                space_visit(&space, i, &arena, law_visit, &law);
            if (law.num_broken > 0) fprintf(stderr, "case %d, %s\n", number, PATHS[path]);
            num_plans += law.num_plans;
            num_slowed += law.num_slowed;
            num_broken += law.num_broken;
        }
        arena_free(&arena);
    }
    CU_ASSERT_EQUAL(num_broken, 0);
    CU_ASSERT(num_slowed > num_plans / 20);
}

// --- Searches

static const PlannerOptions ONE = {.top = 1, .brief = true, .uncounted = true};

static const char *best_key(const PlannerResult *result, Arena *arena) {
    if (result->num_entries == 0) return "none";
    return case_key(&result->entries[0].plan, arena);
}

// What the best plan of the fastest job takes at the slowest; 0 where none fits.
static double slowest_s(const Scenario *fastest, const Scenario *slowest, Arena *arena) {
    const PlannerResult best = case_search(fastest, &ONE, arena);
    return best.num_entries > 0 ? step_of(slowest, &best.entries[0].plan) : 0;
}

// Of one job along one path.
static void ray_check(const Scenario *scenario, int path, int *num_listed, Arena *arena) {
    const Scenario *speeds[NUM_NEAR];
    for (int k = 0; k < NUM_NEAR; k++) speeds[k] = changed(scenario, path, k, arena);
    const double limit_s = slowest_s(speeds[0], speeds[NUM_NEAR - 1], arena);
    if (limit_s == 0) return;
    Shortlist *list = shortlist_new(speeds[0], &ONE, limit_s);
    for (int k = 0; k < NUM_NEAR; k++) {
        PlannerOptions listed = ONE;
        listed.shortlist = list;
        const ShortlistPart *part = shortlist_part(speeds[k], &listed);
        const PlannerResult all = case_search(speeds[k], &ONE, arena);
        const PlannerResult some = case_search(speeds[k], &listed, arena);
        CU_ASSERT_STRING_EQUAL(best_key(&all, arena), best_key(&some, arena));
        CU_ASSERT_EQUAL(all.entries[0].estimate.step_time_s, some.entries[0].estimate.step_time_s);
        CU_ASSERT(some.stats.optimal);
        if (part && some.stats.considered == (int64_t)part->num_candidates) ++*num_listed;
    }
    shortlist_free(list);
}

static void a_list_has_the_answers_of_whole_searches(void) {
    int num_listed = 0;
    for (int number = 0; number < case_count_slow(72); number++) {
        Arena arena = {0};
        Scenario scenario;
        if (case_scenario(number, &arena, &scenario).code == STATUS_OK &&
            scenario.cluster.num_gpus == 8) // two nodes; more take long
            ray_check(&scenario, number % NUM_PATHS, &num_listed, &arena);
        arena_free(&arena);
    }
    Arena arena = {0};
    Scenario scenario;
    const Status status =
        case_preset("llama-3.1-8b", "dgx-h100:4", 4096, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    for (int path = 0; path < NUM_PATHS; path++) ray_check(&scenario, path, &num_listed, &arena);
    arena_free(&arena);
    CU_ASSERT(num_listed > 6);
}

// Bounds of slower links are no bounds of faster ones: the search notices and searches all.
static void a_list_that_does_not_hold_is_not_believed(void) {
    Arena arena = {0};
    Scenario scenario;
    const Status status =
        case_preset("llama-3.1-8b", "dgx-h100:4", 4096, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const Scenario *fast = changed(&scenario, 0, 0, &arena);
    const Scenario *slow = changed(&scenario, 0, NUM_SPEEDS - 1, &arena);
    const PlannerResult slow_best = case_search(slow, &ONE, &arena);
    PlannerOptions listed = ONE;
    listed.shortlist = shortlist_new(slow, &ONE, slow_best.entries[0].estimate.step_time_s * 1.01);
    const PlannerResult all = case_search(fast, &ONE, &arena);
    const PlannerResult some = case_search(fast, &listed, &arena);
    CU_ASSERT(all.entries[0].estimate.step_time_s < slow_best.entries[0].estimate.step_time_s);
    CU_ASSERT_STRING_EQUAL(best_key(&all, &arena), best_key(&some, &arena));
    shortlist_free(listed.shortlist);
    arena_free(&arena);
}

// What is not below the limit is no answer, nor that nothing is: more than the limit may be wanted.
static void beyond_its_limit_a_list_says_nothing(void) {
    Arena arena = {0};
    Scenario scenario;
    const Status status =
        case_preset("llama-3.1-8b", "dgx-h100:2", 4096, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const PlannerResult all = case_search(&scenario, &ONE, &arena);
    const double best_s = all.entries[0].estimate.step_time_s;
    PlannerOptions listed = ONE;
    listed.shortlist = shortlist_new(&scenario, &ONE, 0.9 * best_s);
    CU_ASSERT_EQUAL(shortlist_part(&scenario, &listed)->num_candidates, 0);
    CU_ASSERT_EQUAL(case_search(&scenario, &listed, &arena).num_entries, 1);
    listed.worst_value = 2 * best_s;
    CU_ASSERT_EQUAL(case_search(&scenario, &listed, &arena).num_entries, 1);
    listed.worst_value = 0.8 * best_s;
    CU_ASSERT_EQUAL(case_search(&scenario, &listed, &arena).num_entries, 0);
    shortlist_free(listed.shortlist);
    arena_free(&arena);
}

CU_TestInfo shortlist_tests[] = {
    {"no_plan_is_faster_on_slower_links", no_plan_is_faster_on_slower_links},
    {"a_list_has_the_answers_of_whole_searches", a_list_has_the_answers_of_whole_searches},
    {"a_list_that_does_not_hold_is_not_believed", a_list_that_does_not_hold_is_not_believed},
    {"beyond_its_limit_a_list_says_nothing", beyond_its_limit_a_list_says_nothing},
    CU_TEST_INFO_NULL,
};
