// The search on groups of different machines: against pricing everything, against every split and
// order by hand, and its answers as documents.
#include "planner/groups/group_search.h"

#include "config/cluster/cluster_groups.h"
#include "planner/groups/group_answer.h"
#include "planner/groups/group_orders.h"
#include "planner/space/space.h"
#include "planner/stages/group_configuration.h"
#include "planner/why/relax.h"
#include "tests/planner/group_case.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

enum { NUM_CASES = 36 };

static const double SAME_FRAC = 1e-9; // quick prices and whole estimates

#define H100(num_gpus)                                                                             \
    "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": " num_gpus ", \"gpus_per_node\": 8, \"scale_up\": " \
    "{\"link\": \"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}}"
#define A100(num_gpus)                                                                             \
    "{\"gpu\": \"a100-sxm-80g\", \"num_gpus\": " num_gpus ", \"gpus_per_node\": 8, \"scale_up\": " \
    "{\"link\": \"nvlink3\"}, \"scale_out\": {\"nics_per_node\": 4, \"nic_bytes_per_s\": 2.5e10}}"
#define JOINED(first, second)                                                                      \
    "{\"groups\": [" first ", " second                                                             \
    "], \"between\": {\"bytes_per_s\": 1.25e10, \"latency_s\": 2e-5}}"
#define TRAINING "{\"seq_len\": 4096, \"global_batch\": 64, \"precision\": \"bf16\"}"

static PlannerResult search(const Scenario *scenario, const PlannerOptions *options, Arena *arena) {
    PlannerResult result = {0};
    const Status status = planner_search(scenario, options, arena, &result);
    CU_ASSERT_STRING_EQUAL(status.text, "");
    return result;
}

static bool close_to(double a, double b) {
    return fabs(a - b) <= SAME_FRAC * fabs(b);
}

static bool adds_up(const SearchStats *stats) {
    return stats->considered == stats->pruned_by_memory + stats->pruned_by_bound + stats->priced;
}

// --- Against pricing everything

