#include "planner/groups/group_orders.h"

#include "base/student.h"
#include "config/cluster/cluster_groups.h"
#include "config/cluster/node_order.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Cluster *cluster;
    int num_groups, num_orders;
    int *order; // [num_groups] so far
    bool used[MAX_GROUPS];
    const int **orders; // [MAX_GROUP_ORDERS]
    Arena *arena;
} Orders;

// Whether a group that could take this one's place is still to come: it goes first.
static bool waits(const Orders *o, int group) {
    for (int i = 0; i < group; i++)
        if (!o->used[i] &&
            pools_are_interchangeable(&o->cluster->pools[i], &o->cluster->pools[group]))
            return true;
    return false;
}

static void orders_add(Orders *o, int place) {
    if (o->num_orders > MAX_GROUP_ORDERS) return;
    if (place == o->num_groups) {
        if (o->num_orders++ >= MAX_GROUP_ORDERS) return;
        int *order = ARENA_ARRAY(o->arena, o->num_groups, int);
        memcpy(order, o->order, (size_t)o->num_groups * sizeof *order);
        o->orders[o->num_orders - 1] = order;
        return;
    }
    for (int group = 0; group < o->num_groups; group++) {
        if (o->used[group] || waits(o, group)) continue;
        o->used[group] = true;
        o->order[place] = group;
        orders_add(o, place + 1);
        o->used[group] = false;
    }
}

int group_orders(const Scenario *scenario, Arena *arena, const int *const **out) {
    Orders o = {
        .cluster = &scenario->cluster, .num_groups = scenario->cluster.num_pools, .arena = arena};
    o.order = ARENA_ARRAY(arena, o.num_groups, int);
    o.orders = ARENA_ARRAY(arena, MAX_GROUP_ORDERS, const int *);
    *out = o.orders;
    if (scenario->parallel.num_placement > 0) {
        for (int i = 0; i < o.num_groups; i++) o.order[i] = i;
        o.orders[0] = o.order;
        return 1;
    }
    orders_add(&o, 0);
    return o.num_orders <= MAX_GROUP_ORDERS ? o.num_orders : 0;
}

Scenario group_limited(const Scenario *scenario, const PlannerOptions *options, const int *order,
                       Arena *arena) {
    Scenario limited = planner_limited(scenario, options, arena);
    limited.cluster = cluster_with_pools(&limited.cluster, order, limited.cluster.num_pools, arena);
    return limited;
}

Scenario group_plan_scenario(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    Scenario own = *scenario;
    if (cluster->num_pools == 1) return own;
    const NodeOrder *placed = cluster->network.placed;
    int *nodes = ARENA_ARRAY(arena, cluster->num_nodes, int);
    for (int i = 0; i < cluster->num_nodes; i++) {
        const int node = plan->node_order ? plan->node_order->node[i] : i;
        nodes[i] = placed ? placed->block[node] : node;
    }
    const int *order = pools_order_of(cluster, nodes, arena);
    if (order) own.cluster = cluster_with_pools(cluster, order, cluster->num_pools, arena);
    return own;
}

Scenario plan_limited(const Scenario *scenario, const PlannerOptions *options, const Plan *plan,
                      Arena *arena) {
    const Scenario own = group_plan_scenario(scenario, plan, arena);
    return planner_limited(&own, options, arena);
}
