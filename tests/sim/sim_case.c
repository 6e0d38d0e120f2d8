#include "tests/sim/sim_case.h"

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
    return (Cluster){
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
    };
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
