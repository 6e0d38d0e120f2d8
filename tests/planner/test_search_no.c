// Answers of the search that are "no", and what they say would help.
#include "planner/questions/idle.h"
#include "planner/why/relax.h"

#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

static void what_misses_is_told_with_what_would_fit(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-70b", "dgx-h100:1", 8192, 64, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult result =
        case_search(&scenario, &(PlannerOptions){.fit_probability_frac = 0.5}, &arena);
    CU_ASSERT_EQUAL(result.num_entries, 0);
    CU_ASSERT_TRUE(case_adds_up(&result.stats));
    CU_ASSERT(result.miss.missing_bytes > 1e9);
    CU_ASSERT_EQUAL(case_num_layers(&result.miss.plan), 80);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result.miss.would_fit_if);
    // 70.6e9 parameters x 18 bytes are 79 GB of the 85 on each of 16, and with half of what is
    // cached, 3 %, and the libraries, 1.5 GB, too much with one layer at a time.
    static const char *const TEXT = "on 24 GPUs, the fewest found in whole nodes (";
    CU_ASSERT_EQUAL(strncmp(result.miss.would_fit_if, TEXT, strlen(TEXT)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(planner_miss_text(&result, &arena), "it would fit on 24 GPUs"));
    arena_free(&arena);
}

// With the bytes that it lacks something fits, with one in 200 of a GPU less nothing does, of all
// configurations and splits. The search itself kept what misses by six times as much.
static void the_closest_miss_is_the_closest(void) {
    Arena arena = {0};
    Scenario scenario, used;
    PlannerResult result;
    Status status = case_preset("llama-3.1-70b", "dgx-a100-80g:2", 8192, 32,
                                "{\"pp\": 8, \"micro_batch\": 2}", &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const PlannerOptions options = {0};
    CU_ASSERT_EQUAL(planner_search_idle(&scenario, &options, &arena, &used, &result).code,
                    STATUS_OK);
    CU_ASSERT(result.num_entries == 0 && result.miss.missing_bytes > 0);
    CU_ASSERT_EQUAL(case_num_layers(&result.miss.plan), 80);
    Scenario larger = planner_limited(&scenario, &options, &arena);
    double *available = &test_pool(&larger.cluster)->gpu.memory_available_bytes;
    double missing_bytes;
    const Workload workload = workload_build(&larger, &result.miss.plan, &arena);
    estimate_memory(&larger, &result.miss.plan, &workload, &missing_bytes);
    CU_ASSERT_DOUBLE_EQUAL(missing_bytes, result.miss.missing_bytes, 1);
    *available += missing_bytes + 1;
    CU_ASSERT_TRUE(relax_reaches(&larger, HARVEST_FIT, 1, &arena, NULL));
    *available -= 1 + 0.005 * used.cluster.pools[0].gpu.memory_available_bytes;
    CU_ASSERT_FALSE(relax_reaches(&larger, HARVEST_FIT, 1, &arena, NULL));
    CU_ASSERT_EQUAL(case_search(&larger, &options, &arena).num_entries, 0);
    // Which kept the bytes that stages of ten layers need without recomputation.
    const PlannerResult kept = case_search(&scenario, &options, &arena);
    CU_ASSERT(kept.miss.missing_bytes > 6 * result.miss.missing_bytes);
    arena_free(&arena);
}

// 24 nodes fit, 12 do not: the smallest number is looked for in between.
static void fewer_nodes_than_twice_are_found(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status =
        case_preset("llama-3.1-405b", "dgx-h100:12", 8192, 512, NULL, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult result =
        case_search(&scenario, &(PlannerOptions){.fit_probability_frac = 0.5}, &arena);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result.miss.would_fit_if);
    CU_ASSERT_STRING_EQUAL(result.miss.would_fit_if,
                           "on 104 GPUs, the fewest found in whole nodes (tp 8 pp 13 dp 1 mb 1 "
                           "zero1 full:9 1f1b)");
    PlannerResult threads = case_search(
        &scenario, &(PlannerOptions){.fit_probability_frac = 0.5, .num_threads = 3}, &arena);
    CU_ASSERT_STRING_EQUAL(threads.miss.would_fit_if, result.miss.would_fit_if);
    arena_free(&arena);
}

// 70.6e9 parameters x 18 bytes are 1.27 TB. Nodes of the four GPUs would do with three; whole nodes
// have eight GPUs, and two of them are needed.
static void a_part_of_a_node_grows_to_the_whole_node(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *cluster = "{\"gpu\": \"h200-sxm-141g\", \"num_gpus\": 4, \"gpus_per_node\": 8, "
                          "\"scale_up\": {\"link\": \"nvlink4\"}, \"scale_out\": "
                          "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 50e9}}";
    const char *training = "{\"seq_len\": 4096, \"global_batch\": 64}";
    Status status = scenario_of(scenario_text(&arena, "\"llama-3.1-70b\"", cluster, training, NULL),
                                &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult result = case_search(&scenario, &(PlannerOptions){0}, &arena);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result.miss.would_fit_if);
    CU_ASSERT_PTR_NOT_NULL(strstr(result.miss.would_fit_if, "on 16 GPUs"));
    arena_free(&arena);
}

static void a_constraint_that_costs_the_fit_is_named(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("llama-3.1-70b", "dgx-h100:4", 8192, 64,
                                "{\"tp\": 8, \"pp\": 1, \"micro_batch\": 1, \"zero_stage\": 0, "
                                "\"recompute\": \"full\"}",
                                &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult result = case_search(&scenario, &(PlannerOptions){0}, &arena);
    CU_ASSERT_EQUAL(result.num_entries, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result.miss.would_fit_if);
    CU_ASSERT_PTR_NOT_NULL(strstr(result.miss.would_fit_if, "instead of zero_stage 0"));
    arena_free(&arena);
}

static const char *would_fit_if(const char *cluster, const char *parallel, Arena *arena) {
    Scenario scenario;
    Status status = case_preset("llama-3.1-70b", cluster, 8192, 64, parallel, arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    PlannerResult result = case_search(&scenario, &(PlannerOptions){0}, arena);
    CU_ASSERT_EQUAL(result.num_entries, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result.miss.would_fit_if);
    return result.miss.would_fit_if;
}

static void some_layers_and_a_larger_zero_group_are_suggested(void) {
    Arena arena = {0};
    const char *text = would_fit_if("dgx-h100:4",
                                    "{\"tp\": 8, \"pp\": 2, \"cp\": 1, \"micro_batch\": 2, "
                                    "\"vpp\": 1, \"zero_stage\": 1, \"recompute\": \"none\"}",
                                    &arena);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "with recompute full of "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " layers a stage instead of recompute none"));
    // 8.8 G parameters a rank: 6 bytes of each, and 12 over the group, are 106 GB of 2, 66 GB of 8.
    text = would_fit_if("dgx-h100:16",
                        "{\"tp\": 4, \"pp\": 2, \"cp\": 1, \"micro_batch\": 1, "
                        "\"zero_stage\": 1, \"zero_group\": 2}",
                        &arena);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "with zero_group 8 instead of zero_group 2"));
    arena_free(&arena);
}

