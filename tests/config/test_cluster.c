#include "base/data_dir.h"
#include "config/cluster/cluster.h"
#include "config/kernels/kernels.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UP "\"scale_up\": {\"link\": \"nvlink4\", \"domain_gpus\": 8}"
#define OUT "\"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 50e9}"
#define GPU "\"gpu\": \"h100-sxm-80g\""

// Reads {"cluster": TEXT} of job.json.
static Status cluster_of(const char *text, Arena *arena, Cluster *out) {
    JsonNode root;
    const char *document = arena_printf(arena, "{\"cluster\": %s}", text);
    TRY(json_parse(document, strlen(document), "job.json", arena, &root));
    JsonNode value = json_get(&root, "cluster");
    return cluster_load(&value, arena, out);
}

static void is_refused(const char *text, const char *sentence) {
    Arena arena = {0};
    Cluster cluster;
    ASSERT_REFUSED(cluster_of(text, &arena, &cluster),
                   arena_printf(&arena, "job.json: cluster%s", sentence));
    arena_free(&arena);
}

static void preset_with_nodes_is_its_numbers(void) {
    Arena arena = {0};
    Cluster c = {0};
    CU_ASSERT_EQUAL_FATAL(cluster_of("\"dgx-h100:16\"", &arena, &c).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(c.name, "dgx-h100");
    CU_ASSERT_STRING_EQUAL(c.pools[0].gpu.name, "h100-sxm-80g");
    CU_ASSERT_EQUAL(c.num_gpus, 128);
    CU_ASSERT_EQUAL(c.num_nodes, 16);
    CU_ASSERT_EQUAL(c.pools[0].gpus_per_node, 8);
    CU_ASSERT_EQUAL(c.pools[0].domain_gpus, 8);
    CU_ASSERT_EQUAL(c.pools[0].nics_per_node, 8);
    CU_ASSERT_EQUAL(c.pools[0].nic_bytes_per_s, 50e9);
    CU_ASSERT_EQUAL(c.pools[0].scale_out.bandwidth_bytes_per_s, 50e9);
    CU_ASSERT_EQUAL(c.pools[0].topology, TOPOLOGY_RAIL_FAT_TREE);
    CU_ASSERT_EQUAL(c.pools[0].price_usd_per_gpu_hour, c.pools[0].gpu.price_usd_per_gpu_hour);
    CU_ASSERT_EQUAL(c.pools[0].power_watts_per_gpu, c.pools[0].gpu.power_watts);
    CU_ASSERT(!c.network.sites && c.num_pools == 1);
    arena_free(&arena);
}

static void object_equals_its_preset(void) {
    Arena arena = {0};
    Cluster a = {0}, b = {0};
    CU_ASSERT_EQUAL_FATAL(cluster_of("\"dgx-h100:2\"", &arena, &a).code, STATUS_OK);
    Status status = cluster_of("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP ", " OUT "}",
                               &arena, &b);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(b.name, "custom");
    CU_ASSERT_EQUAL(a.num_nodes, b.num_nodes);
    CU_ASSERT_EQUAL(a.pools[0].domain_gpus, b.pools[0].domain_gpus);
    CU_ASSERT_EQUAL(a.pools[0].topology, b.pools[0].topology);
    CU_ASSERT_EQUAL(a.pools[0].oversubscription, b.pools[0].oversubscription);
    CU_ASSERT_EQUAL(a.pools[0].scale_up.efficiency_frac, b.pools[0].scale_up.efficiency_frac);
    arena_free(&arena);
}

static void overrides_replace_the_profile(void) {
    Arena arena = {0};
    Cluster c = {0};
    Status status = cluster_of("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP ", " OUT
                               ", \"price_usd_per_gpu_hour\": 0, \"power_watts_per_gpu\": 500}",
                               &arena, &c);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(c.pools[0].price_usd_per_gpu_hour, 0);
    CU_ASSERT_EQUAL(c.pools[0].power_watts_per_gpu, 500);
    arena_free(&arena);
}

