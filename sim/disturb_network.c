#include "sim/disturb_network.h"

#include "base/random.h"
#include "sim/network_groups.h"

#include <math.h>
#include <string.h>

bool disturb_is_network(DisturbKind kind) {
    return kind != DISTURB_SLOW_GPU && kind != DISTURB_JITTER;
}

// The NICs of a network, or of one of its groups.
typedef struct {
    const Pool *pool;
    Network *network; // that gets nic_taken_by
    int first_node;   // in the whole
    double *frac;     // [num_nodes * nics_per_node of the pool] what is left of each
} NicSet;

// A network while it is disturbed, entry by entry.
typedef struct {
    const Scenario *scenario;
    Network *network; // of link capacities of its own
    NicSet *nics;     // [num_nic_sets] by group
    int num_nic_sets;
    double *spine_frac; // [num_spines] what is left of each
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
    if (count == 0 && damage->network->sites && damage->network->sites->kind == SITE_NODE)
        return entry_refuse(
            damage->scenario, entry,
            "a bandwidth_matrix stands in the place of leaf and spine switches; expected a NIC or "
            "port of a GPU, of background two nodes");
    if (count == 0)
        return entry_refuse(damage->scenario, entry, "the network has no spine switches");
    return entry_refuse(damage->scenario, entry,
                        arena_printf(damage->arena, "%s %d is out of range; expected 0 to %d", what,
                                     name->index, count - 1));
}

// --- Links and NICs that lose capacity

static NicSet *nic_set(const Damage *damage, int node) {
    NicSet *set = &damage->nics[damage->num_nic_sets - 1];
    while (node < set->first_node) set--;
    return set;
}

static double *nic_left(const NicSet *set, int node, int nic) {
    return &set->frac[(node - set->first_node) * set->pool->nics_per_node + nic];
}

static Status link_degrade(const Damage *damage, int entry) {
    const Disturb *disturb = &damage->scenario->disturb[entry];
    const LinkName *name = &disturb->link;
    TRY(switch_check(damage, entry, name));
    if (name->kind == LINK_NIC) {
        *nic_left(nic_set(damage, name->index), name->index, name->nic) *=
            disturb->bandwidth_factor;
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
    const NicSet *set = nic_set(damage, name->index);
    *nic_left(set, name->index, name->nic) = 0;
    for (int i = 0; i < set->pool->nics_per_node; i++)
        if (*nic_left(set, name->index, i) > 0) return status_ok();
    return entry_refuse(damage->scenario, entry,
                        arena_printf(damage->arena,
                                     "node %d has no other NIC that works and could take its "
                                     "traffic",
                                     name->index));
}

// NICs of the pool per NIC that is played.
static double nics_per_played(const NicSet *set) {
    return (double)set->pool->nics_per_node / set->network->nics_per_node;
}

static int played_nic(const NicSet *set, int nic) {
    return nic * set->network->nics_per_node / set->pool->nics_per_node;
}

// What is left of a NIC that is played, of which each that it stands for is a part.
static double played_nic_left(const NicSet *set, int node, int played) {
    double lost = 0;
    for (int nic = 0; nic < set->pool->nics_per_node; nic++)
        if (played_nic(set, nic) == played) lost += 1 - *nic_left(set, node, nic);
    return fmax(0, 1 - lost / nics_per_played(set));
}

// Gives NICs what is left to them, and the traffic of those with nothing to the next.
static void nics_apply(const Damage *damage, const NicSet *set) {
    Network *own = set->network, *network = damage->network;
    int nics = own->nics_per_node;
    int *taken_by = ARENA_ARRAY(damage->arena, own->num_nodes * nics, int);
    bool all_work = true;
    for (int i = 0; i < own->num_nodes * nics; i++) {
        int node = set->first_node + i / nics, taker = i % nics, links[2];
        double left = played_nic_left(set, node, taker);
        network_links_of(network, &(LinkName){LINK_NIC, node, taker}, links);
        for (int way = 0; way < 2 && left > 0; way++) network->link_bytes_per_s[links[way]] *= left;
        while (played_nic_left(set, node, taker) <= 0) taker = (taker + 1) % nics;
        taken_by[i] = i / nics * nics + taker;
        all_work &= taken_by[i] == i;
    }
    if (all_work) return;
    own->nic_taken_by = taken_by;
    network->nic_taken_by = taken_by;
}

// Without a spine between rails two nodes need a rail on which both have a NIC.
static Status rails_check(const Damage *damage, const NicSet *set) {
    const Network *network = set->network;
    const int nics = network->nics_per_node, *taken_by = network->nic_taken_by;
    if (network->topology != TOPOLOGY_RAIL_ONLY || !taken_by) return status_ok();
    for (int i = 0; i < damage->scenario->num_disturb; i++) {
        const Disturb *disturb = &damage->scenario->disturb[i];
        if (disturb->kind != DISTURB_FAIL_NIC) continue;
        if (nic_set(damage, disturb->link.index) != set) continue;
        int first = (disturb->link.index - set->first_node) * nics;
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
                                             set->first_node + first / nics,
                                             set->first_node + other / nics));
        }
    }
    return status_ok();
}

