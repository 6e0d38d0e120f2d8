#include "planner/questions/frontier.h"

#include "planner/harvest/harvest.h"
#include "planner/questions/nondominated.h"
#include "planner/space/space.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

enum { NUM_CASES = 45 };

// --- The set of points

static FrontierItem item_at(double time_s, double bytes, double joules) {
    return (FrontierItem){.point = {{time_s, bytes, joules}}};
}

static void what_is_covered_leaves_the_set(void) {
    Nondominated set = {.num_axes = 3};
    const FrontierItem slow = item_at(2, 1, 1), fast = item_at(1, 2, 1), both = item_at(1, 1, 1);
    CU_ASSERT_TRUE(nondominated_add(&set, &slow));
    CU_ASSERT_TRUE(nondominated_add(&set, &fast));
    CU_ASSERT_FALSE(nondominated_add(&set, &fast));
    CU_ASSERT_EQUAL(set.num_items, 2);
    CU_ASSERT_TRUE(nondominated_add(&set, &both));
    CU_ASSERT_EQUAL(set.num_items, 1);
    CU_ASSERT_TRUE(nondominated_covers(&set, &slow.point));
    const FrontierItem frugal = item_at(9, 9, 0.5);
    CU_ASSERT_TRUE(nondominated_add(&set, &frugal)); // by the third axis alone
    nondominated_free(&set);
}

static void axes_beyond_the_number_do_not_count(void) {
    Nondominated set = {.num_axes = 2};
    const FrontierItem first = item_at(1, 1, 5), second = item_at(1, 1, 1);
    CU_ASSERT_TRUE(nondominated_add(&set, &first));
    CU_ASSERT_FALSE(nondominated_add(&set, &second));
    nondominated_free(&set);
}

// 0.9 s and 8 bytes improve on (1, 10) by 10 % and 20 %, on (2, 4) by 55 % and nothing: the least
// of the larger ones is 20 %.
static void the_gap_is_to_the_nearest_item(void) {
    Nondominated set = {.num_axes = 2};
    const FrontierItem a = item_at(1, 10, 0), b = item_at(2, 4, 0);
    nondominated_add(&set, &a);
    nondominated_add(&set, &b);
    CU_ASSERT_DOUBLE_EQUAL(nondominated_gap_frac(&set, &(Point){{0.9, 8}}), 0.2, 1e-12);
    CU_ASSERT_EQUAL(nondominated_gap_frac(&set, &(Point){{3, 5}}), 0);
    nondominated_free(&set);
}

// --- The frontier

typedef struct {
    const Scenario *scenario; // as limited
    const PlannerResult *result;
    Nondominated set; // of the answer
    int64_t num_fitting;
    int num_uncovered, num_beaten;
} Check;

static Point point_of(const Estimate *estimate, bool robust) {
    return (Point){{robust ? estimate->step_time_high_s : estimate->step_time_s,
                    estimate->memory.device_bytes, estimate->joules_per_token}};
}

// Better by more than rounding on one axis, and not worse on the others.
static bool beats(const Point *a, const Point *b, int num_axes) {
    bool better = false;
    for (int k = 0; k < num_axes; k++) {
        if (a->value[k] > b->value[k]) return false;
        better |= a->value[k] < b->value[k] * (1 - 1e-8);
    }
    return better;
}

static bool plans_check(void *context, const SpaceFamily *family) {
    Check *check = context;
    for (int i = 0; i < case_num_plans(family); i++) {
        const Plan plan = case_plan(family, i);
        Arena arena = {0};
        Estimate estimate;
        Status status = estimate_plan(check->scenario, &plan, &arena, &estimate, NULL);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        arena_free(&arena);
        if (!estimate.fits) continue;
        const Point point = point_of(&estimate, check->result->robust);
        check->num_fitting++;
        check->num_uncovered += !nondominated_covers(&check->set, &point);
        for (int k = 0; k < check->set.num_items; k++)
            check->num_beaten += beats(&point, &check->set.items[k].point, check->set.num_axes);
    }
    return true;
}

// Prices everything that fits: each is covered by an entry, none beats an entry.
static Check check_all(const Scenario *limited, const PlannerResult *result) {
    Check check = {.scenario = limited, .result = result, .set = {.num_axes = result->num_axes}};
    for (int i = 0; i < result->num_entries; i++) {
        const FrontierItem item = {.point = point_of(&result->entries[i].estimate, result->robust)};
        CU_ASSERT_TRUE(nondominated_add(&check.set, &item));
    }
    CU_ASSERT_EQUAL(check.set.num_items, result->num_entries);
    Arena arena = {0};
    Space space;
    space_build(limited, &arena, &space);
    for (int split = 0; split < space.num_splits; split++)
        space_visit(&space, split, &arena, plans_check, &check);
    arena_free(&arena);
    return check;
}

