#include "config/cluster/prices.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>

#define JOB(cluster, prices)                                                                       \
    "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": " cluster ", \"prices\": " prices   \
    ", \"training\": {\"seq_len\": 4096, \"global_batch\": 64}}"
#define OBJECT(more)                                                                               \
    "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 8, \"gpus_per_node\": 8, \"scale_up\": {\"link\": " \
    "\"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}" more "}"

static Cluster cluster_in(const char *text, Arena *arena) {
    Scenario scenario = {0};
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, arena, &scenario).code, STATUS_OK);
    return scenario.cluster;
}

static void a_list_stands_before_the_profile(void) {
    Arena arena = {0};
    Cluster c =
        cluster_in(JOB("\"dgx-h100:2\"",
                       "{\"h100-sxm-80g\": 2.1, \"b200-sxm-180g\": 9, \"source\": \"ours\"}"),
                   &arena);
    CU_ASSERT_EQUAL(c.pools[0].price_usd_per_gpu_hour, 2.1);
    CU_ASSERT_STRING_EQUAL(c.pools[0].price_source, "ours");
    c = cluster_in(JOB("\"dgx-h100:2\"", "{\"b200-sxm-180g\": 9}"), &arena);
    CU_ASSERT_EQUAL(c.pools[0].price_usd_per_gpu_hour, c.pools[0].gpu.price_usd_per_gpu_hour);
    CU_ASSERT_PTR_EQUAL(c.pools[0].price_source, c.pools[0].gpu.price_source);
    arena_free(&arena);
}

static void a_price_may_be_a_text_in_dollars(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL(cluster_in(JOB("\"dgx-h100:2\"", "{\"h100-sxm-80g\": \"$2.10/h\"}"), &arena)
                        .pools[0]
                        .price_usd_per_gpu_hour,
                    2.1);
    ASSERT_REFUSED(
        scenario_of(JOB("\"dgx-h100:2\"", "{\"h100-sxm-80g\": true}"), &arena, &scenario),
        "job.json: prices.h100-sxm-80g: expected a number, found true or false");
    ASSERT_REFUSED(
        scenario_of(JOB("\"dgx-h100:2\"", "{\"H100\": 2}"), &arena, &scenario),
        "job.json: prices.H100: unknown GPU; the nearest known one is \"h100-pcie-80g\"; expected "
        "names as in meshwright clusters, or \"source\"");
    arena_free(&arena);
}

static void a_price_of_the_cluster_stands_before_the_list(void) {
    Arena arena = {0};
    const Cluster c = cluster_in(
        JOB(OBJECT(", \"price_usd_per_gpu_hour\": 3"), "{\"h100-sxm-80g\": 2.1}"), &arena);
    CU_ASSERT_EQUAL(c.pools[0].price_usd_per_gpu_hour, 3);
    CU_ASSERT_STRING_EQUAL(c.pools[0].price_source, "stated by the scenario");
    arena_free(&arena);
}

// The bundled prices are a list's, with its date, or say that they are estimates.
static void every_bundled_price_has_a_source(void) {
    Arena arena = {0};
    Gpu *gpus;
    int num_gpus;
    CU_ASSERT_EQUAL_FATAL(gpu_list(&arena, &gpus, &num_gpus).code, STATUS_OK);
    for (int i = 0; i < num_gpus; i++) CU_ASSERT_PTR_NOT_NULL(gpus[i].price_source);
    arena_free(&arena);
}

CU_TestInfo prices_tests[] = {
    {"a_price_may_be_a_text_in_dollars", a_price_may_be_a_text_in_dollars},
    {"a_list_stands_before_the_profile", a_list_stands_before_the_profile},
    {"a_price_of_the_cluster_stands_before_the_list",
     a_price_of_the_cluster_stands_before_the_list},
    {"every_bundled_price_has_a_source", every_bundled_price_has_a_source},
    CU_TEST_INFO_NULL,
};