static void domain_may_span_nodes(void) {
    Arena arena = {0};
    Cluster c = {0};
    Status status =
        cluster_of("{\"gpu\": \"gb200-186g\", \"num_gpus\": 144, \"gpus_per_node\": 4, "
                   "\"scale_up\": {\"link\": "
                   "\"nvlink5\", \"domain_gpus\": 72}, \"scale_out\": {\"nics_per_node\": 4, "
                   "\"nic_bytes_per_s\": 50e9}}",
                   &arena, &c);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(c.num_nodes, 36);
    CU_ASSERT_EQUAL(c.pools[0].domain_gpus, 72);
    arena_free(&arena);
}

static void another_size_changes_only_the_size(void) {
    Arena arena = {0};
    Cluster c = {0};
    CU_ASSERT_EQUAL_FATAL(cluster_of("\"dgx-h100:4\"", &arena, &c).code, STATUS_OK);
    Cluster twice = cluster_with_gpus(&c, 64, &arena), same = cluster_with_gpus(&twice, 32, &arena);
    CU_ASSERT_EQUAL(twice.num_nodes, 8);
    CU_ASSERT_EQUAL(twice.pools[0].nics_per_node, 8);
    CU_ASSERT_EQUAL(same.num_nodes, c.num_nodes);
    CU_ASSERT_EQUAL(same.pools[0].domain_gpus, c.pools[0].domain_gpus);
    arena_free(&arena);
}

static void bad_presets_are_refused(void) {
    is_refused("\"dgx-h300:2\"",
               ": unknown cluster \"dgx-h300\"; the nearest known one is \"dgx-b300\"");
    is_refused("\"dgx-h100:0\"", ": \"dgx-h100:0\": expected PRESET:NODES with 1 or more nodes");
    is_refused("\"dgx-h100:1.5\"",
               ": \"dgx-h100:1.5\": expected PRESET:NODES with 1 or more nodes; "
               "part of a node is left idle by parallel.idle_gpus");
    is_refused("\"dgx-h100:2x\"", ": \"dgx-h100:2x\": expected PRESET:NODES with 1 or more nodes");
    is_refused(
        "\"dgx-h100:4000000\"",
        ": \"dgx-h100:4000000\": 4000000 nodes of 8 GPUs are more than 4194304 GPUs; expected "
        "at most 524288 nodes");
    is_refused("\"dgx-h100:100000000\"",
               ": \"dgx-h100:100000000\": 100000000 nodes of 8 GPUs are more than 4194304 GPUs; "
               "expected at most 524288 nodes");
    is_refused("\"../gpus/h100-sxm-80g:1\"",
               ": unknown cluster \"../gpus/h100-sxm-80g\"; known are a100-pcie-node, aws-p4d, "
               "aws-p4de, aws-p5, aws-p5en, aws-p6-b200, dgx-1-v100, dgx-a100-40g, dgx-a100-80g, "
               "dgx-b200, dgx-b300, dgx-h100, dgx-h200, dgx2-v100, gb200-nvl72, gb300-nvl72, "
               "grand-teton-h100, h100-pcie-node, hgx-a800, hgx-h20, hgx-h800, hgx-mi300x, "
               "hgx-mi325x, hgx-mi355x, l40s-node, mi250x-node, rtx4090-node");
    is_refused("[]", ": expected an object, found a list");
}

