#include "sim/outcome.h"

#include <math.h>

// A flow that takes longer by more than this of its time, and by more than rounding to whole bytes
// and the engine's clock explain, got less of the network than the estimate thinks.
static const double CONTENDED_FRAC = 0.01;
static const double CONTENDED_S = 1e-6;

double playback_step_s(const Dag *dag, const Playback *playback, double step_s) {
    double end_s = 0;
    for (int i = 0; i < dag->num_nodes; i++) {
        if (playback->end_s[i] > end_s) end_s = playback->end_s[i];
    }
    return end_s + step_s;
}

// The flows that a played one stands for (sim/likeness.h; else each for as many).
static double num_flows_of(const Lowered *lowered, int node) {
    const int *num_alike = lowered->network.num_alike;
    return num_alike ? num_alike[lowered->dag.routes[lowered->dag.nodes[node].route].from_gpu] : 1;
}

static void flows_compare(const Lowered *lowered, const Playback *playback, Outcome *out) {
    const Dag *dag = &lowered->dag;
    double granted_s = 0, lost_s = 0, gained_s = 0;
    for (int i = 0; i < dag->num_nodes; i++) {
        double expected_s = dag_flow_s(dag, i);
        if (expected_s <= 0) continue;
        double taken_s = playback->end_s[i] - playback->start_s[i] - dag->nodes[i].delay_s;
        double beyond_s = taken_s - expected_s;
        const double num = num_flows_of(lowered, i);
        granted_s += num * expected_s;
        lost_s += num * fmax(0, beyond_s);
        gained_s += num * fmax(0, -beyond_s);
        if (beyond_s > CONTENDED_FRAC * expected_s + CONTENDED_S) out->contended = true;
    }
    if (granted_s <= 0) return;
    out->flow_lost_frac = lost_s / granted_s;
    out->flow_gained_frac = gained_s / granted_s;
}

// Keeps the busiest, in the order of their use, then of their number.
static void links_rank(const Network *network, const double *carried_bytes, double step_time_s,
                       Arena *arena, Outcome *out) {
    int ranked[MAX_BUSY_LINKS];
    double frac[MAX_BUSY_LINKS];
    for (int link = 0; link < network->num_links; link++) {
        if (carried_bytes[link] <= 0) continue;
        double use = carried_bytes[link] / (network->link_bytes_per_s[link] * step_time_s);
        int place = out->num_links;
        while (place > 0 && frac[place - 1] < use) place--;
        if (place == MAX_BUSY_LINKS) continue;
        if (out->num_links < MAX_BUSY_LINKS) out->num_links++;
        for (int i = out->num_links - 1; i > place; i--) {
            frac[i] = frac[i - 1];
            ranked[i] = ranked[i - 1];
        }
        frac[place] = use;
        ranked[place] = link;
    }
    for (int i = 0; i < out->num_links; i++) {
        out->links[i] = (BusyLink){network_link_name(network, ranked[i], arena), frac[i]};
    }
}

static void links_measure(const Lowered *lowered, double step_time_s, Arena *arena, Outcome *out) {
    const Dag *dag = &lowered->dag;
    double *carried_bytes = ARENA_ARRAY(arena, lowered->network.num_links, double);
    for (int i = 0; i < dag->num_nodes; i++) {
        if (dag->nodes[i].route == NO_ROUTE) continue;
        const DagRoute *route = &dag->routes[dag->nodes[i].route];
        for (int hop = 0; hop < route->num_links; hop++) {
            carried_bytes[route->links[hop]] += dag->nodes[i].bytes * (1 + route->more[hop]);
        }
    }
    links_rank(&lowered->network, carried_bytes, step_time_s, arena, out);
}

static int last_lane(const Lowered *lowered, const Program *program, const Playback *playback) {
    int last = 0;
    double last_s = -1;
    for (int lane = 0; lane < lowered->num_lanes; lane++) {
        for (int rank = 0; rank < program->num_ranks; rank++) {
            int num = program->ranks[rank].num_instructions;
            for (int i = 0; i < num; i++) {
                double end_s = playback->end_s[lowered->end_node[rank][lane * num + i]];
                // Lanes that differ by rounding only are the same.
                if (end_s <= last_s * (1 + 1e-9)) continue;
                last_s = end_s;
                last = lane;
            }
        }
    }
    return last;
}

Outcome playback_outcome(const Lowered *lowered, const Program *program, const Playback *playback,
                         double step_s, Arena *arena) {
    Outcome out = {.step_time_s = playback_step_s(&lowered->dag, playback, step_s)};
    flows_compare(lowered, playback, &out);
    if (out.step_time_s > 0) links_measure(lowered, out.step_time_s, arena, &out);
    out.last_lane = last_lane(lowered, program, playback);
    return out;
}
