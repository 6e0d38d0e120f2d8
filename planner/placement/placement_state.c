#include "planner/placement/placement_state.h"

#include <math.h>
#include <string.h>

// The share of the mean in the guide.
static const double MEAN_SHARE = 0.25;

typedef struct {
    int index;
    double slow;
} OldEdge;

typedef struct {
    int index, worst;
    double most, sum;
} OldTraffic;

typedef struct {
    int block, node;
} OldBlock;

struct PlacementLog {
    OldBlock *blocks;     // [num_blocks]
    OldEdge *edges;       // [num_edges]
    OldTraffic *traffics; // [num_traffics]
    int num_blocks, num_edges, num_traffics;
    uint32_t *edge_mark, *traffic_mark; // [num_edges], [num_traffics] the move that saw it last
    bool *stale;                        // [num_traffics] its slowest edge got faster
    uint32_t move;
    double step_s[PLACEMENT_MAX_PLANES], guide_s[PLACEMENT_MAX_PLANES];
};

// --- Values

static double edge_slow(const PlacementState *state, const BlockEdge *edge) {
    const int *node = state->node_of_block;
    const double floor = state->links->traffics[edge->traffic].floor;
    const double slow =
        edge->wanted_bytes_per_s *
        state->links->s_per_byte[node[edge->from] * state->links->num_blocks + node[edge->to]];
    return state->load || slow > floor ? slow : floor;
}

// What an edge adds to, where it is not all inside: the link between two groups, and the uplinks of
// the leaves that it begins at.
typedef struct {
    double *pair, *uplinks; // NULL
    double pair_bytes_per_s;
} EdgeLoads;

static EdgeLoads edge_loads(const PlacementState *state, const BlockEdge *edge) {
    const PlacementLinks *links = state->links;
    const ClusterSites *sites = links->sites;
    const int from = state->node_of_block[edge->from], to = state->node_of_block[edge->to];
    const int num_sites = sites ? sites->num_sites : 0;
    EdgeLoads loads = {0};
    if (sites && sites->site_of_node[from] != sites->site_of_node[to]) {
        const int site = sites->site_of_node[from], peer = sites->site_of_node[to];
        loads.pair = &state->load[site * num_sites + peer];
        loads.pair_bytes_per_s = sites_bytes_per_s(sites, site, peer);
    }
    if (links->leaf_of_node[from] != links->leaf_of_node[to])
        loads.uplinks = &state->load[num_sites * num_sites + links->leaf_of_node[from]];
    return loads;
}

// Adds an edge of a traffic to what it crosses.
static void edge_load(PlacementState *state, int e) {
    const BlockEdge *edge = &state->links->edges[e];
    const EdgeLoads loads = edge_loads(state, edge);
    double most = 0;
    if (loads.pair) most = *loads.pair += edge->wanted_bytes_per_s / loads.pair_bytes_per_s;
    if (loads.uplinks) {
        *loads.uplinks += edge->wanted_bytes_per_s / state->links->uplinks_bytes_per_s;
        most = fmax(most, *loads.uplinks);
    }
    if (most <= state->most[edge->traffic]) return;
    state->most[edge->traffic] = most;
    state->worst[edge->traffic] = e;
}

// The link of a way of some traffic that most goes over.
static void traffic_load(PlacementState *state, int traffic) {
    const PlacedTraffic *t = &state->links->traffics[traffic];
    const BlockEdge *edges = state->links->edges;
    state->most[traffic] = t->floor;
    state->sum[traffic] = 0;
    const int end = t->first_edge + t->num_edges;
    for (int first = t->first_edge, next; first < end; first = next) {
        for (next = first; next < end && edges[next].way == edges[first].way; next++) {
            edge_load(state, next);
            state->sum[traffic] += fmax(t->floor, state->edge_slow[next]);
        }
        for (int e = first; e < next; e++) {
            const EdgeLoads loads = edge_loads(state, &edges[e]);
            if (loads.pair) *loads.pair = 0;
            if (loads.uplinks) *loads.uplinks = 0;
        }
    }
}

static void traffic_scan(PlacementState *state, int traffic) {
    const PlacedTraffic *t = &state->links->traffics[traffic];
    if (state->load) {
        traffic_load(state, traffic);
        return;
    }
    state->most[traffic] = state->sum[traffic] = 0;
    for (int e = t->first_edge; e < t->first_edge + t->num_edges; e++) {
        state->sum[traffic] += state->edge_slow[e];
        if (state->edge_slow[e] <= state->most[traffic]) continue;
        state->most[traffic] = state->edge_slow[e];
        state->worst[traffic] = e;
    }
}

static double guide_of(const PlacementState *state, int traffic, double most, double sum) {
    return (1 - MEAN_SHARE) * most + MEAN_SHARE * sum / state->links->traffics[traffic].num_edges;
}

void placement_state_reset(PlacementState *state, const PlacementModel *model,
                           const int *node_of_block) {
    const PlacementLinks *links = state->links;
    state->model = model;
    memmove(state->node_of_block, node_of_block,
            (size_t)links->num_blocks * sizeof *state->node_of_block);
    for (int e = 0; e < links->num_edges; e++)
        state->edge_slow[e] = edge_slow(state, &links->edges[e]);
    for (int i = 0; i < links->num_traffics; i++) traffic_scan(state, i);
    for (int k = 0; k < model->num_planes; k++) {
        state->step_s[k] = state->guide_s[k] = model->base_s[k];
        for (int i = 0; i < links->num_traffics; i++) {
            const double slope_s = model->slope_s[k][i];
            state->step_s[k] += slope_s * state->most[i];
            state->guide_s[k] += slope_s * guide_of(state, i, state->most[i], state->sum[i]);
        }
    }
    state->log->num_blocks = state->log->num_edges = state->log->num_traffics = 0;
}