static void bad_objects_are_refused(void) {
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 3, \"scale_up\": {\"link\": "
               "\"nvlink4\"}, " OUT ", \"bandwidth_matrix\": \"b.csv\"}",
               ".num_gpus: 16 is not a multiple of gpus_per_node 3, as it has to be beside a "
               "bandwidth_matrix");
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "
               "\"nvlink4\", \"domain_gpus\": 6}, " OUT "}",
               ".scale_up.domain_gpus: 6 neither divides gpus_per_node 8 nor is a multiple of it");
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "
               "\"nvlink9\"}, " OUT "}",
               ".scale_up.link: unknown link \"nvlink9\"; the nearest known one is \"nvlink2\"");
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "
               "\"rdma\"}, " OUT "}",
               ".scale_up.link: \"rdma\" is not a link between GPUs");
    is_refused("{" GPU ", \"gpus_per_node\": 8, " UP ", " OUT "}", ".num_gpus: missing");
    is_refused("{" GPU ", \"num_gpu\": 16, \"gpus_per_node\": 8, " UP ", " OUT "}",
               ".num_gpu: unknown key; the nearest known one is \"num_gpus\"");
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP ", \"scale_out\": "
               "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 400}}",
               ".scale_out.nic_bytes_per_s: 400 is out of range; expected 1000000 to "
               "10000000000000 bytes per second, as in 50e9 or \"400Gb/s\"");
    is_refused(
        "{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP ", \"scale_out\": "
        "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10, \"topology\": \"torus\"}}",
        ".scale_out.topology: \"torus\" is unknown; expected one of rail-fat-tree, fat-tree, "
        "rail-only, dragonfly");
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP ", " OUT
               ", \"name\": \"mine\"}",
               ".name: unknown key; known are gpu, num_gpus, gpus_per_node, scale_up, scale_out, "
               "price_usd_per_gpu_hour, power_watts_per_gpu, groups, between, bandwidth_matrix");
}

#define GROUP "{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP ", " OUT "}"
#define BETWEEN "\"between\": {\"bytes_per_s\": 1.25e9, \"latency_s\": 2e-5}"

static void groups_of_one_machine_are_sites(void) {
    Arena arena = {0};
    Cluster c = {0};
    Status status = cluster_of("{\"groups\": [" GROUP ", {" GPU ", \"num_gpus\": 24, "
                               "\"gpus_per_node\": 8, " UP ", " OUT "}], " BETWEEN "}",
                               &arena, &c);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT(c.num_gpus == 40 && c.num_nodes == 5 && c.num_pools == 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.network.sites);
    CU_ASSERT(c.network.sites->kind == SITE_GROUP && c.network.sites->num_sites == 2);
    CU_ASSERT(c.network.sites->num_nodes_of[0] == 2 && c.network.sites->num_nodes_of[1] == 3);
    CU_ASSERT(c.network.sites->site_of_node[1] == 0 && c.network.sites->site_of_node[2] == 1);
    CU_ASSERT_EQUAL(sites_bytes_per_s(c.network.sites, 1, 0), 1.25e9);
    CU_ASSERT_EQUAL(c.network.sites->latency_s, 2e-5);
    CU_ASSERT_PTR_NULL(cluster_with_gpus(&c, 48, &arena).network.sites);
    CU_ASSERT_PTR_NOT_NULL(cluster_with_gpus(&c, 32, &arena).network.sites);
    status = cluster_of("{\"groups\": [" GROUP "], \"num_gpus\": 16}", &arena, &c);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT(c.num_gpus == 16 && !c.network.sites);
    arena_free(&arena);
}

// 2 nodes of 8 GPUs, then 6 of 4.
static void groups_of_other_machines_keep_their_own(void) {
    Arena arena = {0};
    Cluster c = {0};
    Status status = cluster_of("{\"groups\": [" GROUP ", {\"gpu\": \"a100-sxm-80g\", "
                               "\"num_gpus\": 24, \"gpus_per_node\": 4, \"scale_up\": "
                               "{\"link\": \"nvlink3\"}, \"scale_out\": {\"nics_per_node\": 2, "
                               "\"nic_bytes_per_s\": 2.5e10}}], " BETWEEN "}",
                               &arena, &c);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(c.num_pools, 2);
    CU_ASSERT(c.num_gpus == 40 && c.num_nodes == 8);
    CU_ASSERT_STRING_EQUAL(c.pools[0].gpu.name, "h100-sxm-80g");
    CU_ASSERT_STRING_EQUAL(c.pools[1].gpu.name, "a100-sxm-80g");
    CU_ASSERT_EQUAL(c.pools[1].nic_bytes_per_s, 2.5e10);
    CU_ASSERT(cluster_pool_of_gpu(&c, 15) == 0 && cluster_pool_of_gpu(&c, 16) == 1);
    CU_ASSERT_EQUAL(cluster_pool_of_gpu(&c, 39), 1);
    CU_ASSERT(cluster_pool_first_gpu(&c, 1) == 16 && cluster_pool_first_node(&c, 1) == 2);
    CU_ASSERT(cluster_pool_of_node(&c, 1) == 0 && cluster_pool_of_node(&c, 2) == 1);
    CU_ASSERT_EQUAL(sites_bytes_per_s(c.network.sites, 0, 1), 1.25e9);
    arena_free(&arena);
}

