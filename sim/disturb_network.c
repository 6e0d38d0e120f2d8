#include "sim/disturb_network.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

bool disturb_is_network(DisturbKind kind) {
    return kind != DISTURB_SLOW_GPU && kind != DISTURB_JITTER;
}

// A network while it is disturbed, entry by entry.
typedef struct {
    const Scenario *scenario;
    Network *network;   // of link capacities of its own
    double *nic_frac;   // [num_nodes * nics_per_node of the cluster] what is left of each
    double *spine_frac; // [num_spines] the same
    Arena *arena;
} Damage;

static Status entry_refuse(const Scenario *scenario, int entry, const char *sentence) {
    char path[64];
    snprintf(path, sizeof path, "disturb[%d].%s", entry,
             DISTURB_NAMES[scenario->disturb[entry].kind]);
    return status_at(STATUS_INVALID, scenario->file, path, "%s", sentence);
}

// Leaves and spines: how many there are is the network's to say, not the cluster's.
static Status switch_check(const Damage *damage, int entry, const LinkName *name) {
    if (name->kind != LINK_LEAF && name->kind != LINK_SPINE) return status_ok();
    const char *what = name->kind == LINK_LEAF ? "leaf" : "spine";
    int count = name->kind == LINK_LEAF ? damage->network->num_leaves : damage->network->num_spines;
    if (name->index < count) return status_ok();
    if (count == 0 && damage->network->sites)
        return entry_refuse(damage->scenario, entry,
                            arena_printf(damage->arena,
                                         "a %s beside groups or a bandwidth_matrix is legal, but "
                                         "not supported yet",
                                         what));
    if (count == 0)
        return entry_refuse(damage->scenario, entry, "the network has no spine switches");
    return entry_refuse(damage->scenario, entry,
                        arena_printf(damage->arena, "%s %d is out of range; expected 0 to %d", what,
                                     name->index, count - 1));
}

// --- Links and NICs that lose capacity

static double *nic_left(const Damage *damage, int node, int nic) {
    return &damage->nic_frac[node * damage->scenario->cluster.nics_per_node + nic];
}

static Status link_degrade(const Damage *damage, int entry) {
    const Disturb *disturb = &damage->scenario->disturb[entry];
    const LinkName *name = &disturb->link;
    TRY(switch_check(damage, entry, name));
    if (name->kind == LINK_NIC) {
        *nic_left(damage, name->index, name->nic) *= disturb->bandwidth_factor;
    } else if (name->kind == LINK_SPINE) {
        damage->spine_frac[name->index] *= disturb->bandwidth_factor;
    } else {
        int links[2];
        network_links_of(damage->network, name, links);
        for (int way = 0; way < 2; way++)
            damage->network->link_bytes_per_s[links[way]] *= disturb->bandwidth_factor;
    }
    return status_ok();
}

static Status nic_fail(const Damage *damage, int entry) {
    const LinkName *name = &damage->scenario->disturb[entry].link;
    *nic_left(damage, name->index, name->nic) = 0;
    for (int i = 0; i < damage->scenario->cluster.nics_per_node; i++)
        if (*nic_left(damage, name->index, i) > 0) return status_ok();
    return entry_refuse(damage->scenario, entry,
                        arena_printf(damage->arena,
                                     "node %d has no other NIC that works and could take its "
                                     "traffic",
                                     name->index));
}

// NICs of the cluster per NIC that is played.
static double nics_per_played(const Damage *damage) {
    return (double)damage->scenario->cluster.nics_per_node / damage->network->nics_per_node;
}

static int played_nic(const Damage *damage, int nic) {
    return nic * damage->network->nics_per_node / damage->scenario->cluster.nics_per_node;
}

// What is left of a NIC that is played, of which each that it stands for is a part.
static double played_nic_left(const Damage *damage, int node, int played) {
    double lost = 0;
    for (int nic = 0; nic < damage->scenario->cluster.nics_per_node; nic++)
        if (played_nic(damage, nic) == played) lost += 1 - *nic_left(damage, node, nic);
    return fmax(0, 1 - lost / nics_per_played(damage));
}

// Gives NICs what is left to them, and the traffic of those with nothing to the next.
static void nics_apply(const Damage *damage) {
    Network *network = damage->network;
    int nics = network->nics_per_node;
    int *taken_by = ARENA_ARRAY(damage->arena, network->num_nodes * nics, int);
    bool all_work = true;
    for (int i = 0; i < network->num_nodes * nics; i++) {
        int node = i / nics, taker = i % nics, links[2];
        double left = played_nic_left(damage, node, taker);
        network_links_of(network, &(LinkName){LINK_NIC, node, taker}, links);
        for (int way = 0; way < 2 && left > 0; way++) network->link_bytes_per_s[links[way]] *= left;
        while (played_nic_left(damage, node, taker) <= 0) taker = (taker + 1) % nics;
        taken_by[i] = node * nics + taker;
        all_work &= taken_by[i] == i;
    }
    network->nic_taken_by = all_work ? NULL : taken_by;
}