static void the_best_are_those_of_pricing_every_split(void) {
    int num_pruned = 0, num_found = 0, num_uneven = 0, num_moved = 0;
    int num_proven = 0;
    for (int number = 0; number < case_count_slow(NUM_CASES); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(group_case(number, &arena, &scenario).code, STATUS_OK);
        PlannerResult any;
        if (scenario.cluster.num_pools > 1 &&
            planner_search(&scenario, &(PlannerOptions){.top = 1}, &arena, &any).code ==
                STATUS_OK) {
            PlannerOptions options = {
                .top = 1 + number % 4,
                .max_memory_bytes = group_case_memory_bytes(number, &scenario),
                .fit_probability_frac = 0.5,
                .objective = number % 2 ? OBJECTIVE_COST : OBJECTIVE_THROUGHPUT,
                .brief = true};
            const PlannerResult found = search(&scenario, &options, &arena);
            options.exhaustive = true;
            const PlannerResult all = search(&scenario, &options, &arena);
            CU_ASSERT_TRUE(adds_up(&found.stats) && adds_up(&all.stats));
            CU_ASSERT_EQUAL(found.stats.considered, all.stats.considered);
            CU_ASSERT_EQUAL(all.stats.pruned_by_bound, 0);
            CU_ASSERT_EQUAL_FATAL(found.num_entries, all.num_entries);
            for (int i = 0; i < found.num_entries; i++) {
                const double found_s = found.entries[i].estimate.step_time_s;
                const double least_s = all.entries[i].estimate.step_time_s;
                CU_ASSERT_TRUE(close_to(found_s, least_s) ||
                               (found_s * (1 - found.stats.gap_frac) <= least_s));
                CU_ASSERT_TRUE(close_to(found_s, least_s) || !found.stats.optimal);
                CU_ASSERT_TRUE(found.entries[i].estimate.fits);
                num_moved += found.entries[i].plan.node_order != NULL;
            }
            if (found.num_entries == 0) CU_ASSERT(found.miss.missing_bytes > 0);
            num_pruned += found.stats.priced < all.stats.priced;
            num_found += found.num_entries > 0;
            num_proven += found.num_entries > 0 && found.stats.optimal;
            for (int c = 1; found.num_entries > 0 && c < found.entries[0].plan.num_chunks; c++)
                num_uneven += found.entries[0].plan.chunks[c].num_layers !=
                              found.entries[0].plan.chunks[0].num_layers;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_pruned > case_count_slow(NUM_CASES) / 3);
    CU_ASSERT(num_found > case_count_slow(NUM_CASES) / 3);
    CU_ASSERT(num_proven >= num_found - 1); // of many stages more splits may be left than are tried
    CU_ASSERT(num_uneven > 0 && num_moved > 0);
}

// --- Against every split of every plan, without the search's own parts

typedef struct {
    const Scenario *scenario; // with its groups in one order
    double least_s;
    int num_fitting, num_below_bound;
    GroupPricing *pricing;
} Everything;

static void split_try(Everything *e, const Plan *plan, double bound_s) {
    Arena arena = {0};
    Estimate estimate;
    EstimateParts parts;
    CU_ASSERT_EQUAL(estimate_plan(e->scenario, plan, &arena, &estimate, &parts).code, STATUS_OK);
    e->num_below_bound += estimate.step_time_s < bound_s * (1 - SAME_FRAC);
    bool fits = true;
    for (int r = 0; r < plan->pp; r++)
        fits &= memory_closed_form(e->scenario, plan, &parts.workload, r).counted_bytes <=
                rank_memory_available_bytes(e->scenario, plan, r);
    e->num_fitting += fits;
    if (fits) e->least_s = fmin(e->least_s, estimate.step_time_s);
    arena_free(&arena);
}

// Layers from `from` on over chunks from c on.
static void splits_try(Everything *e, Plan *plan, PlanChunk *chunks, int c, int from,
                       double bound_s) {
    const int num_layers = e->scenario->model.num_layers;
    for (int to = c == plan->pp - 1 ? num_layers : from; to <= num_layers; to++) {
        chunks[c].first_layer = from;
        chunks[c].num_layers = to - from;
        if (c == plan->pp - 1)
            split_try(e, plan, bound_s);
        else
            splits_try(e, plan, chunks, c + 1, to, bound_s);
    }
}

static bool family_try(void *context, const SpaceFamily *family) {
    Everything *e = context;
    for (int i = 0; i < family->num_plans; i++) {
        if (family->plans[i].vpp > 1) continue; // named by the scenario: one chunk a rank
        PlanChunk chunks[16];
        Plan plan = family->plans[i];
        const double bound_s = fmax(group_configuration_mean_s(e->pricing, &plan),
                                    group_configuration_bound_s(e->pricing, &plan, false));
        memcpy(chunks, plan.chunks, (size_t)plan.pp * sizeof *chunks);
        plan.chunks = chunks;
        splits_try(e, &plan, chunks, 0, 0, bound_s);
    }
    return true;
}

static void orders_try(const Scenario *scenario, const PlannerOptions *options, Everything *e) {
    static const int BOTH[][2] = {{0, 1}, {1, 0}};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        const Scenario own = group_limited(scenario, options, BOTH[i], &arena);
        GroupPricing pricing = group_pricing_start(&own);
        Space space;
        e->scenario = &own;
        e->pricing = &pricing;
        space_build(&own, &arena, &space);
        for (int split = 0; split < space.num_splits; split++)
            space_visit(&space, split, &arena, family_try, e);
        group_pricing_free(&pricing);
        arena_free(&arena);
    }
}