// 100 GPUs in nodes of 8 are 12 whole nodes and 4 GPUs that stay idle, of each group: all are paid
// for, whether the groups are of one machine or not.
static void idle_gpus_of_all_groups_count(void) {
    static const char *const SECOND[] = {"h100-sxm-80g", "h200-sxm-141g"};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        Cluster c = {0};
        const char *group =
            "{\"gpu\": \"%s\", \"num_gpus\": %d, \"gpus_per_node\": 8, " UP ", " OUT "}";
        const char *first = arena_printf(&arena, group, "h100-sxm-80g", 100);
        const char *second = arena_printf(&arena, group, SECOND[i], 20);
        Status status = cluster_of(
            arena_printf(&arena, "{\"groups\": [%s, %s], " BETWEEN "}", first, second), &arena, &c);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        CU_ASSERT_EQUAL(c.num_pools, 1 + i);
        CU_ASSERT_EQUAL(c.num_gpus, 96 + 16);
        CU_ASSERT_EQUAL(c.idle_gpus, 4 + 4);
        CU_ASSERT_EQUAL(cluster_total_gpus(&c), 120);
        arena_free(&arena);
    }
}

#define PCIE(keys)                                                                                 \
    "{\"gpu\": \"l40s-48g\", \"num_gpus\": 16, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "    \
    "\"pcie4\", " keys "}, \"scale_out\": {\"nics_per_node\": 2, \"nic_bytes_per_s\": 1e10}}"

static void trees_of_switches_divide_a_node(void) {
    Arena arena = {0};
    Cluster c = {0};
    Status status = cluster_of(PCIE("\"gpus_per_switch\": 2, \"sockets\": 2, "
                                    "\"socket_bytes_per_s\": 2e10"),
                               &arena, &c);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.pools[0].wires);
    CU_ASSERT(c.pools[0].wires->num_switches == 4 && c.pools[0].wires->num_gpus == 8);
    CU_ASSERT_EQUAL(cluster_with_gpus(&c, 4, &arena).pools[0].wires->num_switches, 2);
    arena_free(&arena);
    is_refused(PCIE("\"gpus_per_switch\": 3"),
               ".scale_up.gpus_per_switch: 3 does not divide gpus_per_node 8 into as many switches "
               "for each of 1 sockets");
    is_refused(PCIE("\"gpus_per_switch\": 4, \"sockets\": 2"),
               ".scale_up.socket_bytes_per_s: missing; of several sockets");
    is_refused(PCIE("\"gpus_per_switch\": 4, \"socket_bytes_per_s\": 2e10"),
               ".scale_up.sockets: missing or 1; socket_bytes_per_s joins 2 or more");
    is_refused(PCIE("\"sockets\": 2"),
               ".scale_up.gpus_per_switch: missing; sockets and socket_bytes_per_s go with it");
    is_refused(PCIE("\"domain_gpus\": 4, \"gpus_per_switch\": 4"),
               ".scale_up.gpus_per_switch: with domain_gpus 4; expected domains of whole nodes of "
               "at most 16 GPUs");
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "
               "\"nvlink4\", \"gpus_per_switch\": 4}, " OUT "}",
               ".scale_up.gpus_per_switch: nvlink4 has no switches of PCIe");
}