// Without a spine between rails two nodes need a rail on which both have a NIC.
static Status rails_check(const Damage *damage) {
    const Network *network = damage->network;
    const int nics = network->nics_per_node, *taken_by = network->nic_taken_by;
    if (network->topology != TOPOLOGY_RAIL_ONLY || !taken_by) return status_ok();
    for (int i = 0; i < damage->scenario->num_disturb; i++) {
        const Disturb *disturb = &damage->scenario->disturb[i];
        if (disturb->kind != DISTURB_FAIL_NIC) continue;
        int first = disturb->link.index * nics;
        for (int other = 0; other < network->num_nodes * nics; other += nics) {
            int rail = 0;
            while (rail < nics && (taken_by[first + rail] != first + rail ||
                                   taken_by[other + rail] != other + rail))
                rail++;
            if (rail < nics) continue;
            return entry_refuse(damage->scenario, i,
                                arena_printf(damage->arena,
                                             "nodes %d and %d have no rail left on which the NICs "
                                             "of both work, and no spine joins rails",
                                             first / nics, other / nics));
        }
    }
    return status_ok();
}

// The share that one spine has in what is left of the uplinks of its leaves.
static double spine_share(const Damage *damage, int spine) {
    int first, stride, count;
    int num_spines = network_spine_leaves(damage->network, spine, &first, &stride, &count);
    double sum = 0;
    for (int i = 0; i < num_spines; i++)
        sum += damage->spine_frac[spine / num_spines * num_spines + i];
    return damage->spine_frac[spine] / sum;
}

// Every leaf is joined to all spines of its plane alike.
static void spines_apply(const Damage *damage) {
    Network *network = damage->network;
    for (int spine = 0; spine < network->num_spines; spine++) {
        int first, stride, count, links[2];
        int num_spines = network_spine_leaves(network, spine, &first, &stride, &count);
        if (spine % num_spines != 0) continue;
        double left = damage->spine_frac[spine] / spine_share(damage, spine) / num_spines;
        for (int i = 0; i < count; i++) {
            network_links_of(network, &(LinkName){LINK_LEAF, first + i * stride, 0}, links);
            for (int way = 0; way < 2; way++) network->link_bytes_per_s[links[way]] *= left;
        }
    }
}

// --- Links that come and go

static void flaps_add(Damage *damage, int entry, const LinkName *name, double share) {
    const Disturb *disturb = &damage->scenario->disturb[entry];
    int links[2];
    network_links_of(damage->network, name, links);
    for (int way = 0; way < 2; way++) {
        damage->network->flaps[damage->network->num_flaps++] = (LinkFlap){
            .link = links[way],
            .bytes_per_s = share * damage->network->link_bytes_per_s[links[way]],
            .period_s = disturb->period_s,
            .down_s = disturb->period_s * disturb->down_frac,
            .entry = entry,
        };
    }
}

static Status flap_apply(Damage *damage, int entry) {
    const Disturb *disturb = &damage->scenario->disturb[entry];
    LinkName name = disturb->link;
    TRY(switch_check(damage, entry, &name));
    if (disturb->down_frac == 0) return status_ok();
    if (name.kind == LINK_SPINE) {
        int first, stride, count;
        network_spine_leaves(damage->network, name.index, &first, &stride, &count);
        double share = spine_share(damage, name.index);
        for (int i = 0; i < count; i++)
            flaps_add(damage, entry, &(LinkName){LINK_LEAF, first + i * stride, 0}, share);
        return status_ok();
    }
    double share = 1;
    if (name.kind == LINK_NIC) {
        double left = *nic_left(damage, name.index, name.nic) / nics_per_played(damage);
        name.nic = played_nic(damage, name.nic);
        if (left == 0) return status_ok(); // it has failed
        share = left / played_nic_left(damage, name.index, name.nic);
    }
    flaps_add(damage, entry, &name, share);
    return status_ok();
}

void network_draw_flaps(const Scenario *scenario, int repetition, Network *network) {
    for (int i = 0; i < network->num_flaps; i++) {
        LinkFlap *flap = &network->flaps[i];
        const uint32_t counter[RANDOM_WORDS] = {(uint32_t)repetition, 0, 0, (uint32_t)flap->entry};
        uint64_t seed = (uint64_t)scenario->disturb[flap->entry].seed;
        flap->first_down_s = flap->period_s * random_uniform(seed, counter);
        bool is_down_at_0 = flap->first_down_s + flap->down_s > flap->period_s;
        if (is_down_at_0) flap->first_down_s -= flap->period_s;
    }
}

