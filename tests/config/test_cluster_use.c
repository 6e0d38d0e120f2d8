// Parts of clusters: which GPUs of which nodes a job has.
#include "config/cluster/cluster.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

// Reads {"cluster": TEXT} of job.json.
static Status cluster_of(const char *text, Arena *arena, Cluster *out) {
    JsonNode root;
    const char *document = arena_printf(arena, "{\"cluster\": %s}", text);
    TRY(json_parse(document, strlen(document), "job.json", arena, &root));
    const JsonNode value = json_get(&root, "cluster");
    return cluster_load(&value, arena, out);
}

// 3 of 8 GPUs: one node, 3 of its 8 NICs.
static void fewer_gpus_than_a_node_are_a_part_of_it(void) {
    Arena arena = {0};
    Cluster c = {0};
    Status status = cluster_of(
        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 3, \"gpus_per_node\": 8, \"scale_up\": "
        "{\"link\": \"nvlink4\", \"domain_gpus\": 8}, \"scale_out\": "
        "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 50e9}}",
        &arena, &c);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(c.num_nodes, 1);
    CU_ASSERT_EQUAL(c.pools[0].gpus_per_node, 3);
    CU_ASSERT_EQUAL(c.pools[0].nics_per_node, 3);
    CU_ASSERT_EQUAL(c.pools[0].domain_gpus, 3);
    Cluster whole = cluster_with_gpus(&c, 16, &arena);
    CU_ASSERT_EQUAL(whole.num_nodes, 2);
    CU_ASSERT_EQUAL(whole.pools[0].gpus_per_node, 8);
    CU_ASSERT_EQUAL(whole.pools[0].nics_per_node, 8);
    CU_ASSERT_EQUAL(whole.pools[0].domain_gpus, 8);
    arena_free(&arena);
}

static Cluster racks_of(int num_gpus, Arena *arena) {
    Cluster c = {0};
    CU_ASSERT_EQUAL_FATAL(cluster_of("\"gb200-nvl72:4\"", arena, &c).code, STATUS_OK);
    return cluster_with_gpus(&c, num_gpus, arena);
}

// 256 of 4 racks of 72: 64 of each, a domain and NICs of 64.
static void racks_are_used_alike(void) {
    Arena arena = {0};
    const Cluster c = racks_of(256, &arena);
    CU_ASSERT(c.num_gpus == 256 && c.idle_gpus == 0 && c.num_nodes == 4);
    CU_ASSERT(c.pools[0].gpus_per_node == 64 && c.pools[0].domain_gpus == 64 &&
              c.pools[0].nics_per_node == 64);
    const Cluster whole = cluster_with_gpus(&c, 288, &arena);
    CU_ASSERT(whole.pools[0].gpus_per_node == 72 && whole.pools[0].domain_gpus == 72 &&
              whole.pools[0].nics_per_node == 72);
    arena_free(&arena);
}

// 100 are no equal part of 13 nodes of 8: 12 whole nodes, 4 idle. 10 are half of each of 2 of 5.
static void what_is_no_equal_part_stays_idle(void) {
    Arena arena = {0};
    Cluster c = {0};
    CU_ASSERT_EQUAL_FATAL(cluster_of("\"dgx-h100:16\"", &arena, &c).code, STATUS_OK);
    const Cluster hundred = cluster_with_gpus(&c, 100, &arena),
                  ten = cluster_with_gpus(&c, 10, &arena);
    CU_ASSERT(hundred.num_gpus == 96 && hundred.idle_gpus == 4 && hundred.num_nodes == 12);
    CU_ASSERT_EQUAL(cluster_total_gpus(&hundred), 100);
    CU_ASSERT(ten.num_gpus == 10 && ten.idle_gpus == 0 && ten.num_nodes == 2);
    CU_ASSERT(ten.pools[0].gpus_per_node == 5 && ten.pools[0].nics_per_node == 5 &&
              ten.pools[0].domain_gpus == 5);
    arena_free(&arena);
}

// Trays of 4 in domains of 72: 256 are 16 trays of each of 4 domains.
static void domains_of_several_nodes_are_used_alike(void) {
    Arena arena = {0};
    Cluster c = {0};
    Status status = cluster_of("{\"gpu\": \"gb200-186g\", \"num_gpus\": 256, \"gpus_per_node\": 4, "
                               "\"scale_up\": {\"link\": \"nvlink5\", \"domain_gpus\": 72}, "
                               "\"scale_out\": {\"nics_per_node\": 4, \"nic_bytes_per_s\": 50e9}}",
                               &arena, &c);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT(c.num_nodes == 64 && c.pools[0].gpus_per_node == 4 && c.pools[0].domain_gpus == 64);
    CU_ASSERT_EQUAL(cluster_with_gpus(&c, 144, &arena).pools[0].domain_gpus, 72);
    arena_free(&arena);
}

// Each number that can be used is the same in each of the fewest nodes; of a rack whole trays.
static void uses_are_equal_parts_of_the_fewest_nodes(void) {
    Arena arena = {0};
    const Cluster racks = racks_of(288, &arena);
    Cluster c;
    for (int n = 1; n <= 288; n++) {
        if (!cluster_use(&racks, n, &arena, &c)) continue;
        CU_ASSERT(c.num_gpus == n && cluster_total_gpus(&c) == 288 && c.num_nodes <= 4);
        CU_ASSERT(c.num_nodes * c.pools[0].gpus_per_node == n &&
                  c.pools[0].domain_gpus == c.pools[0].gpus_per_node);
        CU_ASSERT(c.pools[0].gpus_per_node % 4 == 0);
        CU_ASSERT(c.num_nodes == 1 || (c.num_nodes - 1) * 72 < n || n % (c.num_nodes - 1) != 0 ||
                  n / (c.num_nodes - 1) % 4 != 0 || n / (c.num_nodes - 1) > 72);
    }
    CU_ASSERT(cluster_use(&racks, 192, &arena, &c) && c.num_nodes == 3 &&
              c.pools[0].gpus_per_node == 64);
    CU_ASSERT_FALSE(cluster_use(&racks, 287, &arena, &c));
    CU_ASSERT_FALSE(cluster_use(&racks, 289, &arena, &c));
    arena_free(&arena);
}

CU_TestInfo cluster_use_tests[] = {
    {"fewer_gpus_than_a_node_are_a_part_of_it", fewer_gpus_than_a_node_are_a_part_of_it},
    {"racks_are_used_alike", racks_are_used_alike},
    {"what_is_no_equal_part_stays_idle", what_is_no_equal_part_stays_idle},
    {"domains_of_several_nodes_are_used_alike", domains_of_several_nodes_are_used_alike},
    {"uses_are_equal_parts_of_the_fewest_nodes", uses_are_equal_parts_of_the_fewest_nodes},
    CU_TEST_INFO_NULL,
};
