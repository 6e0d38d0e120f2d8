#include "sim/dag.h"

static void *grow(Arena *arena, void *array, int num, int *max, size_t element_size) {
    if (num < *max) return array;
    *max = *max ? 2 * *max : 1024;
    return arena_grow(arena, array, (size_t)*max * element_size);
}

int dag_add_flow(DagBuilder *builder, double delay_s, double bytes, int route) {
    builder->nodes = grow(builder->arena, builder->nodes, builder->num_nodes, &builder->max_nodes,
                          sizeof *builder->nodes);
    builder->nodes[builder->num_nodes] =
        (DagNode){.delay_s = delay_s, .bytes = bytes, .route = route};
    return builder->num_nodes++;
}

int dag_add_timer(DagBuilder *builder, double delay_s) {
    return dag_add_flow(builder, delay_s, 0, NO_ROUTE);
}

int dag_add_links(DagBuilder *builder, const DagRoute *route) {
    builder->routes = grow(builder->arena, builder->routes, builder->num_routes,
                           &builder->max_routes, sizeof *builder->routes);
    builder->routes[builder->num_routes] = *route;
    return builder->num_routes++;
}

int dag_add_route(DagBuilder *builder, const Network *network, int from_gpu, int to_gpu,
                  double slowdown) {
    DagRoute route = {.from_gpu = from_gpu, .to_gpu = to_gpu};
    route.num_links = network_route(network, from_gpu, to_gpu, route.links);
    for (int i = 0; network->link_unit && i < route.num_links; i++)
        route.more[i] = (uint16_t)(network_num_crossings(network, from_gpu, route.links[i]) - 1);
    route.share_bytes_per_s = network_share_bytes_per_s(network, from_gpu, to_gpu);
    if (!network_share_domain(network, from_gpu, to_gpu)) route.share_bytes_per_s /= slowdown;
    return dag_add_links(builder, &route);
}

void dag_add_wait(DagBuilder *builder, int before, int after) {
    if (before < 0) return;
    builder->edges = grow(builder->arena, builder->edges, builder->num_edges, &builder->max_edges,
                          sizeof *builder->edges);
    builder->edges[builder->num_edges][0] = before;
    builder->edges[builder->num_edges][1] = after;
    builder->num_edges++;
}

Dag dag_finish(DagBuilder *builder) {
    Arena *arena = builder->arena;
    Dag dag = {
        .nodes = builder->nodes,
        .num_nodes = builder->num_nodes,
        .routes = builder->routes,
        .num_routes = builder->num_routes,
        .first_successor = ARENA_ARRAY(arena, builder->num_nodes + 1, int32_t),
        .successors = ARENA_ARRAY(arena, builder->num_edges, int32_t),
        .num_waits = ARENA_ARRAY(arena, builder->num_nodes, int32_t),
    };
    // Counting sort of the edges by where they begin: first where those of each node end, then,
    // from the last edge to the first, each before those that are in their place.
    for (int i = 0; i < builder->num_edges; i++) {
        dag.first_successor[builder->edges[i][0]]++;
        dag.num_waits[builder->edges[i][1]]++;
    }
    for (int i = 0; i < dag.num_nodes; i++) {
        dag.first_successor[i + 1] += dag.first_successor[i];
    }
    for (int i = builder->num_edges; i-- > 0;) {
        dag.successors[--dag.first_successor[builder->edges[i][0]]] = builder->edges[i][1];
    }
    arena_grow(arena, builder->edges, 0);
    *builder = (DagBuilder){.arena = arena};
    return dag;
}

void dag_reroute(Dag *dag, const Network *network) {
    for (int i = 0; i < dag->num_routes; i++) {
        DagRoute *route = &dag->routes[i];
        if (route->from_gpu == route->to_gpu) continue;
        route->num_links = network_route(network, route->from_gpu, route->to_gpu, route->links);
    }
}

double dag_flow_s(const Dag *dag, int node) {
    const DagNode *activity = &dag->nodes[node];
    if (activity->route == NO_ROUTE) return 0;
    return activity->bytes / dag->routes[activity->route].share_bytes_per_s;
}

int dag_replay(const Dag *dag, DagDuration duration_s, const void *context, double *end_s) {
    Arena scratch = {0};
    int32_t *num_waits = ARENA_ARRAY(&scratch, dag->num_nodes, int32_t);
    int32_t *ready = NULL;
    int num_ready = 0, max_ready = 0, num_done = 0;
    for (int first = 0; first < dag->num_nodes; first++) {
        num_waits[first] = dag->num_waits[first];
        end_s[first] = 0;
    }
    for (int first = 0; first < dag->num_nodes; first++) {
        if (dag->num_waits[first] > 0) continue;
        ready = grow(&scratch, ready, num_ready, &max_ready, sizeof *ready);
        ready[num_ready++] = first;
        while (num_ready > 0) {
            int node = ready[--num_ready];
            num_done++;
            end_s[node] += duration_s(context, node);
            for (int i = dag->first_successor[node]; i < dag->first_successor[node + 1]; i++) {
                int after = dag->successors[i];
                if (end_s[after] < end_s[node]) end_s[after] = end_s[node];
                if (--num_waits[after] > 0) continue;
                ready = grow(&scratch, ready, num_ready, &max_ready, sizeof *ready);
                ready[num_ready++] = after;
            }
        }
    }
    arena_free(&scratch);
    return num_done;
}

static double free_duration_s(const void *dag, int node) {
    return ((const Dag *)dag)->nodes[node].delay_s + dag_flow_s(dag, node);
}

int dag_critical_path(const Dag *dag, double *end_s) {
    return dag_replay(dag, free_duration_s, dag, end_s);
}
