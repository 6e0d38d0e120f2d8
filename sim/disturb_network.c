#include "sim/disturb_network.h"

#include <string.h>

bool disturb_is_network(DisturbKind kind) {
    return kind != DISTURB_SLOW_GPU && kind != DISTURB_JITTER;
}

static Status entry_refuse(const Scenario *scenario, int entry, const char *sentence) {
    char path[64];
    snprintf(path, sizeof path, "disturb[%d].%s", entry,
             DISTURB_NAMES[scenario->disturb[entry].kind]);
    return status_at(STATUS_INVALID, scenario->file, path, "%s", sentence);
}

// The two directions of a link, out (or up) first.
static Status link_find(const Scenario *scenario, int entry, const LinkName *name,
                        const Network *network, Arena *arena, int links[2]) {
    if (name->kind == LINK_SPINE) {
        return entry_refuse(scenario, entry, "spines are legal, but not supported yet");
    }
    if (name->kind == LINK_LEAF && name->index >= network->num_leaves) {
        return entry_refuse(scenario, entry,
                            arena_printf(arena, "leaf %d is out of range; expected 0 to %d",
                                         name->index, network->num_leaves - 1));
    }
    LinkName played = *name;
    played.nic = name->nic * network->nics_per_node / scenario->cluster.nics_per_node;
    network_links_of(network, &played, links);
    return status_ok();
}

// More NICs than GPUs are played as fewer and faster ones: one of them is a part of such a one.
static double link_share(const Scenario *scenario, const LinkName *name, const Network *network) {
    if (name->kind != LINK_NIC) return 1;
    return (double)network->nics_per_node / scenario->cluster.nics_per_node;
}

static Status background_take(const Scenario *scenario, int entry, int link, const Network *network,
                              Arena *arena, double *link_bytes_per_s) {
    double bytes_per_s = scenario->disturb[entry].bytes_per_s;
    if (link_bytes_per_s[link] > bytes_per_s) {
        link_bytes_per_s[link] -= bytes_per_s;
        return status_ok();
    }
    return entry_refuse(scenario, entry,
                        arena_printf(arena, "%.4g bytes/s leave nothing of %s, which has %.4g",
                                     bytes_per_s, network_link_name(network, link, arena),
                                     link_bytes_per_s[link]));
}

static Status entry_apply(const Scenario *scenario, int entry, const Network *network, Arena *arena,
                          double *link_bytes_per_s) {
    const Disturb *disturb = &scenario->disturb[entry];
    int links[2];
    TRY(link_find(scenario, entry, &disturb->link, network, arena, links));
    if (disturb->kind == DISTURB_LINK) {
        double lost =
            (1 - disturb->bandwidth_factor) * link_share(scenario, &disturb->link, network);
        for (int way = 0; way < 2; way++) link_bytes_per_s[links[way]] *= 1 - lost;
        return status_ok();
    }
    TRY(background_take(scenario, entry, links[0], network, arena, link_bytes_per_s));
    TRY(link_find(scenario, entry, &disturb->to, network, arena, links));
    return background_take(scenario, entry, links[1], network, arena, link_bytes_per_s);
}

Status network_disturb(const Scenario *scenario, const Network *network, Arena *arena,
                       double **link_bytes_per_s) {
    double *capacities = ARENA_ARRAY(arena, network->num_links, double);
    memcpy(capacities, network->link_bytes_per_s, (size_t)network->num_links * sizeof *capacities);
    for (int i = 0; i < scenario->num_disturb; i++) {
        if (!disturb_is_network(scenario->disturb[i].kind)) continue;
        TRY(entry_apply(scenario, i, network, arena, capacities));
    }
    *link_bytes_per_s = capacities;
    return status_ok();
}