// --- The traffic of others

// At one end of it, on the links that go to a spine or to all of them.
static Status background_take(const Damage *damage, int entry, const LinkName *end, bool down,
                              int spine) {
    if (end->kind == LINK_SPINE) return status_ok();
    int links[2];
    network_links_of(damage->network, end, links);
    double bytes_per_s = damage->scenario->disturb[entry].bytes_per_s;
    double *left_bytes_per_s = &damage->network->link_bytes_per_s[links[down]];
    double share = spine >= 0 ? spine_share(damage, spine) : 1;
    if (share * *left_bytes_per_s > bytes_per_s) {
        *left_bytes_per_s -= bytes_per_s;
        return status_ok();
    }
    const char *what = network_link_name(damage->network, links[down], damage->arena);
    if (spine >= 0) what = arena_printf(damage->arena, "%s at spine:%d", what, spine);
    return entry_refuse(damage->scenario, entry,
                        arena_printf(damage->arena,
                                     "%.4g bytes/s leave nothing of %s, which has %.4g",
                                     bytes_per_s, what, share * *left_bytes_per_s));
}

static Status background_apply(const Damage *damage, int entry) {
    const Disturb *disturb = &damage->scenario->disturb[entry];
    const LinkName *ends[2] = {&disturb->link, &disturb->to};
    int spine = -1, leaf = -1, num_spines = 0;
    for (int i = 0; i < 2; i++) {
        TRY(switch_check(damage, entry, ends[i]));
        bool is_spine = ends[i]->kind == LINK_SPINE;
        *(is_spine ? &spine : &leaf) = ends[i]->index;
        num_spines += is_spine;
    }
    if (num_spines == 2)
        return entry_refuse(damage->scenario, entry,
                            "spines are not joined to each other; expected a leaf at one end");
    if (num_spines == 1) {
        int first, stride, count;
        network_spine_leaves(damage->network, spine, &first, &stride, &count);
        if (leaf % stride != first)
            return entry_refuse(
                damage->scenario, entry,
                arena_printf(damage->arena, "leaf:%d is not joined to spine:%d", leaf, spine));
    }
    TRY(background_take(damage, entry, ends[0], false, spine));
    return background_take(damage, entry, ends[1], true, spine);
}

// --- All of it

// Applies the entries of one kind.
static Status entries_apply(Damage *damage, DisturbKind kind) {
    const Scenario *scenario = damage->scenario;
    for (int i = 0; i < scenario->num_disturb; i++) {
        if (scenario->disturb[i].kind != kind) continue;
        if (kind == DISTURB_LINK) TRY(link_degrade(damage, i));
        if (kind == DISTURB_FAIL_NIC) TRY(nic_fail(damage, i));
        if (kind == DISTURB_FLAP) TRY(flap_apply(damage, i));
        if (kind == DISTURB_BACKGROUND) TRY(background_apply(damage, i));
    }
    return status_ok();
}

static double *ones(int count, Arena *arena) {
    double *fracs = ARENA_ARRAY(arena, count, double);
    for (int i = 0; i < count; i++) fracs[i] = 1;
    return fracs;
}

Status network_disturb(const Scenario *scenario, const Network *network, Arena *arena,
                       Network *out) {
    *out = *network;
    int num_flaps = 0;
    bool is_disturbed = false;
    for (int i = 0; i < scenario->num_disturb; i++) {
        const Disturb *disturb = &scenario->disturb[i];
        is_disturbed |= disturb_is_network(disturb->kind);
        if (disturb->kind != DISTURB_FLAP) continue;
        num_flaps += disturb->link.kind == LINK_SPINE ? 2 * network->num_leaves : 2;
    }
    if (!is_disturbed) return status_ok();
    if (network->groups) return scenario_refuse_unlike_groups(scenario, "disturb of links");
    out->link_bytes_per_s = ARENA_ARRAY(arena, network->num_links, double);
    memcpy(out->link_bytes_per_s, network->link_bytes_per_s,
           (size_t)network->num_links * sizeof *out->link_bytes_per_s);
    out->flaps = ARENA_ARRAY(arena, num_flaps, LinkFlap);
    Damage damage = {
        .scenario = scenario,
        .network = out,
        .nic_frac = ones(network->num_nodes * scenario->cluster.nics_per_node, arena),
        .spine_frac = ones(network->num_spines, arena),
        .arena = arena,
    };
    TRY(entries_apply(&damage, DISTURB_LINK));
    TRY(entries_apply(&damage, DISTURB_FAIL_NIC));
    nics_apply(&damage);
    TRY(rails_check(&damage));
    spines_apply(&damage);
    TRY(entries_apply(&damage, DISTURB_FLAP));
    return entries_apply(&damage, DISTURB_BACKGROUND);
}
