// What a search tells and answers when it is ended early, or wants no more than some value.
#include "planner/harvest/harvest.h"
#include "planner/layerwise/layer_search.h"
#include "planner/planner.h"
#include "tests/planner/group_case.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

enum { NUM_CASES = 90 };

static PlannerResult search(const Scenario *scenario, const PlannerOptions *options, Arena *arena) {
    PlannerResult result = {0};
    CU_ASSERT_EQUAL(planner_search(scenario, options, arena, &result).code, STATUS_OK);
    return result;
}

static bool adds_up(const SearchStats *stats) {
    return stats->considered == stats->pruned_by_memory + stats->pruned_by_bound + stats->priced;
}

static void case_options(int number, const Scenario *scenario, PlannerOptions *out) {
    *out = (PlannerOptions){.top = 1 + number % 6,
                            .objective = (PlanObjective)(number % NUM_OBJECTIVES),
                            .max_memory_bytes = case_memory_bytes(number, scenario),
                            .brief = true};
}

typedef struct {
    SearchStanding standing;
    double last_best, least_bound;
    int num_above, num_rising, num_known;
} Standings;

static void standing_check(void *context, const char *what, int64_t done, int64_t total) {
    Standings *s = context;
    (void)what;
    (void)done;
    (void)total;
    const SearchStanding *now = &s->standing;
    s->num_known += isfinite(now->best_value) && now->bound_value > 0;
    s->num_rising += now->best_value > s->last_best;
    s->last_best = now->best_value;
    s->least_bound = fmin(s->least_bound, now->bound_value);
}

