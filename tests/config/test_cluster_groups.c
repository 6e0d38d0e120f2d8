// Groups of different machines in another order, and some of them without the others.
#include "config/cluster/cluster_groups.h"

#include "config/cluster/node_order.h"
#include "config/job/scenario.h"
#include "config/job/scenario_inputs.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP(gpu, link, num_gpus, per_node)                                                       \
    "{\"gpu\": \"" gpu "\", \"num_gpus\": " num_gpus ", \"gpus_per_node\": " per_node              \
    ", \"scale_up\": {\"link\": \"" link "\"}, \"scale_out\": {\"nics_per_node\": 1, "             \
    "\"nic_bytes_per_s\": 1e10}}"

// Nodes 0 and 1 of eight H100, 2 to 4 of four A100, 5 of eight V100.
static Status three_of(const char *parallel, Arena *arena, Scenario *out) {
    const char *cluster = "{\"groups\": [" GROUP("h100-sxm-80g", "nvlink4", "16", "8") ", " GROUP(
        "a100-sxm-80g", "nvlink3", "12",
        "4") ", " GROUP("v100-sxm2-32g", "nvlink2", "8",
                        "8") "], \"between\": {\"bytes_per_s\": 1e9, \"latency_s\": 1e-5}}";
    const char *training = "{\"seq_len\": 1024, \"global_batch\": 8, \"precision\": \"fp16\"}";
    return scenario_of(scenario_text(arena, "\"llama-3.1-8b\"", cluster, training, parallel), arena,
                       out);
}

// Of a cluster in a file, the GPU files of all its groups are read, and so are inputs.
static void every_group_of_a_file_is_an_input(void) {
    Arena arena = {0};
    char path[] = "/tmp/meshwright-groups-XXXXXX.json";
    const int file = mkstemps(path, 5);
    CU_ASSERT_FATAL(file >= 0);
    dprintf(file,
            "{\"groups\": [%s, %s], \"between\": {\"bytes_per_s\": 1e9, \"latency_s\": 1e-5}}",
            GROUP("h100-sxm-80g", "nvlink4", "8", "8"), GROUP("a100-sxm-80g", "nvlink3", "8", "8"));
    close(file);
    Scenario s;
    const Status status =
        scenario_of(scenario_text(&arena, "\"llama-3.1-8b\"", arena_printf(&arena, "\"%s\"", path),
                                  "{\"seq_len\": 1024, \"global_batch\": 8}", NULL),
                    &arena, &s);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const ScenarioInput *inputs;
    const int num = scenario_inputs(&s, &arena, &inputs);
    int num_found = 0;
    for (int i = 0; i < num; i++)
        num_found += strstr(inputs[i].path, "h100-sxm-80g.json") != NULL ||
                     strstr(inputs[i].path, "a100-sxm-80g.json") != NULL;
    CU_ASSERT_EQUAL(num_found, 2);
    remove(path);
    arena_free(&arena);
}

static void a_placement_of_whole_groups_is_their_order(void) {
    Arena arena = {0};
    Scenario s;
    CU_ASSERT_EQUAL_FATAL(
        three_of("{\"tp\": 4, \"pp\": 9, \"placement\": [2, 3, 4, 5, 0, 1]}", &arena, &s).code,
        STATUS_OK);
    CU_ASSERT_EQUAL(s.cluster.num_gpus, 36);
    CU_ASSERT_EQUAL(s.cluster.num_nodes, 6);
    CU_ASSERT_STRING_EQUAL(s.cluster.pools[0].gpu.name, "a100-sxm-80g");
    CU_ASSERT_EQUAL(s.cluster.pools[0].gpus_per_node, 4);
    CU_ASSERT_STRING_EQUAL(s.cluster.pools[1].gpu.name, "v100-sxm2-32g");
    CU_ASSERT_PTR_NOT_NULL(s.cluster.pools[2].kernels);
    CU_ASSERT_EQUAL(cluster_pool_of_gpu(&s.cluster, 11), 0);
    CU_ASSERT_EQUAL(cluster_pool_of_gpu(&s.cluster, 12), 1);
    CU_ASSERT_EQUAL(cluster_pool_of_gpu(&s.cluster, 20), 2);
    for (int i = 0; i < 3; i++) CU_ASSERT_EQUAL(cluster_pool_number(&s.cluster, i), (i + 1) % 3);
    CU_ASSERT_PTR_NULL(s.cluster.network.order);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s.cluster.network.placed);
    CU_ASSERT_EQUAL(s.cluster.network.placed->node[0], 2);
    CU_ASSERT_EQUAL(s.cluster.network.placed->block[5], 3);
    // Names of GPUs stay in the scenario's order, as a calibration has them.
    CU_ASSERT_STRING_EQUAL(scenario_gpus(&s, &arena),
                           "h100-sxm-80g + a100-sxm-80g + v100-sxm2-32g");
    arena_free(&arena);
}