// Every order, degree and split, priced by estimate alone; and no price is below its bounds.
static void no_split_of_any_plan_in_any_order_is_faster(void) {
    int num_jobs = 0, num_fitting = 0;
    for (int number = 0; num_jobs < case_count_slow(18); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(group_case(number, &arena, &scenario).code, STATUS_OK);
        if (scenario.cluster.num_pools == 2 && scenario.model.num_layers < 7) {
            scenario.parallel.vpp = 1;
            scenario.parallel.micro_batch = 1;
            const PlannerOptions options = {.top = 1,
                                            .max_memory_bytes =
                                                group_case_memory_bytes(number, &scenario),
                                            .brief = true};
            Everything e = {.least_s = INFINITY};
            orders_try(&scenario, &options, &e);
            CU_ASSERT_EQUAL(e.num_below_bound, 0);
            PlannerResult found = {0};
            const Status status = planner_search(&scenario, &options, &arena, &found);
            if (status.code == STATUS_INVALID) { // stages that its stack cannot have
                CU_ASSERT_EQUAL(e.num_fitting, 0);
                arena_free(&arena);
                continue;
            }
            CU_ASSERT_STRING_EQUAL(status.text, "");
            if (e.num_fitting > 0) {
                CU_ASSERT_EQUAL_FATAL(found.num_entries, 1);
                CU_ASSERT_TRUE(close_to(found.entries[0].estimate.step_time_s, e.least_s));
                num_fitting++;
            } else {
                CU_ASSERT_EQUAL(found.num_entries, 0);
            }
            num_jobs++;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_fitting > num_jobs / 3);
}

// --- Orders

static int num_orders_of(const char *cluster) {
    Arena arena = {0};
    Scenario scenario;
    const int *const *orders;
    const char *text = scenario_text(&arena, "\"llama-3.1-8b\"", cluster, TRAINING, NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    const int num = group_orders(&scenario, &arena, &orders);
    arena_free(&arena);
    return num;
}

// Two alike among three: 3! / 2!. Alike but of another size: they are told apart.
static void groups_that_are_alike_change_no_places(void) {
    CU_ASSERT_EQUAL(num_orders_of(JOINED(H100("16"), A100("16"))), 2);
    CU_ASSERT_EQUAL(num_orders_of(JOINED(H100("16") ", " H100("16"), A100("16"))), 3);
    CU_ASSERT_EQUAL(num_orders_of(JOINED(H100("16") ", " H100("8"), A100("16"))), 6);
    CU_ASSERT_EQUAL(num_orders_of(JOINED(H100("8") ", " H100("16") ", " H100("24") ", " H100(
                                             "32") ", " H100("40") ", " H100("48"),
                                         A100("8"))),
                    0); // 5,040 are too many
}

// --- Answers

static bool joined_search(const char *parallel, PlannerOptions options, Arena *arena,
                          Scenario *scenario, PlannerResult *out) {
    const char *text = scenario_text(arena, "\"llama-3.1-8b\"", JOINED(H100("16"), A100("16")),
                                     TRAINING, parallel);
    Status status = scenario_of(text, arena, scenario);
    if (status.code == STATUS_OK) status = planner_search(scenario, &options, arena, out);
    CU_ASSERT_STRING_EQUAL(status.text, "");
    return status.code == STATUS_OK && out->num_entries > 0;
}

// The document of a plan, read anew, has the same step: groups in another order, sized stages.
static void an_answer_is_a_scenario_with_the_same_step(void) {
    int num_moved = 0;
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        Scenario scenario;
        PlannerResult result;
        const char *parallel = i ? "{\"tp\": 8, \"vpp\": 1}" : "{\"tp\": 4, \"dp\": 2}";
        if (joined_search(parallel, (PlannerOptions){.top = 8}, &arena, &scenario, &result)) {
            for (int k = 0; k < result.num_entries; k++) {
                const PlannedEntry *entry = &result.entries[k];
                cJSON *document = plan_document(&scenario, &entry->plan, NULL);
                char *text = cJSON_PrintUnformatted(document);
                Scenario again;
                Plan plan;
                Estimate estimate;
                Status status = scenario_of(text, &arena, &again);
                if (status.code == STATUS_OK) status = plan_resolve(&again, &arena, &plan);
                if (status.code == STATUS_OK)
                    status = estimate_plan(&again, &plan, &arena, &estimate, NULL);
                CU_ASSERT_STRING_EQUAL(status.text, "");
                CU_ASSERT_EQUAL(estimate.step_time_s, entry->estimate.step_time_s);
                CU_ASSERT_EQUAL(estimate.memory.device_bytes, entry->estimate.memory.device_bytes);
                const Scenario own = group_plan_scenario(&scenario, &entry->plan, &arena);
                CU_ASSERT_STRING_EQUAL(own.cluster.pools[0].gpu.name,
                                       again.cluster.pools[0].gpu.name);
                num_moved += entry->plan.node_order != NULL;
                cJSON_free(text);
                cJSON_Delete(document);
            }
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_moved > 0 && num_moved < 16);
}

// More layers on the faster machines, and shares that add up to the plan.
static void stages_are_sized_by_the_speed_of_their_group(void) {
    Arena arena = {0};
    Scenario scenario;
    PlannerResult result;
    if (joined_search("{\"tp\": 8, \"vpp\": 1}", (PlannerOptions){.top = 1}, &arena, &scenario,
                      &result)) {
        const PlannedEntry *best = &result.entries[0];
        int layers[2] = {0}, first = 0;
        CU_ASSERT_EQUAL_FATAL(best->num_shares, 2);
        for (int i = 0; i < 2; i++) {
            const GroupShare *share = &best->shares[i];
            CU_ASSERT_EQUAL(share->first_stage, first);
            CU_ASSERT_STRING_EQUAL(share->gpu, share->group ? "a100-sxm-80g" : "h100-sxm-80g");
            CU_ASSERT(share->busy_frac > 0.5 && share->busy_frac <= 1);
            CU_ASSERT(share->memory_frac > 0 && share->memory_frac <= 1);
            for (int k = 0; k < share->num_stages; k++) layers[share->group] += share->layers[k];
            first += share->num_stages;
        }
        CU_ASSERT_EQUAL(layers[0] + layers[1], 32);
        CU_ASSERT(layers[0] >= 2 * layers[1]); // 989 and 312 TFLOP/s at their peaks
    }
    arena_free(&arena);
}

// Even stages and fewer groups are never better than what they are set beside says.
static void what_the_groups_are_worth_is_told(void) {
    Arena arena = {0};
    Scenario scenario;
    PlannerResult result;
    const PlannerOptions options = {.top = 1};
    if (joined_search("{\"tp\": 8}", options, &arena, &scenario, &result)) {
        CU_ASSERT_EQUAL(planner_compare_groups(&scenario, &options, &arena, &result).code,
                        STATUS_OK);
        const GroupsAnswer *answer = result.groups;
        const double best_s = result.entries[0].estimate.step_time_s;
        CU_ASSERT_PTR_NOT_NULL_FATAL(answer);
        CU_ASSERT_TRUE(answer->even_fits && answer->even_estimate.step_time_s > best_s);
        CU_ASSERT_EQUAL(answer->num_fewer, 2);
        CU_ASSERT_EQUAL(answer->best_fewer, 0); // the H100
        CU_ASSERT_EQUAL(answer->fewer[0].num_gpus, 16);
        // One group by itself is what a scenario of it alone would be.
        Scenario alone;
        const char *text =
            scenario_text(&arena, "\"llama-3.1-8b\"", H100("16"), TRAINING, "{\"tp\": 8}");
        CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &alone).code, STATUS_OK);
        const PlannerResult own = search(&alone, &options, &arena);
        CU_ASSERT_EQUAL(answer->fewer[0].estimate.step_time_s, own.entries[0].estimate.step_time_s);
        CU_ASSERT_PTR_NOT_NULL(
            strstr(groups_answer_text(&result, &arena), "group 0 (16 x h100-sxm-80g)"));
    }
    arena_free(&arena);
}

