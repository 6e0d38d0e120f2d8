#include "tests/sim/sim_case.h"

#include <CUnit/CUnit.h>

#include <math.h>

static Link link_of(double bandwidth_bytes_per_s) {
    return (Link){
        .bandwidth_bytes_per_s = bandwidth_bytes_per_s,
        .switched = true,
        .latency_s = 1e-3,
        .hop_latency_s = 1e-4,
        .efficiency_frac = 0.5,
        .p2p_latency_s = 1e-3,
        .p2p_efficiency_frac = 1,
    };
}

Cluster sim_cluster(int num_nodes) {
    return test_cluster(&(Pool){
        .num_gpus = 8 * num_nodes,
        .gpus_per_node = 8,
        .num_nodes = num_nodes,
        .scale_up = link_of(100e9),
        .domain_gpus = 8,
        .scale_out = link_of(10e9),
        .nics_per_node = 8,
        .nic_bytes_per_s = 10e9,
        .topology = TOPOLOGY_RAIL_FAT_TREE,
        .oversubscription = 1,
    });
}

double *sim_ends(const Lowered *lowered, Arena *arena) {
    double *end_s = ARENA_ARRAY(arena, lowered->dag.num_nodes, double);
    int num_reached = dag_critical_path(&lowered->dag, end_s);
    CU_ASSERT_EQUAL(num_reached, lowered->dag.num_nodes);
    return end_s;
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

int sim_count_differences(const Program *program, const Lowered *lowered, const Timeline *timeline,
                          Arena *arena) {
    const double *ends = sim_ends(lowered, arena);
    int num_different = 0;
    for (int rank = 0; rank < program->num_ranks; rank++) {
        int num = program->ranks[rank].num_instructions;
        for (int slot = 0; slot < num * lowered->num_lanes; slot++) {
            int begin = lowered->begin_node[rank][slot], end = lowered->end_node[rank][slot];
            double duration_s =
                lowered->dag.nodes[begin].delay_s + dag_flow_s(&lowered->dag, begin);
            num_different +=
                !is_near(ends[begin] - duration_s, timeline->start_s[rank][slot % num]);
            num_different += !is_near(ends[end], timeline->end_s[rank][slot % num]);
        }
    }
    return num_different;
}

const char *sim_route_text(const Network *network, int from_gpu, int to_gpu, Arena *arena) {
    int links[MAX_HOPS];
    int num_links = network_route(network, from_gpu, to_gpu, links);
    const char *text = "";
    for (int i = 0; i < num_links; i++) {
        text = arena_printf(arena, "%s%s%s", text, i ? ", " : "",
                            network_link_name(network, links[i], arena));
    }
    return text;
}