// Their own order is no other; nodes of a group apart, or turned round, are none of whole groups.
static void any_other_placement_is_not_acted_upon(void) {
    Arena arena = {0};
    Scenario s;
    CU_ASSERT_EQUAL_FATAL(three_of("{\"placement\": [0, 1, 2, 3, 4, 5]}", &arena, &s).code,
                          STATUS_OK);
    CU_ASSERT_PTR_NULL(s.cluster.network.placed);
    CU_ASSERT_EQUAL(scenario_refuse_unsupported(&s).code, STATUS_OK);
    static const char *const APART[] = {"{\"placement\": [0, 2, 3, 4, 1, 5]}",
                                        "{\"placement\": [1, 0, 2, 3, 4, 5]}"};
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(three_of(APART[i], &arena, &s).code, STATUS_OK);
        ASSERT_REFUSED(scenario_refuse_unsupported(&s),
                       "job.json: parallel.placement: legal, but not supported yet on groups of "
                       "different machines but for whole groups in another order");
    }
    arena_free(&arena);
}

// Turned twice they stand as before, and are numbered as before.
static void orders_follow_one_another(void) {
    static const int FIRST[] = {2, 0, 1}, BACK[] = {1, 2, 0};
    Arena arena = {0};
    Scenario s;
    CU_ASSERT_EQUAL_FATAL(three_of(NULL, &arena, &s).code, STATUS_OK);
    const Cluster turned = cluster_with_pools(&s.cluster, FIRST, 3, &arena);
    CU_ASSERT_STRING_EQUAL(turned.pools[0].gpu.name, "v100-sxm2-32g");
    CU_ASSERT_EQUAL(turned.network.placed->node[0], 5);
    CU_ASSERT_EQUAL(cluster_pool_number(&turned, 0), 2);
    const Cluster back = cluster_with_pools(&turned, BACK, 3, &arena);
    CU_ASSERT_PTR_NULL(back.network.placed);
    CU_ASSERT_STRING_EQUAL(back.pools[0].gpu.name, "h100-sxm-80g");
    CU_ASSERT_EQUAL(back.network.sites->num_nodes, 6);
    CU_ASSERT_EQUAL(sites_bytes_per_s(back.network.sites, 0, 2), 1e9);
    arena_free(&arena);
}

static void fewer_groups_are_a_cluster_of_their_own(void) {
    static const int TWO[] = {1, 2}, ONE[] = {1};
    Arena arena = {0};
    Scenario s;
    CU_ASSERT_EQUAL_FATAL(three_of(NULL, &arena, &s).code, STATUS_OK);
    const Cluster two = cluster_with_pools(&s.cluster, TWO, 2, &arena);
    CU_ASSERT_EQUAL(two.num_gpus, 20);
    CU_ASSERT_EQUAL(two.num_pools, 2);
    CU_ASSERT_EQUAL(two.network.sites->num_sites, 2);
    CU_ASSERT_PTR_NULL(two.network.placed);
    const Cluster one = cluster_with_pools(&s.cluster, ONE, 1, &arena);
    CU_ASSERT_EQUAL(one.num_gpus, 12);
    CU_ASSERT_EQUAL(one.num_nodes, 3);
    CU_ASSERT_EQUAL(one.num_pools, 1);
    CU_ASSERT_PTR_NULL(one.network.sites);
    arena_free(&arena);
}

CU_TestInfo cluster_groups_tests[] = {
    {"every_group_of_a_file_is_an_input", every_group_of_a_file_is_an_input},
    {"a_placement_of_whole_groups_is_their_order", a_placement_of_whole_groups_is_their_order},
    {"any_other_placement_is_not_acted_upon", any_other_placement_is_not_acted_upon},
    {"orders_follow_one_another", orders_follow_one_another},
    {"fewer_groups_are_a_cluster_of_their_own", fewer_groups_are_a_cluster_of_their_own},
    CU_TEST_INFO_NULL,
};
