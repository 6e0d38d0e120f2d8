#include "sim/network_wires.h"

static int num_wires(const Network *network) {
    return network->wires ? network->wires->num_links : 0;
}

int network_wires_first(const Network *network) {
    return 2 * network->num_gpus;
}

int network_wires_end(const Network *network) {
    int num_domains = network->num_gpus / network->domain_gpus;
    return network_wires_first(network) + num_domains * num_wires(network);
}

int network_domain_links(const Network *network, int domain, int *first) {
    *first = network_wires_first(network) + domain * num_wires(network);
    return num_wires(network);
}

double network_wire_bytes_per_s(const Network *network, int link) {
    return network->wires
        ->bytes_per_s[(link - network_wires_first(network)) % network->wires->num_links];
}

static int route_add(const Network *network, int domain, int from, int to, int links[]) {
    const WireRoute *route = wires_route(network->wires, from, to);
    int first;
    network_domain_links(network, domain, &first);
    for (int i = 0; i < route->num_links; i++) links[i] = first + route->links[i];
    return route->num_links;
}

int network_wires_between(const Network *network, int from_gpu, int to_gpu, int links[]) {
    const int domain = network->domain_gpus;
    if (!network->wires) return 0;
    return route_add(network, from_gpu / domain, from_gpu % domain, to_gpu % domain, links);
}

// A domain with switches of PCIe is a node.
int network_wires_to_nic(const Network *network, int gpu, int nic, bool back, int links[]) {
    if (!network->wires || network->wires->num_switches == 0) return 0;
    const int nics = network->nics_per_node, gpus = network->gpus_per_node;
    const int node = gpu / gpus, place = gpu % gpus, home = (nic % nics * gpus + nics - 1) / nics;
    int n = 0;
    if (!back) links[n++] = gpu;
    n += route_add(network, node, back ? home : place, back ? place : home, links + n);
    if (back) links[n++] = network->num_gpus + gpu;
    return n;
}

const char *network_wire_name(const Network *network, int link, int first_gpu, int first_node,
                              Arena *arena) {
    const Wires *wires = network->wires;
    const int place = link - network_wires_first(network), wire = place % wires->num_links;
    const int domain = place / wires->num_links, node = first_node + domain;
    const int first = first_gpu + domain * network->domain_gpus, *ends = wires->ends[wire];
    if (wires->num_switches == 0)
        return arena_printf(arena, "nvlink:%d-nvlink:%d", first + ends[0], first + ends[1]);
    if (ends[1] == WIRES_ROOT) return arena_printf(arena, "switch:%d.%d up", node, ends[0]);
    if (ends[0] == WIRES_ROOT) return arena_printf(arena, "switch:%d.%d down", node, ends[1]);
    return arena_printf(arena, "socket:%d.%d-socket:%d.%d", node, ends[0], node, ends[1]);
}