static void rails_that_nothing_joins_are_refused(void) {
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, \"scale_up\": {\"link\": "
               "\"nvlink4\", \"domain_gpus\": 4}, \"scale_out\": {\"nics_per_node\": 8, "
               "\"nic_bytes_per_s\": 5e10, \"topology\": \"rail-only\"}}",
               ".scale_out.topology: rail-only does not join the 2 scale-up domains of a node; "
               "expected domain_gpus of at least gpus_per_node 8, or another topology");
}

static void bad_groups_are_refused(void) {
    is_refused("{\"groups\": [" GROUP ", " GROUP "]}",
               ".between: missing; expected {\"bytes_per_s\": ..., \"latency_s\": ...}");
    is_refused("{\"groups\": [], " BETWEEN "}", ".groups: 0 groups; expected 1 to 64");
    is_refused("{\"groups\": [" GROUP ", " GROUP "], " BETWEEN ", \"num_gpus\": 16}",
               ".num_gpus: 16 is not the groups' sum 32");
    is_refused("{\"groups\": [" GROUP ", {" GPU "}], " BETWEEN "}", ".groups[1].num_gpus: missing");
    is_refused("{\"groups\": [{\"groups\": [" GROUP "]}]}",
               ".groups[0].groups: groups cannot hold groups");
    is_refused("{\"groups\": [" GROUP "], " GPU "}", ".gpu: belongs into each of the groups");
    is_refused("{\"groups\": [" GROUP "], \"bandwidth_matrix\": \"m.csv\"}",
               ".bandwidth_matrix: belongs into each of the groups");
    is_refused("{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP ", " OUT ", " BETWEEN "}",
               ".between: there are no groups");
    is_refused("{\"groups\": [{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP ", " OUT
               ", \"bandwidth_matrix\": \"m.csv\"}]}",
               ".groups[0].bandwidth_matrix: of a group is legal, but not supported yet");
    is_refused("{\"groups\": [{" GPU ", \"num_gpus\": 24, \"gpus_per_node\": 8, \"scale_up\": "
               "{\"link\": \"nvlink4\", \"domain_gpus\": 16}, " OUT "}]}",
               ".groups[0].num_gpus: 24 is not a multiple of domain_gpus 16, as it has to be of "
               "groups");
}

