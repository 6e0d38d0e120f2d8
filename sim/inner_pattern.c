#include "sim/inner_pattern.h"

#include "costmodel/network/collective.h"
#include "costmodel/network/leaf_links.h"
#include "costmodel/network/site_links.h"
#include "sim/lowering.h"

#include <math.h>

static int stepped_rank(Group group, int rank, int places) {
    int place = rank / group.stride % group.size;
    return rank + ((place + places) % group.size - place) * group.stride;
}

static int leaf_of(const Cluster *cluster, const Network *network, int rank) {
    int links[GPU_LINKS];
    network_gpu_links(network, (int)cluster_gpu_of_rank(cluster, rank), links);
    return links[GPU_LINKS - 2];
}

static double leaf_crossings(const Cluster *cluster, const Network *network, Group group,
                             int places) {
    double num = 0;
    for (int rank = 0; rank < network->num_gpus; rank++)
        num += leaf_of(cluster, network, rank) !=
               leaf_of(cluster, network, stepped_rank(group, rank, places));
    return num;
}

// The step whose flows leave their leaves as often as those of all steps do in the mean.
static int leaf_step(const Cluster *cluster, const Network *network, Group group,
                     const GroupLayout *layout, Arena *arena) {
    double *crossings = ARENA_ARRAY(arena, layout->num_domains, double), mean = 0;
    int best = 1;
    for (int step = 1; step < layout->num_domains; step++) {
        crossings[step] = leaf_crossings(cluster, network, group, step * layout->ranks_per_domain);
        mean += crossings[step] / (layout->num_domains - 1);
    }
    for (int step = 2; step < layout->num_domains; step++)
        if (fabs(crossings[step] - mean) < fabs(crossings[best] - mean)) best = step;
    return best;
}

InnerPattern inner_pattern(const LowerInput *input, const Network *network,
                           const InnerCollective *inner, bool across, Arena *arena) {
    const Cluster *cluster = input->cluster;
    const Pool *pool = cluster_only_pool(cluster); // of several none of this is played
    const Machines machines = cluster_machines(cluster, 0);
    const Group group = plan_group(input->plan, inner->group);
    const GroupLayout layout = group_layout(pool, group);
    const CollectiveKind kind = inner->all_to_all ? COLLECTIVE_ALL_TO_ALL : COLLECTIVE_ALL_GATHER;
    InnerPattern out = {
        .group = group,
        .across = across,
        .first_step = 1,
        .last_step = 1,
        .ranks_per_domain = layout.ranks_per_domain,
        .slowdown =
            network_slowdown(machines, kind, group, layout.ranks_per_domain, all_ranks(pool)),
    };
    if (!across || !inner->all_to_all) return out;
    out.last_step = layout.num_domains - 1;
    if (network->sites) return out;
    // Of the uplinks these flows get what all steps together do, in the time that the price says.
    out.first_step = out.last_step = leaf_step(cluster, network, group, &layout, arena);
    out.slowdown = leaves_step_slowdown(machines, group, out.first_step * out.ranks_per_domain);
    return out;
}

int inner_pattern_key(const InnerCollective *inner, bool across) {
    return 4 * (int)inner->group + 2 * inner->all_to_all + across;
}

int inner_target(const InnerPattern *pattern, int rank, int step) {
    const Group group = pattern->group;
    if (pattern->across) return stepped_rank(group, rank, step * pattern->ranks_per_domain);
    int place = rank / group.stride % group.size;
    int next = ring_next(place, group.size, pattern->ranks_per_domain, false);
    return rank + (next - place) * group.stride;
}
