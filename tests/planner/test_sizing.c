#include "planner/questions/sizing.h"

#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

// A small model on nodes of two GPUs: 24 sequences can be split in many ways, but not in all.
static Status job_of(int num_gpus, const char *parallel, Arena *arena, Scenario *out) {
    static const char MODEL[] =
        "{\"model_type\": \"generic\", \"hidden_size\": 4096, \"intermediate_size\": 16384, "
        "\"num_hidden_layers\": 5, \"num_attention_heads\": 32, \"vocab_size\": 8000, "
        "\"max_position_embeddings\": 4096}";
    const char *cluster = arena_printf(
        arena,
        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": %d, \"gpus_per_node\": 2, \"scale_up\": "
        "{\"link\": \"nvlink4\", \"domain_gpus\": 2}, \"scale_out\": {\"nics_per_node\": 1, "
        "\"nic_bytes_per_s\": 50e9}}",
        num_gpus);
    return scenario_of(
        scenario_text(arena, MODEL, cluster, "{\"seq_len\": 4096, \"global_batch\": 24}", parallel),
        arena, out);
}

// The best step on each number of nodes up to most, each searched in full.
static void steps_of(int most, double *step_s, bool robust) {
    for (int nodes = 1; nodes <= most; nodes++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(job_of(2 * nodes, NULL, &arena, &scenario).code, STATUS_OK);
        PlannerResult result;
        const PlannerOptions options = {.top = 1, .brief = true, .robust = robust};
        Status status = planner_search(&scenario, &options, &arena, &result);
        step_s[nodes] = INFINITY;
        if (status.code == STATUS_OK && result.num_entries > 0) {
            const Estimate *e = &result.entries[0].estimate;
            step_s[nodes] = robust ? e->step_time_high_s : e->step_time_s;
        }
        arena_free(&arena);
    }
}

static int fewest_of(const double *step_s, int most, double wanted_s) {
    for (int nodes = 1; nodes <= most; nodes++)
        if (step_s[nodes] <= wanted_s) return nodes;
    return 0;
}

static void counts_check(const Sizing *s) {
    CU_ASSERT_EQUAL(s->num_above_peak + s->num_unfillable + s->num_by_bound + s->num_by_search +
                        s->num_open,
                    s->num_gpus / s->node_gpus - 1);
}

// For a step as fast as the best of each number of nodes, and for one a little faster.
static void compare_all(bool robust, Sizing *sum) {
    enum { MOST = 13 };
    double step_s[MOST + 1];
    steps_of(MOST, step_s, robust);
    for (int nodes = 1 + robust; nodes <= MOST; nodes += 1 + 2 * robust) {
        for (int faster = 0; faster < 2 && isfinite(step_s[nodes]); faster++) {
            Arena arena = {0};
            Scenario scenario;
            const double wanted_s = step_s[nodes] * (1 - 1e-4 * faster);
            const int expected = fewest_of(step_s, MOST, wanted_s);
            // From whatever number of GPUs the scenario has.
            CU_ASSERT_EQUAL_FATAL(job_of(2 * (1 + nodes % 4), NULL, &arena, &scenario).code,
                                  STATUS_OK);
            Sizing s;
            const PlannerOptions options = {
                .robust = robust, .num_threads = 1 + nodes % 2, .brief = nodes % 4 < 2};
            CU_ASSERT_EQUAL(planner_size(&scenario, wanted_s, &options, &s).code, STATUS_OK);
            if (expected > 0) {
                CU_ASSERT_EQUAL(s.num_gpus, 2 * expected);
                CU_ASSERT_TRUE(s.is_proven);
                counts_check(&s);
                CU_ASSERT_EQUAL(s.num_open, 0);
            } else {
                CU_ASSERT(s.num_gpus == 0 || s.num_gpus > 2 * MOST);
            }
            sum->num_above_peak += s.num_above_peak;
            sum->num_unfillable += s.num_unfillable;
            sum->num_by_bound += s.num_by_bound;
            sum->num_by_search += s.num_by_search;
            arena_free(&arena);
        }
    }
    // More GPUs are not always faster, or this would be a bisection.
    int num_slower = 0;
    for (int nodes = 2; nodes <= MOST; nodes++) num_slower += step_s[nodes] > step_s[nodes - 1];
    CU_ASSERT(num_slower > 0);
}