// Writes text to a new file.
static const char *matrix_file(Arena *arena, const char *text) {
    char path[] = "/tmp/meshwright-matrix-XXXXXX";
    int descriptor = mkstemp(path);
    CU_ASSERT_FATAL(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    return arena_strdup(arena, path);
}

static void matrix_is(const char *text, const char *sentence) {
    Arena arena = {0};
    Cluster c = {0};
    const char *path = matrix_file(&arena, text);
    Status status = cluster_of(arena_printf(&arena,
                                            "{" GPU ", \"num_gpus\": 16, \"gpus_per_node\": 8, " UP
                                            ", " OUT ", \"bandwidth_matrix\": \"%s\"}",
                                            path),
                               &arena, &c);
    if (!sentence) {
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        CU_ASSERT_FATAL(c.network.sites && c.network.sites->kind == SITE_NODE &&
                        c.network.sites->num_sites == 2);
        CU_ASSERT_EQUAL(sites_bytes_per_s(c.network.sites, 0, 1), 2e10);
        CU_ASSERT_EQUAL(sites_bytes_per_s(c.network.sites, 1, 0), 3e10);
    } else {
        ASSERT_REFUSED(status, arena_printf(&arena, "job.json: cluster.bandwidth_matrix: %s%s",
                                            path, sentence));
    }
    unlink(path);
    arena_free(&arena);
}

#define NUMBER_EXPECTED "; expected bytes/s (text stands in lines that begin with #)"

static void matrix_is_read_and_checked(void) {
    matrix_is("# bytes/s\n1e9, 2e10\n3e10,1e9\n\n", NULL);
    matrix_is("0, 2e10\n3e10, inf\n", NULL);
    matrix_is("1e9,2e10\n", ": found 1 rows, expected one for each of 2 nodes");
    matrix_is("1e9,2e10\n1e9,2e10\n1e9,2e10\n",
              ": found more than 2 rows, expected one for each of 2 nodes");
    matrix_is("1e9,2e10\n2e10\n", " line 2: found 1 numbers, expected one for each of 2 nodes");
    matrix_is("1e9, fast \n", " line 1: number 2 is \"fast\"" NUMBER_EXPECTED);
    matrix_is("1e9,\n", " line 1: number 2 is \"\"" NUMBER_EXPECTED);
    matrix_is("1e9,2 e10\n", " line 1: number 2 is \"2 e10\"" NUMBER_EXPECTED);
    matrix_is("node 0,node 1\n1,1\n", " line 1: number 1 is \"node 0\"" NUMBER_EXPECTED);
    matrix_is("1e9,-2e10\n", " line 1: -2e+10 is out of range; expected 1000 to 1e+14");
    matrix_is("1e9,2e10\n0,1e9\n",
              " line 2: 0 from node 1 to node 0: all nodes of a job reach each other");
    matrix_is("1e9,nan\n", " line 1: nan is out of range; expected 1000 to 1e+14");
}

// A ring inside never beats the nominal link, and one message never the aggregate. Memory between
// cores has no nominal rate: the link's is what was measured at best, and starts are all in hops.
static void bundled_links_are_sane(void) {
    Arena arena = {0};
    const char *const *names;
    int num_names;
    CU_ASSERT_EQUAL_FATAL(data_list(&arena, "hw-profiles/links", &names, &num_names).code,
                          STATUS_OK);
    CU_ASSERT(num_names >= 12);
    for (int i = 0; i < num_names; i++) {
        Link link;
        CU_ASSERT_EQUAL_FATAL(link_load_named(names[i], &arena, &link).code, STATUS_OK);
        CU_ASSERT_STRING_EQUAL(link.name, names[i]);
        CU_ASSERT_EQUAL(link.bandwidth_bytes_per_s > 0, strcmp(names[i], "rdma") != 0);
        bool nominal = strcmp(names[i], "shm") != 0;
        CU_ASSERT(link.efficiency_frac <= (nominal ? 0.95 : 1));
        CU_ASSERT(link.p2p_efficiency_frac <= 0.95);
        CU_ASSERT(link.latency_s >= (nominal ? 1e-6 : 0) && link.latency_s <= 1e-4);
        CU_ASSERT(link.hop_latency_s > 0 && link.hop_latency_s <= 1e-4);
        CU_ASSERT(link.chain_hop_latency_s > 0 && link.chain_hop_latency_s <= 1e-4);
        CU_ASSERT(!link.in_switch_reduction || link.switched);
    }
    arena_free(&arena);
}

static void bundled_clusters_are_sane(void) {
    Arena arena = {0};
    ClusterSummary *list;
    int num_clusters;
    CU_ASSERT_EQUAL_FATAL(cluster_list(&arena, &list, &num_clusters).code, STATUS_OK);
    CU_ASSERT(num_clusters >= 20);
    for (int i = 0; i < num_clusters; i++) {
        Cluster c = {0};
        if (i > 0) CU_ASSERT(strcmp(list[i - 1].name, list[i].name) < 0);
        const char *text = arena_printf(&arena, "\"%s:2\"", list[i].name);
        CU_ASSERT_EQUAL_FATAL(cluster_of(text, &arena, &c).code, STATUS_OK);
        CU_ASSERT_STRING_EQUAL(c.pools[0].gpu.name, list[i].gpu);
        CU_ASSERT_STRING_EQUAL(c.pools[0].scale_up.name, list[i].link);
        CU_ASSERT_EQUAL(c.num_gpus, 2 * list[i].gpus_per_node);
        // The network of a node is never faster than what its GPUs reach of each other.
        double out = c.pools[0].nics_per_node * c.pools[0].nic_bytes_per_s;
        CU_ASSERT(out < c.pools[0].gpus_per_node * c.pools[0].scale_up.bandwidth_bytes_per_s);
        CU_ASSERT(c.pools[0].scale_up.bandwidth_bytes_per_s <
                  c.pools[0].gpu.memory_bandwidth_bytes_per_s);
    }
    arena_free(&arena);
}

static void bundled_clusters_name_file_and_sources(void) {
    Arena arena = {0};
    const char *const *names, *text;
    int num_names;
    CU_ASSERT_EQUAL_FATAL(data_list(&arena, "hw-profiles/clusters", &names, &num_names).code,
                          STATUS_OK);
    for (int i = 0; i < num_names; i++) {
        JsonNode root;
        const char *path = data_path(&arena, "hw-profiles/clusters", names[i]);
        CU_ASSERT_EQUAL_FATAL(json_load(path, &arena, &root).code, STATUS_OK);
        JsonNode name = json_get(&root, "name"), sources = json_get(&root, "sources");
        CU_ASSERT_EQUAL_FATAL(json_read_string(&name, &arena, &text).code, STATUS_OK);
        CU_ASSERT_STRING_EQUAL(text, names[i]);
        CU_ASSERT(json_size(&sources) >= 2);
    }
    arena_free(&arena);
}

// Of a link that was measured with several GPUs, a cluster takes the collectives of its own.
static void collectives_are_of_the_own_gpu(void) {
    Arena arena = {0};
    const char *const names[] = {"h100-sxm-80g", "h200-sxm-141g"};
    const char *const clusters[] = {"\"dgx-h100\"", "\"dgx-h200\""};
    for (int i = 0; i < 2; i++) {
        Cluster c = {0};
        KernelProfile profile;
        CU_ASSERT_EQUAL_FATAL(cluster_of(clusters[i], &arena, &c).code, STATUS_OK);
        CU_ASSERT_EQUAL_FATAL(kernels_load_named(names[i], &arena, &profile).code, STATUS_OK);
        const NcclCurve own = nccl_kernels_rising(&profile.nccl, &arena).curves[0];
        const NcclCurve *taken = c.pools[0].scale_up_curves->curves;
        CU_ASSERT_EQUAL_FATAL(taken->num_points, own.num_points);
        for (int p = 0; p < own.num_points; p++) CU_ASSERT_EQUAL(taken->seconds[p], own.seconds[p]);
    }
    arena_free(&arena);
}

CU_TestInfo cluster_tests[] = {
    {"preset_with_nodes_is_its_numbers", preset_with_nodes_is_its_numbers},
    {"object_equals_its_preset", object_equals_its_preset},
    {"overrides_replace_the_profile", overrides_replace_the_profile},
    {"domain_may_span_nodes", domain_may_span_nodes},
    {"another_size_changes_only_the_size", another_size_changes_only_the_size},
    {"bad_presets_are_refused", bad_presets_are_refused},
    {"bad_objects_are_refused", bad_objects_are_refused},
    {"groups_of_one_machine_are_sites", groups_of_one_machine_are_sites},
    {"idle_gpus_of_all_groups_count", idle_gpus_of_all_groups_count},
    {"trees_of_switches_divide_a_node", trees_of_switches_divide_a_node},
    {"groups_of_other_machines_keep_their_own", groups_of_other_machines_keep_their_own},
    {"rails_that_nothing_joins_are_refused", rails_that_nothing_joins_are_refused},
    {"bad_groups_are_refused", bad_groups_are_refused},
    {"matrix_is_read_and_checked", matrix_is_read_and_checked},
    {"collectives_are_of_the_own_gpu", collectives_are_of_the_own_gpu},
    {"bundled_links_are_sane", bundled_links_are_sane},
    {"bundled_clusters_are_sane", bundled_clusters_are_sane},
    {"bundled_clusters_name_file_and_sources", bundled_clusters_name_file_and_sources},
    CU_TEST_INFO_NULL,
};