// A slow link and a slow group: the faster alone is faster, and the answer says so.
static void a_group_that_is_not_worth_it_is_named(void) {
    Arena arena = {0};
    Scenario scenario;
    PlannerResult result;
    const PlannerOptions options = {.top = 1};
    const char *text = scenario_text(
        &arena, "\"llama-3.1-8b\"",
        "{\"groups\": [" H100("32") ", {\"gpu\": \"v100-sxm2-32g\", \"num_gpus\": 8, "
                                    "\"gpus_per_node\": 8, \"scale_up\": {\"link\": \"nvlink2\"}, "
                                    "\"scale_out\": {\"nics_per_node\": 1, \"nic_bytes_per_s\": "
                                    "1.25e9}}], \"between\": {\"bytes_per_s\": 1e8, \"latency_s\": "
                                    "1e-3}}",
        "{\"seq_len\": 4096, \"global_batch\": 64, \"precision\": \"fp16\"}", NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    result = search(&scenario, &options, &arena);
    CU_ASSERT_EQUAL_FATAL(result.num_entries, 1);
    CU_ASSERT_EQUAL(planner_compare_groups(&scenario, &options, &arena, &result).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(result.groups->best_fewer, 0);
    CU_ASSERT(result.groups->fewer[0].estimate.step_time_s <
              result.entries[0].estimate.step_time_s);
    CU_ASSERT_PTR_NOT_NULL(strstr(groups_answer_text(&result, &arena), "are not worth it"));
    cJSON *json = groups_answer_to_json(&result);
    CU_ASSERT_TRUE(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(json, "all_are_fastest")));
    cJSON_Delete(json);
    arena_free(&arena);
}

// --- Refusals

static void what_is_not_supported_is_refused(void) {
    static const struct {
        PlannerOptions options;
        const char *parallel, *sentence;
    } REFUSED[] = {
        {{.robust = true},
         NULL,
         "job.json: cluster.groups: of different machines are legal, but plan --robust does not "
         "support them yet"},
        {{.objective = OBJECTIVE_ENERGY},
         NULL,
         "job.json: cluster.groups: of different machines are legal, but plan --objective energy "
         "does not support them yet"},
        {{.objective = OBJECTIVE_MEMORY},
         NULL,
         "job.json: cluster.groups: of different machines are legal, but plan --objective memory "
         "does not support them yet"},
        {{0},
         "{\"dp\": 32}",
         "job.json: parallel.dp: no configuration of 32 GPUs is legal with these constraints; "
         "there "
         "are some without dp 32"},
        {{0},
         "{\"placement\": [0, 2, 1, 3]}",
         "job.json: parallel.placement: legal, but not supported yet on groups of different "
         "machines but for whole groups in another order"},
    };
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        Arena arena = {0};
        Scenario scenario;
        PlannerResult result;
        const char *text = scenario_text(&arena, "\"llama-3.1-8b\"", JOINED(H100("16"), A100("16")),
                                         TRAINING, REFUSED[i].parallel);
        Status status = scenario_of(text, &arena, &scenario);
        if (status.code == STATUS_OK)
            status = planner_search(&scenario, &REFUSED[i].options, &arena, &result);
        ASSERT_REFUSED(status, REFUSED[i].sentence);
        arena_free(&arena);
    }
}