static void the_fewest_are_those_of_searching_every_number(void) {
    Sizing sum = {0};
    compare_all(false, &sum);
    compare_all(true, &sum);
    CU_ASSERT(sum.num_unfillable > 0);
    CU_ASSERT(sum.num_by_bound > 0);
    CU_ASSERT(sum.num_by_search > 0);
}

static void no_number_of_gpus_steps_in_no_time(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(job_of(2, "{\"tp\": 2}", &arena, &scenario).code, STATUS_OK);
    Sizing s;
    CU_ASSERT_EQUAL(planner_size(&scenario, 1e-9, &(PlannerOptions){0}, &s).code, STATUS_OK);
    CU_ASSERT_EQUAL(s.num_gpus, 0);
    CU_ASSERT_FALSE(s.is_proven);
    CU_ASSERT(s.num_trials > 5);
    cJSON *json = sizing_to_json(&s);
    CU_ASSERT_TRUE(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(json, "num_gpus")));
    cJSON_Delete(json);
    arena_free(&arena);
}

static void a_look_that_is_ended_says_what_is_open(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(job_of(2, NULL, &arena, &scenario).code, STATUS_OK);
    double step_s[13];
    steps_of(12, step_s, false);
    atomic_bool end_soon;
    atomic_init(&end_soon, true);
    Sizing s;
    const PlannerOptions options = {.end_soon = &end_soon};
    CU_ASSERT_EQUAL(planner_size(&scenario, step_s[12], &options, &s).code, STATUS_OK);
    CU_ASSERT(s.num_gpus > 0); // found by doubling
    CU_ASSERT_FALSE(s.is_proven);
    CU_ASSERT(s.num_open > 0);
    counts_check(&s);
    arena_free(&arena);
}

static void a_cluster_of_one_size_is_refused(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *group =
        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 8, \"gpus_per_node\": 8, \"scale_up\": "
        "{\"link\": "
        "\"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 50e9}}";
    const char *cluster = arena_printf(
        &arena, "{\"groups\": [%s, %s], \"between\": {\"bytes_per_s\": 1e9, \"latency_s\": 1e-4}}",
        group, group);
    CU_ASSERT_EQUAL_FATAL(
        scenario_of(scenario_text(&arena, "\"llama-3.1-8b\"", cluster,
                                  "{\"seq_len\": 4096, \"global_batch\": 64}", NULL),
                    &arena, &scenario)
            .code,
        STATUS_OK);
    Sizing s;
    ASSERT_REFUSED(planner_size(&scenario, 1, &(PlannerOptions){0}, &s),
                   "job.json: cluster: joined groups and measured matrices are of one size; "
                   "expected nodes of one network to ask how many GPUs are needed");
    arena_free(&arena);
}

// 4e6 tokens in steps of 24 x 4096 = 98,304 are 40.7, so 41 steps of 2 s on 4 GPUs: 82 s and
// 328 / 3600 GPU hours; 41 steps are 4,030,464 tokens, at 100 USD per 1e9 and 0.5 J each.
static void a_run_is_of_whole_steps(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(job_of(4, NULL, &arena, &scenario).code, STATUS_OK);
    const Estimate e = {.step_time_s = 2, .usd_per_1e9_tokens = 100, .joules_per_token = 0.5};
    const RunTotals totals = run_totals(&scenario, &e, 4e6);
    CU_ASSERT_EQUAL(totals.num_steps, 41);
    CU_ASSERT_EQUAL(totals.run_s, 82);
    CU_ASSERT_DOUBLE_EQUAL(totals.gpu_hours, 328 / 3600.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(totals.cost_usd, 0.4030464, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(totals.energy_joules, 2015232, 1e-6);
    arena_free(&arena);
}

CU_TestInfo sizing_tests[] = {
    {"the_fewest_are_those_of_searching_every_number",
     the_fewest_are_those_of_searching_every_number},
    {"no_number_of_gpus_steps_in_no_time", no_number_of_gpus_steps_in_no_time},
    {"a_look_that_is_ended_says_what_is_open", a_look_that_is_ended_says_what_is_open},
    {"a_cluster_of_one_size_is_refused", a_cluster_of_one_size_is_refused},
    {"a_run_is_of_whole_steps", a_run_is_of_whole_steps},
    CU_TEST_INFO_NULL,
};