static void an_empty_space_names_its_constraints(void) {
    Arena arena = {0};
    PlannerResult result;
    ASSERT_REFUSED(case_search_gpus(8, 64, "{\"tp\": 3}", &arena, &result),
                   "job.json: parallel.tp: no configuration of 8 GPUs is legal with these "
                   "constraints; there are some without tp 3; expected one of tp 1, 2, 4, 8 "
                   "(tp 3 does not divide num_gpus 8)");
    ASSERT_REFUSED(case_search_gpus(8, 64, "{\"dp\": 3}", &arena, &result),
                   "job.json: parallel.dp: no configuration of 8 GPUs is legal with these "
                   "constraints; there are some without dp 3 (dp 3 does not divide num_gpus 8)");
    ASSERT_REFUSED(case_search_gpus(8, 64, "{\"micro_batch\": 3}", &arena, &result),
                   "job.json: parallel.micro_batch: no configuration of 8 GPUs is legal with these "
                   "constraints; there are some without micro_batch 3 (micro_batch 3 does not "
                   "divide global_batch 64)");
    ASSERT_REFUSED(case_search_gpus(8, 64, "{\"tp\": 4, \"pp\": 4}", &arena, &result),
                   "job.json: parallel.tp: no configuration of 8 GPUs is legal with these "
                   "constraints; there are some without tp 4 or pp 4 (parallel: tp 4 x cp 1 x pp 4 "
                   "= 16 does not divide num_gpus 8; num_gpus 16 would be filled)");
    ASSERT_REFUSED(case_search_gpus(8, 64, "{\"tp\": 3, \"pp\": 3}", &arena, &result),
                   "job.json: parallel.tp: no configuration of 8 GPUs is legal with these "
                   "constraints; there are some without both tp 3 and pp 3 (tp 3 does not divide "
                   "num_gpus 8)");
    // 37 is prime, more than the 34 chunks of 32 layers, and divides neither 64 nor the heads.
    ASSERT_REFUSED(case_search_gpus(37, 64, NULL, &arena, &result),
                   "job.json: cluster.num_gpus: 37 GPUs cannot be filled by any legal tp x cp x dp "
                   "x pp with global_batch 64; 36 could");
    arena_free(&arena);
}

static void what_is_not_supported_yet_is_refused_in_those_words(void) {
    Arena arena = {0};
    PlannerResult result;
    ASSERT_REFUSED(case_search_gpus(8, 64, "{\"schedule\": \"file:order.json\"}", &arena, &result),
                   "job.json: parallel.schedule: file:order.json is an order for one number of "
                   "ranks and micro-batches, which a search has to vary; expected a schedule by "
                   "name, or estimate or simulate");
    ASSERT_REFUSED(case_search_gpus(8, 64, "{\"order\": \"dp-tp-cp-ep-pp\"}", &arena, &result),
                   "job.json: parallel.order: dp-tp-cp-ep-pp is an order that neither Megatron-LM "
                   "nor TorchTitan nor DeepSpeed can number ranks in; expected tp-cp-ep-dp-pp, or "
                   "tp-cp-ep-pp-dp (Megatron-LM's --use-tp-pp-dp-mapping)");
    arena_free(&arena);
}

CU_TestInfo search_no_tests[] = {
    {"what_misses_is_told_with_what_would_fit", what_misses_is_told_with_what_would_fit},
    {"the_closest_miss_is_the_closest", the_closest_miss_is_the_closest},
    {"fewer_nodes_than_twice_are_found", fewer_nodes_than_twice_are_found},
    {"a_part_of_a_node_grows_to_the_whole_node", a_part_of_a_node_grows_to_the_whole_node},
    {"a_constraint_that_costs_the_fit_is_named", a_constraint_that_costs_the_fit_is_named},
    {"some_layers_and_a_larger_zero_group_are_suggested",
     some_layers_and_a_larger_zero_group_are_suggested},
    {"an_empty_space_names_its_constraints", an_empty_space_names_its_constraints},
    {"what_is_not_supported_yet_is_refused_in_those_words",
     what_is_not_supported_yet_is_refused_in_those_words},
    CU_TEST_INFO_NULL,
};