// Of 32 layers the A100s of 40 GB hold 6 and the H200s of 141 GB the other 26, in either order of
// the groups: what a rank holds is too much for the first only where the first holds it.
static void a_stage_may_need_the_larger_memory(void) {
    static const char *const GROUPS[2] = {
        "{\"gpu\": \"a100-sxm-40g\", \"num_gpus\": 2, \"gpus_per_node\": 2, \"scale_up\": "
        "{\"link\": "
        "\"nvlink3\"}, \"scale_out\": {\"nics_per_node\": 2, \"nic_bytes_per_s\": 2.5e10}}",
        "{\"gpu\": \"h200-sxm-141g\", \"num_gpus\": 2, \"gpus_per_node\": 2, \"scale_up\": "
        "{\"link\": "
        "\"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 2, \"nic_bytes_per_s\": 5e10}}"};
    for (int first = 0; first < 2; first++) {
        Arena arena = {0};
        Scenario scenario;
        const char *cluster =
            arena_printf(&arena,
                         "{\"groups\": [%s, %s], \"between\": {\"bytes_per_s\": 1e10, "
                         "\"latency_s\": 0}}",
                         GROUPS[first], GROUPS[!first]);
        const char *parallel = arena_printf(
            &arena,
            "{\"tp\": 2, \"dp\": 1, \"pp\": 2, \"micro_batch\": 1, \"recompute\": \"full\", "
            "\"stages\": [{\"layers\": %d, \"embedding\": true}, {\"layers\": %d, "
            "\"loss\": true}]}",
            first ? 26 : 6, first ? 6 : 26);
        const char *text = scenario_text(&arena, "\"llama-3.1-8b\"", cluster, TRAINING, parallel);
        CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
        CU_ASSERT_TRUE(relax_reaches(&scenario, HARVEST_FIT, 1, &arena, NULL));
        // With as much as the smaller have, neither order has room.
        Pool *pools = test_pool(&scenario.cluster);
        for (int i = 0; i < 2; i++)
            pools[i].gpu.memory_available_bytes = pools[first].gpu.memory_available_bytes;
        CU_ASSERT_FALSE(relax_reaches(&scenario, HARVEST_FIT, 1, &arena, NULL));
        arena_free(&arena);
    }
}