static void the_frontier_is_that_of_pricing_everything(void) {
    int num_pruned = 0, num_several = 0, num_of_axes[MAX_AXES + 1] = {0};
    for (int number = 0; number < case_count(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        if (number % 3 == 0)
            test_pool(&scenario.cluster)->gpu.idle_power_watts = 1e5; // waiting costs as much
        const PlannerOptions options = {.max_memory_bytes = case_memory_bytes(number, &scenario),
                                        .robust = number % 4 == 1,
                                        .num_threads = 1 + number % 2,
                                        .brief = true};
        PlannerResult result;
        CU_ASSERT_EQUAL(planner_frontier(&scenario, &options, &arena, &result).code, STATUS_OK);
        num_of_axes[result.num_axes]++;
        const SearchStats *stats = &result.stats;
        CU_ASSERT_EQUAL(stats->considered,
                        stats->pruned_by_memory + stats->pruned_by_bound + stats->priced);
        if (result.num_entries > 0) {
            const Scenario limited = planner_limited(&scenario, &options, &arena);
            Check check = check_all(&limited, &result);
            CU_ASSERT_TRUE(stats->optimal);
            CU_ASSERT_EQUAL(check.num_uncovered, 0);
            CU_ASSERT_EQUAL(check.num_beaten, 0);
            num_pruned += stats->priced < check.num_fitting / 2;
            num_several += result.num_entries > 2;
            nondominated_free(&check.set);
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_pruned > 0);
    CU_ASSERT(num_several > 0);
    CU_ASSERT(num_of_axes[2] > 0 && num_of_axes[3] > 0);
}

static void the_first_is_the_best_of_the_search_and_the_order_is_by_time(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(
        case_preset("llama-3.1-8b", "dgx-h100:2", 4096, 64, NULL, &arena, &scenario).code,
        STATUS_OK);
    PlannerResult best, frontier;
    PlannerOptions options = {.top = 1, .num_threads = 2};
    CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &best).code, STATUS_OK);
    CU_ASSERT_EQUAL(planner_frontier(&scenario, &options, &arena, &frontier).code, STATUS_OK);
    CU_ASSERT_EQUAL(frontier.entries[0].estimate.step_time_s, best.entries[0].estimate.step_time_s);
    CU_ASSERT(frontier.num_entries > 10);
    for (int i = 1; i < frontier.num_entries; i++)
        CU_ASSERT(frontier.entries[i].loses_frac >= frontier.entries[i - 1].loses_frac);
    options.objective = OBJECTIVE_MEMORY;
    CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &best).code, STATUS_OK);
    double least = INFINITY;
    for (int i = 0; i < frontier.num_entries; i++)
        least = fmin(least, frontier.entries[i].estimate.memory.device_bytes);
    CU_ASSERT_EQUAL(least, best.entries[0].estimate.memory.device_bytes);
    arena_free(&arena);
}

static void a_frontier_that_is_ended_says_so(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(
        case_preset("llama-3.1-8b", "dgx-h100:2", 4096, 64, NULL, &arena, &scenario).code,
        STATUS_OK);
    atomic_bool end_soon;
    atomic_init(&end_soon, true);
    const PlannerOptions options = {.end_soon = &end_soon};
    PlannerResult result;
    CU_ASSERT_EQUAL(planner_frontier(&scenario, &options, &arena, &result).code, STATUS_OK);
    CU_ASSERT(result.num_entries >= 1);
    CU_ASSERT_TRUE(result.stats.stopped_early);
    CU_ASSERT_FALSE(result.stats.optimal);
    CU_ASSERT_EQUAL(result.stats.gap_frac, 1);
    arena_free(&arena);
}

static void what_does_not_fit_has_no_frontier(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(
        case_preset("llama-3.1-70b", "dgx-h100:1", 4096, 64, NULL, &arena, &scenario).code,
        STATUS_OK);
    PlannerResult result;
    const PlannerOptions options = {.brief = true};
    CU_ASSERT_EQUAL(planner_frontier(&scenario, &options, &arena, &result).code, STATUS_OK);
    CU_ASSERT_EQUAL(result.num_entries, 0);
    CU_ASSERT(result.miss.missing_bytes > 0);
    arena_free(&arena);
}

CU_TestInfo frontier_tests[] = {
    {"what_is_covered_leaves_the_set", what_is_covered_leaves_the_set},
    {"axes_beyond_the_number_do_not_count", axes_beyond_the_number_do_not_count},
    {"the_gap_is_to_the_nearest_item", the_gap_is_to_the_nearest_item},
    {"the_frontier_is_that_of_pricing_everything", the_frontier_is_that_of_pricing_everything},
    {"the_first_is_the_best_of_the_search_and_the_order_is_by_time",
     the_first_is_the_best_of_the_search_and_the_order_is_by_time},
    {"a_frontier_that_is_ended_says_so", a_frontier_that_is_ended_says_so},
    {"what_does_not_fit_has_no_frontier", what_does_not_fit_has_no_frontier},
    CU_TEST_INFO_NULL,
};
