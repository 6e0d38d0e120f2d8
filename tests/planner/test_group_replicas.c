// Replicas in groups of different machines, each with a plan and a part of the batch of its own.
#include "planner/groups/group_replicas.h"

#include "config/cluster/cluster_groups.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

static const char JOB[] =
    "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": {\"groups\": ["
    "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 8, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "
    "\"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}}, "
    "{\"gpu\": \"a100-sxm-80g\", \"num_gpus\": %d, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "
    "\"nvlink3\"}, \"scale_out\": {\"nics_per_node\": %d, \"nic_bytes_per_s\": 2.5e10}}], "
    "\"between\": {\"bytes_per_s\": 1.25e10, \"latency_s\": 2e-5}}, \"training\": {\"seq_len\": "
    "2048, \"global_batch\": %d, \"precision\": \"bf16\"}, \"parallel\": {\"micro_batch\": 1}}";

static const PlannerOptions ONE = {.top = 1, .brief = true};

static void job_load(int num_a100, int num_nics, int batch, Arena *arena, Scenario *out) {
    const char *text = arena_printf(arena, JOB, num_a100, num_nics, batch);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, arena, out).code, STATUS_OK);
}

// The best plan of one group for so many sequences; INFINITY: none.
static double group_step_s(const Scenario *scenario, int group, int64_t sequences, Arena *arena) {
    Scenario alone = groups_alone(scenario, &group, 1, arena);
    alone.training.global_batch = sequences;
    PlannerResult found;
    const Status status = planner_search(&alone, &ONE, arena, &found);
    return status.code == STATUS_OK && found.num_entries > 0 ? found.entries[0].estimate.step_time_s
                                                             : INFINITY;
}

// 8 billion gradients in fp32; each of two groups sends half of them twice.
static void gradients_cross_the_link_between_the_groups(void) {
    Arena arena = {0};
    Scenario scenario;
    job_load(8, 4, 32, &arena, &scenario);
    const double bytes = 4 * model_num_parameters(&scenario.model);
    const double latency_s = 2 * (scenario.cluster.pools[0].scale_out.latency_s + 2e-5);
    CU_ASSERT_DOUBLE_EQUAL(replicas_exchange_s(&scenario), bytes / 12.5e9 + latency_s, 1e-9);
    // A NIC of 25 GB/s would do, two groups' worth of it, were it as fast as it says.
    job_load(8, 1, 32, &arena, &scenario);
    const double efficiency = scenario.cluster.pools[1].scale_out.efficiency_frac;
    CU_ASSERT(efficiency > 0.5);
    CU_ASSERT_DOUBLE_EQUAL(replicas_exchange_s(&scenario), bytes / 12.5e9 + latency_s, 1e-9);
    arena_free(&arena);
}

// Against every split of a small batch.
static void no_split_of_the_batch_is_faster(void) {
    for (int num_a100 = 4; num_a100 <= 8; num_a100 += 4) {
        enum { BATCH = 24 };
        Arena arena = {0};
        Scenario scenario;
        ReplicasAnswer answer;
        job_load(num_a100, 4, BATCH, &arena, &scenario);
        const double alone_s[2] = {group_step_s(&scenario, 0, BATCH, &arena),
                                   group_step_s(&scenario, 1, BATCH, &arena)};
        CU_ASSERT_EQUAL_FATAL(group_replicas_find(&scenario, &ONE, alone_s, &arena, &answer).code,
                              STATUS_OK);
        CU_ASSERT_EQUAL_FATAL(answer.num_groups, 2);
        const GroupReplica *h100 = &answer.groups[0], *a100 = &answer.groups[1];
        CU_ASSERT_EQUAL(h100->sequences + a100->sequences, BATCH);
        CU_ASSERT(h100->sequences > a100->sequences);
        double least_s = INFINITY;
        for (int n = 1; n < BATCH; n++)
            least_s = fmin(least_s, fmax(group_step_s(&scenario, 0, n, &arena),
                                         group_step_s(&scenario, 1, BATCH - n, &arena)));
        const double slowest_s = fmax(h100->estimate.step_time_s, a100->estimate.step_time_s);
        CU_ASSERT_EQUAL(slowest_s, least_s);
        CU_ASSERT_EQUAL(answer.step_time_s, slowest_s + answer.exchange_s);
        CU_ASSERT_DOUBLE_EQUAL(answer.tokens_per_s, BATCH * 2048 / answer.step_time_s, 1e-6);
        arena_free(&arena);
    }
}

static void a_group_that_holds_no_plan_has_no_replica(void) {
    Arena arena = {0};
    Scenario scenario;
    ReplicasAnswer answer;
    job_load(8, 4, 32, &arena, &scenario);
    const double alone_s[2] = {1, INFINITY};
    CU_ASSERT_EQUAL(group_replicas_find(&scenario, &ONE, alone_s, &arena, &answer).code, STATUS_OK);
    CU_ASSERT_EQUAL(answer.num_groups, 0);
    cJSON *json = replicas_to_json(&answer, NULL);
    CU_ASSERT_TRUE(cJSON_IsNull(json));
    cJSON_Delete(json);
    arena_free(&arena);
}

CU_TestInfo group_replicas_tests[] = {
    {"gradients_cross_the_link_between_the_groups", gradients_cross_the_link_between_the_groups},
    {"no_split_of_the_batch_is_faster", no_split_of_the_batch_is_faster},
    {"a_group_that_holds_no_plan_has_no_replica", a_group_that_holds_no_plan_has_no_replica},
    CU_TEST_INFO_NULL,
};