PlacementState placement_state(const PlacementLinks *links, const PlacementModel *model,
                               const int *node_of_block, Arena *arena) {
    const int num_sites = links->sites ? links->sites->num_sites : 0;
    struct PlacementLog *log = ARENA_NEW(arena, struct PlacementLog);
    PlacementState state = {
        .links = links,
        .node_of_block = ARENA_ARRAY(arena, links->num_blocks, int),
        .edge_slow = ARENA_ARRAY(arena, links->num_edges, double),
        .most = ARENA_ARRAY(arena, links->num_traffics, double),
        .sum = ARENA_ARRAY(arena, links->num_traffics, double),
        .worst = ARENA_ARRAY(arena, links->num_traffics, int),
        .log = log,
    };
    if (!links->is_matrix)
        state.load = ARENA_ARRAY(arena, num_sites * num_sites + links->num_leaves, double);
    log->blocks = ARENA_ARRAY(arena, links->num_blocks, OldBlock);
    log->edges = ARENA_ARRAY(arena, links->num_edges, OldEdge);
    log->traffics = ARENA_ARRAY(arena, links->num_traffics, OldTraffic);
    log->edge_mark = ARENA_ARRAY(arena, links->num_edges, uint32_t);
    log->traffic_mark = ARENA_ARRAY(arena, links->num_traffics, uint32_t);
    log->stale = ARENA_ARRAY(arena, links->num_traffics, bool);
    placement_state_reset(&state, model, node_of_block);
    return state;
}

PlacementCost placement_cost(const PlacementState *state) {
    PlacementCost cost = {0};
    for (int k = 0; k < state->model->num_planes; k++) {
        if (state->step_s[k] > cost.step_s) cost.step_s = state->step_s[k];
        if (state->guide_s[k] > cost.guide_s) cost.guide_s = state->guide_s[k];
    }
    return cost;
}

// --- Moves

void placement_begin(PlacementState *state) {
    struct PlacementLog *log = state->log;
    log->num_blocks = log->num_edges = log->num_traffics = 0;
    log->move++;
    const size_t size = (size_t)state->model->num_planes * sizeof(double);
    memcpy(log->step_s, state->step_s, size);
    memcpy(log->guide_s, state->guide_s, size);
}

void placement_put(PlacementState *state, int block, int node) {
    struct PlacementLog *log = state->log;
    log->blocks[log->num_blocks++] = (OldBlock){block, state->node_of_block[block]};
    state->node_of_block[block] = node;
}

static void edge_update(PlacementState *state, int e) {
    struct PlacementLog *log = state->log;
    if (log->edge_mark[e] == log->move) return;
    log->edge_mark[e] = log->move;
    const BlockEdge *edge = &state->links->edges[e];
    const double old = state->edge_slow[e], slow = edge_slow(state, edge);
    const int i = edge->traffic;
    if (log->traffic_mark[i] != log->move) {
        log->traffic_mark[i] = log->move;
        log->stale[i] = state->load != NULL;
        log->traffics[log->num_traffics++] =
            (OldTraffic){i, state->worst[i], state->most[i], state->sum[i]};
    }
    if (slow == old) return;
    log->edges[log->num_edges++] = (OldEdge){e, old};
    state->edge_slow[e] = slow;
    state->sum[i] += slow - old;
    if (slow >= state->most[i]) {
        state->most[i] = slow;
        state->worst[i] = e;
    } else if (e == state->worst[i]) {
        log->stale[i] = true;
    }
}

void placement_end(PlacementState *state) {
    struct PlacementLog *log = state->log;
    const PlacementLinks *links = state->links;
    for (int b = 0; b < log->num_blocks; b++) {
        const int block = log->blocks[b].block;
        for (int i = links->first_of_block[block]; i < links->first_of_block[block + 1]; i++)
            edge_update(state, links->edges_of_block[i]);
    }
    for (int t = 0; t < log->num_traffics; t++) {
        const OldTraffic *old = &log->traffics[t];
        const int i = old->index;
        if (log->stale[i]) traffic_scan(state, i);
        const double more = state->most[i] - old->most;
        const double guide = guide_of(state, i, more, state->sum[i] - old->sum);
        for (int k = 0; k < state->model->num_planes; k++) {
            state->step_s[k] += state->model->slope_s[k][i] * more;
            state->guide_s[k] += state->model->slope_s[k][i] * guide;
        }
    }
}

void placement_undo(PlacementState *state) {
    struct PlacementLog *log = state->log;
    for (int b = log->num_blocks - 1; b >= 0; b--)
        state->node_of_block[log->blocks[b].block] = log->blocks[b].node;
    for (int e = 0; e < log->num_edges; e++)
        state->edge_slow[log->edges[e].index] = log->edges[e].slow;
    for (int t = 0; t < log->num_traffics; t++) {
        const OldTraffic *old = &log->traffics[t];
        state->worst[old->index] = old->worst;
        state->most[old->index] = old->most;
        state->sum[old->index] = old->sum;
    }
    const size_t size = (size_t)state->model->num_planes * sizeof(double);
    memcpy(state->step_s, log->step_s, size);
    memcpy(state->guide_s, log->guide_s, size);
}