// The share that one spine has in what is left of the uplinks of its leaves.
static double spine_share(const Damage *damage, int spine) {
    const SpineSet set = network_spine_set(damage->network, spine);
    double sum = 0;
    for (int i = 0; i < set.num_spines; i++) sum += damage->spine_frac[set.first_spine + i];
    return damage->spine_frac[spine] / sum;
}

// Every leaf is joined to all spines of its plane alike.
static void spines_apply(const Damage *damage) {
    Network *network = damage->network;
    for (int spine = 0; spine < network->num_spines; spine++) {
        const SpineSet set = network_spine_set(network, spine);
        if (spine != set.first_spine) continue;
        double left = damage->spine_frac[spine] / spine_share(damage, spine) / set.num_spines;
        for (int i = 0; i < set.num_leaves; i++) {
            int links[2];
            network_links_of(network, &(LinkName){LINK_LEAF, set.first_leaf + i * set.stride, 0},
                             links);
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
        const SpineSet set = network_spine_set(damage->network, name.index);
        double share = spine_share(damage, name.index);
        for (int i = 0; i < set.num_leaves; i++)
            flaps_add(damage, entry, &(LinkName){LINK_LEAF, set.first_leaf + i * set.stride, 0},
                      share);
        return status_ok();
    }
    double share = 1;
    if (name.kind == LINK_NIC) {
        const NicSet *set = nic_set(damage, name.index);
        double left = *nic_left(set, name.index, name.nic) / nics_per_played(set);
        name.nic = played_nic(set, name.nic);
        if (left == 0) return status_ok(); // it has failed
        share = left / played_nic_left(set, name.index, name.nic);
    }
    flaps_add(damage, entry, &name, share);
    return status_ok();
}

// Jitter's draws have a GPU in its place: of one seed the two are still independent.
static const uint32_t NO_GPU = UINT32_MAX;

void network_draw_flaps(const Scenario *scenario, int repetition, Network *network) {
    for (int i = 0; i < network->num_flaps; i++) {
        LinkFlap *flap = &network->flaps[i];
        const Disturb *disturb = &scenario->disturb[flap->entry];
        const uint32_t counter[RANDOM_WORDS] = {(uint32_t)repetition, NO_GPU, 0,
                                                (uint32_t)disturb->ordinal};
        uint64_t seed = (uint64_t)disturb->seed;
        flap->first_down_s = flap->period_s * random_uniform(seed, counter);
        bool is_down_at_0 = flap->first_down_s + flap->down_s > flap->period_s;
        if (is_down_at_0) flap->first_down_s -= flap->period_s;
    }
}

// --- The traffic of others

// From a link, or from what one spine has of it.
static Status rate_take(const Damage *damage, int entry, int link, int spine) {
    double bytes_per_s = damage->scenario->disturb[entry].bytes_per_s;
    double *left_bytes_per_s = &damage->network->link_bytes_per_s[link];
    double share = spine >= 0 ? spine_share(damage, spine) : 1;
    if (share * *left_bytes_per_s > bytes_per_s) {
        *left_bytes_per_s -= bytes_per_s;
        return status_ok();
    }
    const char *what = network_link_name(damage->network, link, damage->arena);
    if (spine >= 0) what = arena_printf(damage->arena, "%s at spine:%d", what, spine);
    return entry_refuse(damage->scenario, entry,
                        arena_printf(damage->arena,
                                     "%.4g bytes/s leave nothing of %s, which has %.4g",
                                     bytes_per_s, what, share * *left_bytes_per_s));
}

// At one end, on the links that go to a spine or to all of them.
static Status end_take(const Damage *damage, int entry, const LinkName *end, bool down, int spine) {
    if (end->kind == LINK_SPINE) return status_ok();
    int links[2];
    network_links_of(damage->network, end, links);
    return rate_take(damage, entry, links[down], spine);
}

static Status spine_check(const Damage *damage, int entry, int spine, int leaf) {
    const SpineSet set = network_spine_set(damage->network, spine);
    const int place = leaf - set.first_leaf;
    if (place >= 0 && place % set.stride == 0 && place / set.stride < set.num_leaves)
        return status_ok();
    return entry_refuse(
        damage->scenario, entry,
        arena_printf(damage->arena, "leaf:%d is not joined to spine:%d", leaf, spine));
}

// Between switches of different groups also on the link that joins these.
static Status background_apply(const Damage *damage, int entry) {
    const Disturb *disturb = &damage->scenario->disturb[entry];
    const LinkName *from = &disturb->link, *to = &disturb->to;
    if (from->kind == LINK_GROUP || from->kind == LINK_NODE)
        return rate_take(damage, entry, network_site_link(damage->network, from->index, to->index),
                         -1);
    TRY(switch_check(damage, entry, from));
    TRY(switch_check(damage, entry, to));
    int spine = -1, from_site = 0, to_site = 0;
    if (from->kind == LINK_SPINE && to->kind == LINK_SPINE)
        return entry_refuse(damage->scenario, entry,
                            "spines are not joined to each other; expected a leaf at one end");
    if (from->kind == LINK_SPINE || to->kind == LINK_SPINE) {
        const bool first = from->kind == LINK_SPINE;
        spine = first ? from->index : to->index;
        TRY(spine_check(damage, entry, spine, first ? to->index : from->index));
    } else if (damage->network->sites) {
        from_site = network_leaf_site(damage->network, from->index);
        to_site = network_leaf_site(damage->network, to->index);
    }
    TRY(end_take(damage, entry, from, false, spine));
    if (from_site != to_site)
        TRY(rate_take(damage, entry, network_site_link(damage->network, from_site, to_site), -1));
    return end_take(damage, entry, to, true, spine);
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

// One set of NICs for each group, or one for all.
static void nics_prepare(Damage *damage) {
    const Cluster *cluster = &damage->scenario->cluster;
    Network *whole = damage->network;
    NetworkGroup *groups = NULL;
    damage->num_nic_sets = cluster->num_pools;
    damage->nics = ARENA_ARRAY(damage->arena, damage->num_nic_sets, NicSet);
    if (whole->groups) {
        groups = ARENA_ARRAY(damage->arena, damage->num_nic_sets, NetworkGroup);
        memcpy(groups, whole->groups, (size_t)damage->num_nic_sets * sizeof *groups);
        whole->groups = groups;
    }
    for (int i = 0; i < damage->num_nic_sets; i++) {
        const Pool *own = &cluster->pools[i];
        damage->nics[i] = (NicSet){
            .pool = own,
            .network = groups ? &groups[i].network : whole,
            .first_node = groups ? groups[i].first_node : 0,
            .frac = ones(own->num_nodes * own->nics_per_node, damage->arena),
        };
    }
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
    out->link_bytes_per_s = ARENA_ARRAY(arena, network->num_links, double);
    memcpy(out->link_bytes_per_s, network->link_bytes_per_s,
           (size_t)network->num_links * sizeof *out->link_bytes_per_s);
    out->flaps = ARENA_ARRAY(arena, num_flaps, LinkFlap);
    Damage damage = {
        .scenario = scenario,
        .network = out,
        .spine_frac = ones(network->num_spines, arena),
        .arena = arena,
    };
    nics_prepare(&damage);
    TRY(entries_apply(&damage, DISTURB_LINK));
    TRY(entries_apply(&damage, DISTURB_FAIL_NIC));
    for (int i = 0; i < damage.num_nic_sets; i++) {
        nics_apply(&damage, &damage.nics[i]);
        TRY(rails_check(&damage, &damage.nics[i]));
    }
    spines_apply(&damage);
    TRY(entries_apply(&damage, DISTURB_FLAP));
    return entries_apply(&damage, DISTURB_BACKGROUND);
}