// 16 and 9 GPUs share no stage but of one GPU: 25 stages of 4 layers are too many.
static void groups_without_a_common_stage_are_refused(void) {
    Arena arena = {0};
    Scenario scenario;
    PlannerResult result;
    const char *nine = "{\"gpu\": \"a100-sxm-80g\", \"num_gpus\": 9, \"gpus_per_node\": 9, "
                       "\"scale_up\": {\"link\": \"nvlink3\"}, \"scale_out\": {\"nics_per_node\": "
                       "1, \"nic_bytes_per_s\": 2.5e10}}";
    const char *cluster =
        arena_printf(&arena,
                     "{\"groups\": [%s, %s], \"between\": {\"bytes_per_s\": 1e10, "
                     "\"latency_s\": 0}}",
                     H100("16"), nine);
    const char *model = "{\"model_type\": \"generic\", \"hidden_size\": 512, "
                        "\"intermediate_size\": 2048, \"num_hidden_layers\": 4, "
                        "\"num_attention_heads\": 8, \"vocab_size\": 32000}";
    CU_ASSERT_EQUAL_FATAL(
        scenario_of(scenario_text(&arena, model, cluster, TRAINING, NULL), &arena, &scenario).code,
        STATUS_OK);
    ASSERT_REFUSED(planner_search(&scenario, &(PlannerOptions){0}, &arena, &result),
                   "job.json: cluster.groups: no tp x cp x dp divides the GPUs of each group into "
                   "whole pipeline stages, no more than num_hidden_layers 4 + 2, with "
                   "global_batch 64");
    arena_free(&arena);
}

CU_TestInfo group_search_tests[] = {
    {"the_best_are_those_of_pricing_every_split", the_best_are_those_of_pricing_every_split},
    {"no_split_of_any_plan_in_any_order_is_faster", no_split_of_any_plan_in_any_order_is_faster},
    {"groups_that_are_alike_change_no_places", groups_that_are_alike_change_no_places},
    {"an_answer_is_a_scenario_with_the_same_step", an_answer_is_a_scenario_with_the_same_step},
    {"stages_are_sized_by_the_speed_of_their_group", stages_are_sized_by_the_speed_of_their_group},
    {"what_the_groups_are_worth_is_told", what_the_groups_are_worth_is_told},
    {"a_group_that_is_not_worth_it_is_named", a_group_that_is_not_worth_it_is_named},
    {"what_is_not_supported_is_refused", what_is_not_supported_is_refused},
    {"a_stage_may_need_the_larger_memory", a_stage_may_need_the_larger_memory},
    {"groups_without_a_common_stage_are_refused", groups_without_a_common_stage_are_refused},
    CU_TEST_INFO_NULL,
};
