#include "planner/planner.h"

#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

enum { NUM_CASES = 90 };

static bool same_entries(const PlannerResult *a, const PlannerResult *b, Arena *arena) {
    if (a->num_entries != b->num_entries) return false;
    for (int i = 0; i < a->num_entries; i++) {
        const PlannedEntry *x = &a->entries[i], *y = &b->entries[i];
        if (strcmp(case_key(&x->plan, arena), case_key(&y->plan, arena)) != 0) return false;
        if (x->estimate.step_time_s != y->estimate.step_time_s) return false;
    }
    return true;
}

static void case_options(int number, const Scenario *scenario, PlannerOptions *out) {
    *out = (PlannerOptions){.top = 1 + number % 6,
                            .objective = (PlanObjective)(number % NUM_OBJECTIVES),
                            .max_memory_bytes = case_memory_bytes(number, scenario),
                            .fit_probability_frac = number % 3 ? 0.5 : 0.9,
                            .brief = true};
}

// Where messages between stages cost more than gradients across nodes, stages that alternate are
// best, and no other search says otherwise.
static void the_order_is_that_of_pricing_everything(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *cluster = "{\"gpu\": \"a100-sxm-80g\", \"num_gpus\": 32, \"gpus_per_node\": 8, "
                          "\"scale_up\": {\"link\": \"nvlink3\"}, \"scale_out\": "
                          "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 1e10}}";
    Status status =
        scenario_of(scenario_text(&arena, "\"gpt-neox-20b\"", cluster,
                                  "{\"seq_len\": 4096, \"global_batch\": 256}",
                                  "{\"pp\": 4, \"micro_batch\": 1, \"recompute\": \"none\"}"),
                    &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerOptions options = {.top = 6, .fit_probability_frac = 0.5, .brief = true};
    const PlannerResult found = case_search(&scenario, &options, &arena);
    options.exhaustive = true;
    const PlannerResult all = case_search(&scenario, &options, &arena);
    CU_ASSERT_TRUE(same_entries(&found, &all, &arena));
    CU_ASSERT_EQUAL(found.entries[0].plan.order, ORDER_PP_DP);
    scenario.parallel.order = PLAN_ORDER_NAMES[ORDER_DP_PP];
    const PlannerResult stated = case_search(&scenario, &options, &arena);
    CU_ASSERT(stated.entries[0].estimate.step_time_s > found.entries[0].estimate.step_time_s);
    CU_ASSERT(stated.stats.considered < found.stats.considered);
    arena_free(&arena);
}

static void the_best_are_those_of_pricing_everything(void) {
    int num_pruned = 0, num_fitting = 0, num_some_layers = 0, num_hybrid = 0;
    for (int number = 0; number < case_count(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        Status status = case_scenario(number, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        PlannerOptions options;
        case_options(number, &scenario, &options);
        PlannerResult found = case_search(&scenario, &options, &arena);
        options.exhaustive = true;
        PlannerResult all = case_search(&scenario, &options, &arena);
        CU_ASSERT_TRUE(same_entries(&found, &all, &arena));
        CU_ASSERT_TRUE(case_adds_up(&found.stats) && case_adds_up(&all.stats));
        CU_ASSERT_TRUE(found.stats.optimal && all.stats.optimal);
        CU_ASSERT_EQUAL(found.stats.gap_frac, 0);
        CU_ASSERT_EQUAL(found.stats.considered, all.stats.considered);
        CU_ASSERT_EQUAL(all.stats.pruned_by_bound, 0);
        num_pruned += found.stats.priced < all.stats.priced;
        num_fitting += found.num_entries > 0;
        for (int i = 0; i < found.num_entries; i++) {
            const Plan *plan = &found.entries[i].plan;
            num_some_layers += plan->recompute_layers > 0;
            num_hybrid += plan->zero_stage > 0 && plan->zero_group != plan->dp * plan->cp;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_some_layers > 0 && num_hybrid > 0); // they matter
    CU_ASSERT(num_pruned > case_count(NUM_CASES) / 3);
    CU_ASSERT(num_fitting > case_count(NUM_CASES) / 2);
}

// Never proposed unless stated; then by every plan with a pipeline, and the best of them.
static void a_spread_vocabulary_is_searched_where_it_is_stated(void) {
    int num_spread = 0;
    for (int number = 0; number < case_count(NUM_CASES) / 2; number++) {
        Arena arena = {0};
        Scenario scenario;
        Status status = case_scenario(number, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        PlannerOptions options;
        case_options(number, &scenario, &options);
        PlannerResult unstated = case_search(&scenario, &options, &arena);
        for (int i = 0; i < unstated.num_entries; i++)
            CU_ASSERT_EQUAL(unstated.entries[i].plan.vocab_barriers, 0);
        scenario.parallel.vocab_parallel = 1;
        PlannerResult found = case_search(&scenario, &options, &arena);
        options.exhaustive = true;
        PlannerResult all = case_search(&scenario, &options, &arena);
        CU_ASSERT_TRUE(same_entries(&found, &all, &arena));
        CU_ASSERT_TRUE(case_adds_up(&found.stats) && case_adds_up(&all.stats));
        for (int i = 0; i < found.num_entries; i++) {
            const Plan *plan = &found.entries[i].plan;
            CU_ASSERT_EQUAL(plan->vocab_barriers, plan->pp > 1);
            num_spread += plan->vocab_barriers;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_spread > 0);
}

static void distinct_plans_are_the_best_of_their_variants(void) {
    for (int number = 0; number < case_count(NUM_CASES) / 2; number++) {
        Arena arena = {0};
        Scenario scenario;
        Status status = case_scenario(number, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        PlannerOptions options;
        case_options(number, &scenario, &options);
        options.distinct = true;
        PlannerResult found = case_search(&scenario, &options, &arena);
        options.exhaustive = true;
        PlannerResult all = case_search(&scenario, &options, &arena);
        CU_ASSERT_TRUE(same_entries(&found, &all, &arena));
        for (int i = 0; i < found.num_entries; i++)
            CU_ASSERT_EQUAL(found.entries[i].variant_of, -1);
        arena_free(&arena);
    }
}

static void threads_do_not_change_the_result(void) {
    for (int number = 0; number < case_count(NUM_CASES); number += 5) {
        Arena arena = {0};
        Scenario scenario;
        Status status = case_scenario(number, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        PlannerOptions options;
        case_options(number, &scenario, &options);
        PlannerResult one = case_search(&scenario, &options, &arena);
        options.num_threads = 3;
        PlannerResult three = case_search(&scenario, &options, &arena);
        CU_ASSERT_TRUE(same_entries(&one, &three, &arena));
        CU_ASSERT_EQUAL(one.stats.priced, three.stats.priced);
        CU_ASSERT_EQUAL(one.stats.pruned_by_memory, three.stats.pruned_by_memory);
        CU_ASSERT_EQUAL(one.stats.pruned_by_bound, three.stats.pruned_by_bound);
        arena_free(&arena);
    }
}

static void answers_are_legal_fit_and_are_ordered(void) {
    for (int number = 0; number < case_count(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        Status status = case_scenario(number, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        PlannerOptions options;
        case_options(number, &scenario, &options);
        PlannerResult result = case_search(&scenario, &options, &arena);
        for (int i = 0; i < result.num_entries; i++) {
            const PlannedEntry *entry = &result.entries[i];
            CU_ASSERT_EQUAL(plan_check(&scenario, &entry->plan).code, STATUS_OK);
            CU_ASSERT_TRUE(entry->estimate.fits);
            CU_ASSERT(entry->estimate.memory.device_bytes <= options.max_memory_bytes);
            CU_ASSERT(entry->loses_frac >= (i ? result.entries[i - 1].loses_frac : 0));
            CU_ASSERT_PTR_NOT_NULL(entry->why);
        }
        if (result.num_entries == 0) CU_ASSERT(result.miss.missing_bytes > 0);
        arena_free(&arena);
    }
}

// --- The demo and odd shapes

static void the_demo_is_proven_optimal(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status =
        case_preset("llama-3.1-70b", "dgx-h100:16", 8192, 1024, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult result = case_search(&scenario, &(PlannerOptions){0}, &arena);
    CU_ASSERT_EQUAL(result.num_entries, 5);
    CU_ASSERT_TRUE(result.stats.optimal && case_adds_up(&result.stats));
    CU_ASSERT(result.stats.considered > 10000);
    CU_ASSERT(result.entries[0].estimate.mfu_frac > 0.3);
    CU_ASSERT(result.entries[0].estimate.mfu_frac < 0.7);
    arena_free(&arena);
}

static void layers_that_do_not_divide_are_split(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-405b", "dgx-h100:64", 8192, 512,
                                "{\"pp\": 8, \"tp\": 8}", &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult result = case_search(&scenario, &(PlannerOptions){.top = 3}, &arena);
    CU_ASSERT_EQUAL(result.num_entries, 3);
    for (int i = 0; i < result.num_entries; i++) {
        CU_ASSERT_EQUAL(case_num_layers(&result.entries[i].plan), 126);
        CU_ASSERT_EQUAL(result.entries[i].plan.pp, 8);
        CU_ASSERT_EQUAL(result.entries[i].plan.tp, 8);
    }
    arena_free(&arena);
}

static void any_number_of_gpus_is_searched(void) {
    static const int NUM_GPUS[] = {3, 5, 6, 7, 24, 40, 56, 120};
    for (size_t i = 0; i < sizeof NUM_GPUS / sizeof *NUM_GPUS; i++) {
        Arena arena = {0};
        PlannerResult result = {0};
        Status status = case_search_gpus(NUM_GPUS[i], 840, NULL, &arena, &result);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        CU_ASSERT(result.num_entries > 0);
        arena_free(&arena);
    }
}

// --- Options

static void a_budget_gives_the_best_so_far_and_the_gap(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-8b", "dgx-h100:4", 8192, 128, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult best = case_search(&scenario, &(PlannerOptions){.top = 1}, &arena);
    PlannerOptions options = {.top = 1, .budget_s = 1e-9};
    PlannerResult early = case_search(&scenario, &options, &arena);
    CU_ASSERT_FALSE(early.stats.optimal);
    CU_ASSERT_EQUAL(early.num_entries, 1);
    CU_ASSERT_TRUE(case_adds_up(&early.stats));
    double least = early.entries[0].estimate.step_time_s * (1 - early.stats.gap_frac);
    CU_ASSERT(best.entries[0].estimate.step_time_s >= least * (1 - 1e-9));
    arena_free(&arena);
}

// Pricing all 500,000 configurations takes minutes: the walk itself has to look at the clock.
static void a_budget_holds_in_every_phase(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("mixtral-8x7b", "dgx-h100:32", 4096, 512, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerOptions options = {.top = 5, .budget_s = 1e-9, .exhaustive = true};
    PlannerResult result = case_search(&scenario, &options, &arena);
    CU_ASSERT_TRUE(result.stats.stopped_early && !result.stats.optimal);
    CU_ASSERT_EQUAL(result.stats.wanted, 5);
    CU_ASSERT(result.num_entries >= 1 && result.num_entries < 5);
    CU_ASSERT(result.stats.considered < 100000);
    CU_ASSERT(result.stats.gap_frac > 0 && result.stats.gap_frac <= 1);
    CU_ASSERT_TRUE(case_adds_up(&result.stats));
    arena_free(&arena);
}

static void objectives_choose_what_they_name(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-8b", "dgx-h100:1", 8192, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    Estimate of[NUM_OBJECTIVES];
    for (int o = 0; o < NUM_OBJECTIVES; o++) {
        PlannerOptions options = {.top = 1, .objective = (PlanObjective)o};
        of[o] = case_search(&scenario, &options, &arena).entries[0].estimate;
    }
    for (int o = 0; o < NUM_OBJECTIVES; o++) {
        CU_ASSERT(of[OBJECTIVE_THROUGHPUT].step_time_s <= of[o].step_time_s);
        CU_ASSERT(of[OBJECTIVE_COST].usd_per_1e9_tokens <= of[o].usd_per_1e9_tokens * (1 + 1e-12));
        CU_ASSERT(of[OBJECTIVE_ENERGY].joules_per_token <= of[o].joules_per_token);
        CU_ASSERT(of[OBJECTIVE_MEMORY].memory.device_bytes <= of[o].memory.device_bytes);
    }
    test_pool(&scenario.cluster)->price_usd_per_gpu_hour = 0;
    PlannerResult result;
    ASSERT_REFUSED(
        planner_search(&scenario, &(PlannerOptions){.objective = OBJECTIVE_COST}, &arena, &result),
        "job.json: cluster.price_usd_per_gpu_hour: unknown for h100-sxm-80g; needed for objective "
        "cost");
    arena_free(&arena);
}

static void least_memory_is_listed_without_slower_ties(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-8b", "dgx-h100:4", 8192, 128, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerOptions options = {.objective = OBJECTIVE_MEMORY, .distinct = true};
    PlannerResult result = case_search(&scenario, &options, &arena);
    CU_ASSERT_EQUAL_FATAL(result.num_entries, 5);
    for (int i = 1; i < result.num_entries; i++) {
        const Estimate *before = &result.entries[i - 1].estimate, *e = &result.entries[i].estimate;
        CU_ASSERT(e->memory.device_bytes > before->memory.device_bytes * (1 + 1e-9));
    }
    arena_free(&arena);
}

static void progress_count(void *context, const char *what, int64_t done, int64_t total) {
    (void)what;
    (void)done;
    (void)total;
    ++*(int *)context;
}

static void progress_is_told(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_scenario(3, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    int num_calls = 0;
    PlannerOptions options = {.progress = progress_count, .progress_context = &num_calls};
    case_search(&scenario, &options, &arena);
    CU_ASSERT(num_calls > 0);
    arena_free(&arena);
}

// --- JSON

static double number_at(const cJSON *json, const char *object, const char *key) {
    const cJSON *parent = object ? cJSON_GetObjectItemCaseSensitive(json, object) : json;
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(parent, key));
}

static void the_document_is_the_contracts(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-8b", "dgx-h100:1", 8192, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult result = case_search(&scenario, &(PlannerOptions){.top = 3}, &arena);
    cJSON *json = planner_to_json(&result);
    CU_ASSERT_EQUAL(number_at(json, NULL, "schema"), 1);
    const cJSON *plans = cJSON_GetObjectItemCaseSensitive(json, "plans");
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(plans), 3);
    const cJSON *first = cJSON_GetArrayItem(plans, 0);
    CU_ASSERT_TRUE(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(first, "within_noise_of_best")));
    CU_ASSERT_EQUAL(number_at(first, NULL, "step_time_s"), result.entries[0].estimate.step_time_s);
    CU_ASSERT(number_at(first, "parallel", "dp") >= 1);
    CU_ASSERT_EQUAL(number_at(json, "search", "considered"), (double)result.stats.considered);
    CU_ASSERT_EQUAL(number_at(json, "search", "considered"),
                    number_at(json, "search", "pruned_by_memory") +
                        number_at(json, "search", "pruned_by_bound") +
                        number_at(json, "search", "priced"));
    CU_ASSERT(number_at(json, "timing", "wall_s") > 0);
    CU_ASSERT_PTR_NULL(cJSON_GetObjectItemCaseSensitive(json, "closest_miss"));
    cJSON_Delete(json);
    arena_free(&arena);
}

CU_TestInfo search_tests[] = {
    {"the_order_is_that_of_pricing_everything", the_order_is_that_of_pricing_everything},
    {"the_best_are_those_of_pricing_everything", the_best_are_those_of_pricing_everything},
    {"a_spread_vocabulary_is_searched_where_it_is_stated",
     a_spread_vocabulary_is_searched_where_it_is_stated},
    {"distinct_plans_are_the_best_of_their_variants",
     distinct_plans_are_the_best_of_their_variants},
    {"threads_do_not_change_the_result", threads_do_not_change_the_result},
    {"answers_are_legal_fit_and_are_ordered", answers_are_legal_fit_and_are_ordered},
    {"the_demo_is_proven_optimal", the_demo_is_proven_optimal},
    {"layers_that_do_not_divide_are_split", layers_that_do_not_divide_are_split},
    {"any_number_of_gpus_is_searched", any_number_of_gpus_is_searched},
    {"a_budget_gives_the_best_so_far_and_the_gap", a_budget_gives_the_best_so_far_and_the_gap},
    {"a_budget_holds_in_every_phase", a_budget_holds_in_every_phase},
    {"objectives_choose_what_they_name", objectives_choose_what_they_name},
    {"least_memory_is_listed_without_slower_ties", least_memory_is_listed_without_slower_ties},
    {"progress_is_told", progress_is_told},
    {"the_document_is_the_contracts", the_document_is_the_contracts},
    CU_TEST_INFO_NULL,
};
