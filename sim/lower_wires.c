#include "sim/lower_wires.h"

#include "costmodel/network/collective.h"

typedef struct {
    Lowering *lowering;
    const WiresPass *pass;
    double bytes_per_s; // that the estimate grants a member
    int begin, end;
} WiresFlows;

static int flow_add(const WiresFlows *flows, int route) {
    DagBuilder *builder = &flows->lowering->builder;
    double bytes = flows->pass->step_s * builder->routes[route].share_bytes_per_s;
    return dag_add_flow(builder, flows->pass->step_delay_s, bytes, route);
}

static int route_add(const WiresFlows *flows, int from_gpu, int to_gpu, double frac) {
    DagBuilder *builder = &flows->lowering->builder;
    int route = dag_add_route(builder, &flows->lowering->out->network, from_gpu, to_gpu, 1);
    builder->routes[route].share_bytes_per_s = flows->bytes_per_s * frac;
    return route;
}

// One ring of `size` GPUs, which carries a fraction of what each passes on.
static void ring_add(const WiresFlows *flows, const int *gpus, int size, double frac) {
    DagBuilder *builder = &flows->lowering->builder;
    const int num_steps = flows->pass->num_steps, first = builder->num_nodes;
    for (int i = 0; i < num_steps * size; i++) {
        int at = i % size;
        flow_add(flows, i >= size ? builder->nodes[first + at].route
                                  : route_add(flows, gpus[at], gpus[(at + 1) % size], frac));
    }
    for (int i = 0; i < num_steps * size; i++) {
        const int node = first + i, after = i / size + 1;
        if (i < size) dag_add_wait(builder, flows->begin, node);
        if (after == num_steps) {
            dag_add_wait(builder, node, flows->end);
            continue;
        }
        dag_add_wait(builder, node, node + size);
        dag_add_wait(builder, node, first + after * size + (i % size + 1) % size);
    }
}

static void pairs_add(const WiresFlows *flows, const int *gpus, int size) {
    DagBuilder *builder = &flows->lowering->builder;
    for (int i = 0; i < size * size; i++) {
        if (i / size == i % size) continue;
        int node =
            flow_add(flows, route_add(flows, gpus[i / size], gpus[i % size], 1.0 / (size - 1)));
        dag_add_wait(builder, flows->begin, node);
        dag_add_wait(builder, node, flows->end);
    }
}

// Members whose shape has no rings, as groups that lie askew in their domains: in their order.
static void part_add(const WiresFlows *flows, const Pool *pool, const int *gpus, int size) {
    if (size < 2) return;
    if (flows->pass->kind == COLLECTIVE_ALL_TO_ALL) {
        pairs_add(flows, gpus, size);
        return;
    }
    const Cluster *whole = flows->lowering->input->cluster;
    const int before = cluster_pool_first_gpu(whole, cluster_pool_of_gpu(whole, gpus[0]));
    const int place = (gpus[0] - before) % pool->domain_gpus;
    const WireShape *shape = wires_shape(pool->wires, size, flows->pass->part.stride);
    const WireRings *rings = shape ? &shape->rings[place] : NULL;
    if (!rings || rings->num_rings == 0) {
        ring_add(flows, gpus, size, 1);
        return;
    }
    int *order = ARENA_ARRAY(flows->lowering->arena, size, int);
    for (int ring = 0; ring < rings->num_rings; ring++) {
        for (int i = 0; i < size; i++) order[i] = gpus[0] - place + rings->members[ring * size + i];
        ring_add(flows, order, size, 1.0 / rings->num_rings);
    }
}

void wires_lower(Lowering *lowering, const Pool *pool, const WiresPass *pass, int begin, int end) {
    const WiresFlows flows = {
        lowering, pass, group_bytes_per_s(pool, pass->kind, pass->part, pass->ranks), begin, end};
    for (int first = 0; first < pass->num_gpus; first += pass->part.size) {
        int left = pass->num_gpus - first;
        part_add(&flows, pool, pass->gpus + first, left < pass->part.size ? left : pass->part.size);
    }
}