// What is told on the way: the best never rises, and the bound holds for the best plan of all
// while it is not yet priced.
static void the_standing_bounds_what_is_to_come(void) {
    int num_known = 0;
    for (int number = 0; number < case_count(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        PlannerOptions options;
        case_options(number, &scenario, &options);
        Standings s = {.last_best = INFINITY, .least_bound = INFINITY};
        options.standing = &s.standing;
        options.progress = standing_check;
        options.progress_context = &s;
        PlannerResult result = search(&scenario, &options, &arena);
        CU_ASSERT_EQUAL(s.num_rising, 0);
        if (result.num_entries > 0) {
            const double best = objective_value(options.objective, &result.entries[0].estimate);
            if (isfinite(s.least_bound)) CU_ASSERT(s.least_bound <= best * (1 + 1e-9));
            num_known += s.num_known;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_known > 0);
}

static void a_search_that_is_asked_to_end_answers_with_what_it_has(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-8b", "dgx-h100:2", 8192, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult whole = search(&scenario, &(PlannerOptions){.top = 1}, &arena);
    atomic_bool end_soon;
    atomic_init(&end_soon, true);
    PlannerOptions options = {.end_soon = &end_soon, .exhaustive = true};
    PlannerResult first = search(&scenario, &options, &arena);
    CU_ASSERT(first.num_entries >= 1); // that it cannot be without
    options.exhaustive = false;
    PlannerResult result = search(&scenario, &options, &arena);
    CU_ASSERT_TRUE(result.stats.stopped_early && adds_up(&result.stats));
    CU_ASSERT_FALSE(result.stats.optimal);
    CU_ASSERT_EQUAL_FATAL(result.num_entries > 0, true);
    const double best = whole.entries[0].estimate.step_time_s;
    const double found = result.entries[0].estimate.step_time_s;
    CU_ASSERT(best >= found * (1 - result.stats.gap_frac) * (1 - 1e-9));
    arena_free(&arena);
}

// One that need find nothing, as there is an answer already, ends where it stands.
static void an_extra_search_ends_without_an_answer(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-8b", "dgx-h100:2", 8192, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    atomic_bool end_soon;
    atomic_init(&end_soon, true);
    PlannerOptions options = {.end_soon = &end_soon, .extra = true};
    const PlannerResult none = search(&scenario, &options, &arena);
    CU_ASSERT(none.num_entries == 0 && none.stats.priced == 0 && none.stats.stopped_early);
    atomic_store(&end_soon, false);
    const PlannerResult whole = search(&scenario, &options, &arena);
    CU_ASSERT(whole.num_entries > 0 && whole.stats.optimal);
    arena_free(&arena);
}

// Of unlike groups: after the first that is found no configuration is bounded any more, and what
// was not collected is bounded by the peaks of all GPUs.
static void a_group_search_that_is_asked_to_end_bounds_what_it_left_out(void) {
    int num_stopped = 0;
    for (int number = 0; number < case_count(30); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(group_case(number, &arena, &scenario).code, STATUS_OK);
        atomic_bool end_soon;
        atomic_init(&end_soon, true);
        PlannerOptions options = {.top = 1, .brief = true};
        PlannerResult whole;
        if (planner_search(&scenario, &options, &arena, &whole).code != STATUS_OK) {
            arena_free(&arena); // nothing is legal
            continue;
        }
        options.end_soon = &end_soon;
        const PlannerResult first = search(&scenario, &options, &arena);
        CU_ASSERT_EQUAL(first.num_entries, whole.num_entries);
        CU_ASSERT(first.stats.considered <= whole.stats.considered);
        if (first.num_entries > 0 && first.stats.stopped_early) {
            const double best = whole.entries[0].estimate.step_time_s;
            const double found = first.entries[0].estimate.step_time_s;
            CU_ASSERT(best >= found * (1 - first.stats.gap_frac) * (1 - 1e-9));
            CU_ASSERT(estimate_least_step_s(&scenario) < best);
            CU_ASSERT(first.stats.priced < 70); // a round of open_trim
            num_stopped++;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_stopped > 3);
}

// A uniform plan is an answer: no combination is looked at.
static void a_layerwise_search_that_is_asked_to_end_has_the_uniform_plan(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-8b", "dgx-h100:2", 8192, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    atomic_bool end_soon;
    atomic_init(&end_soon, true);
    LayerResult result;
    const PlannerOptions options = {.end_soon = &end_soon};
    CU_ASSERT_EQUAL_FATAL(layer_search(&scenario, &options, &arena, &result).code, STATUS_OK);
    CU_ASSERT(result.stopped_early && result.has_uniform);
    CU_ASSERT(result.num_entries == 1 && result.num_looked_at == 0);
    arena_free(&arena);
}

// All plans that are wanted, and no other; none is an answer that says that some fit.
static void plans_beyond_the_worst_value_are_not_listed(void) {
    for (int number = 0; number < case_count(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        PlannerOptions options;
        case_options(number, &scenario, &options);
        options.top = 8;
        PlannerResult all = search(&scenario, &options, &arena);
        if (all.num_entries > 4) {
            options.worst_value = objective_value(options.objective, &all.entries[3].estimate);
            int wanted = 4;
            while (wanted < all.num_entries &&
                   objective_value(options.objective, &all.entries[wanted].estimate) <=
                       options.worst_value)
                wanted++;
            PlannerResult some = search(&scenario, &options, &arena);
            CU_ASSERT_EQUAL(some.num_entries, wanted);
            CU_ASSERT_TRUE(some.stats.optimal && adds_up(&some.stats));
            CU_ASSERT(some.stats.priced <= all.stats.priced);
            options.worst_value =
                objective_value(options.objective, &all.entries[0].estimate) * (1 - 1e-6);
            PlannerResult none = search(&scenario, &options, &arena);
            CU_ASSERT_EQUAL(none.num_entries, 0);
        }
        arena_free(&arena);
    }
}

CU_TestInfo search_end_tests[] = {
    {"the_standing_bounds_what_is_to_come", the_standing_bounds_what_is_to_come},
    {"a_search_that_is_asked_to_end_answers_with_what_it_has",
     a_search_that_is_asked_to_end_answers_with_what_it_has},
    {"an_extra_search_ends_without_an_answer", an_extra_search_ends_without_an_answer},
    {"a_group_search_that_is_asked_to_end_bounds_what_it_left_out",
     a_group_search_that_is_asked_to_end_bounds_what_it_left_out},
    {"a_layerwise_search_that_is_asked_to_end_has_the_uniform_plan",
     a_layerwise_search_that_is_asked_to_end_has_the_uniform_plan},
    {"plans_beyond_the_worst_value_are_not_listed", plans_beyond_the_worst_value_are_not_listed},
    CU_TEST_INFO_NULL,
};
