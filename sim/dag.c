#include "sim/dag.h"

#include <string.h>

// Makes room for one more element; the old array stays in the arena, so that all of them together
// are at most twice the last.
static void *grow(Arena *arena, void *array, int num, int *max, size_t element_size) {
    if (num < *max) return array;
    *max = *max ? 2 * *max : 1024;
    void *larger = arena_array(arena, (size_t)*max, element_size);
    if (num > 0) memcpy(larger, array, (size_t)num * element_size);
    return larger;
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
    // Counting sort of the edges by where they begin.
    for (int i = 0; i < builder->num_edges; i++) {
        dag.first_successor[builder->edges[i][0] + 1]++;
        dag.num_waits[builder->edges[i][1]]++;
    }
    for (int i = 0; i < dag.num_nodes; i++) {
        dag.first_successor[i + 1] += dag.first_successor[i];
    }
    int32_t *next = ARENA_ARRAY(arena, dag.num_nodes, int32_t);
    if (dag.num_nodes > 0) memcpy(next, dag.first_successor, (size_t)dag.num_nodes * sizeof *next);
    for (int i = 0; i < builder->num_edges; i++) {
        dag.successors[next[builder->edges[i][0]]++] = builder->edges[i][1];
    }
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

int dag_replay(const Dag *dag, const double *duration_s, Arena *arena, double *end_s) {
    int32_t *queue = ARENA_ARRAY(arena, dag->num_nodes, int32_t);
    int32_t *num_waits = ARENA_ARRAY(arena, dag->num_nodes, int32_t);
    int num_queued = 0, num_done = 0;
    for (int i = 0; i < dag->num_nodes; i++) {
        end_s[i] = 0;
        num_waits[i] = dag->num_waits[i];
        if (num_waits[i] == 0) queue[num_queued++] = i;
    }
    while (num_done < num_queued) {
        int node = queue[num_done++];
        end_s[node] += duration_s[node];
        for (int i = dag->first_successor[node]; i < dag->first_successor[node + 1]; i++) {
            int after = dag->successors[i];
            if (end_s[after] < end_s[node]) end_s[after] = end_s[node];
            if (--num_waits[after] == 0) queue[num_queued++] = after;
        }
    }
    return num_done;
}

int dag_critical_path(const Dag *dag, Arena *arena, double *end_s) {
    double *duration_s = ARENA_ARRAY(arena, dag->num_nodes, double);
    for (int i = 0; i < dag->num_nodes; i++)
        duration_s[i] = dag->nodes[i].delay_s + dag_flow_s(dag, i);
    return dag_replay(dag, duration_s, arena, end_s);
}
