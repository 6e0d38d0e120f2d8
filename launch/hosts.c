#include "launch/hosts.h"

// A node of the scenario may be a rack (gb200-nvl72): its compute trays are hosts of their own,
// with 4 GPUs each (NVIDIA GB200 NVL72 datasheet: 18 trays, 72 GPUs).
static int gpus_per_host(const Scenario *scenario) {
    enum { MAX_GPUS_PER_HOST = 16, GPUS_PER_TRAY = 4 };
    const Pool *pool = cluster_only_pool(&scenario->cluster);
    int per_node = pool->gpus_per_node, num_gpus = pool->num_gpus;
    if (per_node > MAX_GPUS_PER_HOST && per_node % GPUS_PER_TRAY == 0) per_node = GPUS_PER_TRAY;
    return num_gpus < per_node ? num_gpus : per_node;
}

Hosts hosts_of(const Scenario *scenario, const Plan *plan) {
    int per_host = gpus_per_host(scenario);
    return (Hosts){.gpus_per_host = per_host,
                   .num_hosts = scenario->cluster.num_gpus / per_host,
                   .order = plan->node_order};
}

int host_place(const Hosts *hosts, int host) {
    if (!hosts->order) return host;
    const int per_node = hosts->num_hosts / hosts->order->num_nodes;
    return hosts->order->block[host / per_node] * per_node + host % per_node;
}

int host_at(const Hosts *hosts, int place) {
    if (!hosts->order) return place;
    const int per_node = hosts->num_hosts / hosts->order->num_nodes;
    return hosts->order->node[place / per_node] * per_node + place % per_node;
}

static const char *hosts_list(const Hosts *hosts, int (*of)(const Hosts *, int), Arena *arena) {
    const char *text = "";
    for (int i = 0; i < hosts->num_hosts; i++)
        text = arena_printf(arena, "%s%s%d", text, i ? " " : "", of(hosts, i));
    return text;
}

const char *hosts_places(const Hosts *hosts, Arena *arena) {
    return hosts_list(hosts, host_place, arena);
}

const char *hosts_at_places(const Hosts *hosts, Arena *arena) {
    return hosts_list(hosts, host_at, arena);
}
