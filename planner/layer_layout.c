#include "planner/layer_layout.h"

#include "costmodel/collective.h"
#include "costmodel/price.h"

// Ranks of one replica.
static int replica_ranks(const Plan *plan) {
    return plan->tp * plan->cp;
}

static int lcm(int a, int b) {
    int x = a, y = b;
    while (y != 0) {
        const int rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

bool layouts_are_alike(const Plan *a, const Plan *b) {
    return a->tp == b->tp && a->cp == b->cp && (a->cp == 1 || a->cp_method == b->cp_method);
}

// Whether each rank holds a part of the tokens that no other holds.
static bool is_split(const Plan *plan) {
    return plan->sequence_parallel || plan->tp == 1;
}

// Whether a rank holds all that it holds under the other layout: whole sequences are cut further.
static bool holds_all(const Plan *from, const Plan *to) {
    return from->cp == 1 && to->cp == 1 && from->tp % to->tp == 0;
}

static double one_way_s(const Scenario *scenario, const Plan *from, double from_bytes,
                        const Plan *to) {
    const Group group = {lcm(replica_ranks(from), replica_ranks(to)), 1};
    const Cluster *cluster = &scenario->cluster;
    const StepPart part = group_layout(cluster, group).num_domains > 1 ? PART_ACROSS : PART_INSIDE;
    const double factor = part_factor(scenario, part);
    if (is_split(from) && is_split(to))
        return factor * collective_s(cluster, COLLECTIVE_ALL_TO_ALL, group, from_bytes);
    if (!is_split(from) && holds_all(from, to)) return 0;
    const double copies = is_split(from) ? 1 : from->tp;
    return factor *
           collective_s(cluster, COLLECTIVE_ALL_GATHER, group, from_bytes * group.size / copies);
}

double layout_change_s(const Scenario *scenario, const Plan *from, double from_boundary_bytes,
                       const Plan *to, double to_boundary_bytes) {
    if (layouts_are_alike(from, to)) return 0;
    return one_way_s(scenario, from, from_boundary_bytes, to) +
           one_way_s(scenario, to, to_boundary_bytes, from);
}
