#include "planner/placement/placement_start.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

// Ways kept, where nodes are few and where they are many; and the least share of the largest weight
// that traffic has.
enum { MOST_WAYS = 256, MANY_NODES = 256, FEW_WAYS = 64 };
static const double LEAST_WEIGHT = 1e-3, FASTNESS = 8;

// A way to put nodes on the blocks so far.
typedef struct {
    int *node;     // [num_blocks] by block
    bool *is_used; // [num_blocks] by node
    double *fast;  // [num_blocks] of a node's links to those unused, the fast ones; or NULL
    double cost;
} Way;

// A way with one more node.
typedef struct {
    double cost;
    double tie; // decides between equal costs
    int way, node;
} Candidate;

// An edge between the block at hand and one before it.
typedef struct {
    int other;
    bool out;
    double wanted_bytes_per_s, floor;
    double weight; // seconds of the step for a slowdown of 1
} PlacedEdge;

typedef struct {
    const PlacementLinks *links;
    PlacementBuild build;
    uint64_t seed;
    Arena *arena;
    double *fast;   // [num_blocks][num_blocks] 1 of the fastest pairs, next to nothing of slow ones
    double *weight; // [num_traffics] seconds of the step for a slowdown of 1
    int num_ways, max_ways;
    Way *ways, *next; // [max_ways]
    Candidate *heap;  // [max_ways] the dearest first
    int num_candidates;
    PlacedEdge *edges; // of the block at hand
    int num_edges;
} Beam;

// --- The order of the blocks

static int num_placed_edges(const PlacementLinks *links, const bool *is_placed, int block) {
    int num = 0;
    for (int i = links->first_of_block[block]; i < links->first_of_block[block + 1]; i++) {
        const BlockEdge *edge = &links->edges[links->edges_of_block[i]];
        num += is_placed[edge->from == block ? edge->to : edge->from];
    }
    return num;
}

// Blocks beside this one that already have a neighbour among those placed.
static int num_closed(const PlacementLinks *links, const bool *is_placed, int block,
                      const int *num_edges) {
    int num = 0;
    for (int i = links->first_of_block[block]; i < links->first_of_block[block + 1]; i++) {
        const BlockEdge *edge = &links->edges[links->edges_of_block[i]];
        const int other = edge->from == block ? edge->to : edge->from;
        num += !is_placed[other] && num_edges[other] > 0;
    }
    return num;
}

// The block with most edges to those placed, then that which gives others a second one.
static int block_next(const PlacementLinks *links, const bool *is_placed, const int *num_edges) {
    int best = -1, best_closed = 0;
    for (int block = 0; block < links->num_blocks; block++) {
        if (is_placed[block] || (best >= 0 && num_edges[block] < num_edges[best])) continue;
        const int closed = num_closed(links, is_placed, block, num_edges);
        if (best >= 0 && num_edges[block] == num_edges[best] && closed <= best_closed) continue;
        best = block;
        best_closed = closed;
    }
    return best;
}

static int *blocks_order(const PlacementLinks *links, Arena *arena) {
    const int n = links->num_blocks;
    int *order = ARENA_ARRAY(arena, n, int), *num_edges = ARENA_ARRAY(arena, n, int);
    bool *is_placed = ARENA_ARRAY(arena, n, bool);
    for (int i = 0; i < n; i++) {
        const int block = order[i] = block_next(links, is_placed, num_edges);
        is_placed[block] = true;
        for (int k = links->first_of_block[block]; k < links->first_of_block[block + 1]; k++) {
            const BlockEdge *edge = &links->edges[links->edges_of_block[k]];
            const int other = edge->from == block ? edge->to : edge->from;
            if (!is_placed[other]) num_edges[other] = num_placed_edges(links, is_placed, other);
        }
    }
    return order;
}

// --- The beam

static void weights_find(Beam *beam, const PlacementModel *model) {
    double most = 0;
    beam->weight = ARENA_ARRAY(beam->arena, model->num_traffics, double);
    for (int i = 0; i < model->num_traffics; i++) {
        for (int k = 0; k < model->num_planes; k++)
            beam->weight[i] = fmax(beam->weight[i], model->slope_s[k][i]);
        most = fmax(most, beam->weight[i]);
    }
    for (int i = 0; i < model->num_traffics; i++)
        beam->weight[i] = fmax(beam->weight[i], LEAST_WEIGHT * most);
}

static Way *ways_new(const Beam *beam) {
    const int n = beam->links->num_blocks;
    Way *ways = ARENA_ARRAY(beam->arena, beam->max_ways, Way);
    for (int i = 0; i < beam->max_ways; i++) {
        ways[i].node = ARENA_ARRAY(beam->arena, n, int);
        ways[i].is_used = ARENA_ARRAY(beam->arena, n, bool);
        if (beam->fast) ways[i].fast = ARENA_ARRAY(beam->arena, n, double);
    }
    return ways;
}

// All ways have the same blocks placed.
static void edges_find(Beam *beam, const bool *is_placed, int block) {
    const PlacementLinks *links = beam->links;
    beam->num_edges = 0;
    for (int i = links->first_of_block[block]; i < links->first_of_block[block + 1]; i++) {
        const BlockEdge *edge = &links->edges[links->edges_of_block[i]];
        const bool out = edge->from == block;
        const int other = out ? edge->to : edge->from;
        if (!is_placed[other]) continue;
        beam->edges[beam->num_edges++] =
            (PlacedEdge){other, out, edge->wanted_bytes_per_s, links->traffics[edge->traffic].floor,
                         beam->weight[edge->traffic]};
    }
}

static double node_cost(const Beam *beam, const Way *way, int node) {
    const int n = beam->links->num_blocks;
    const double *s_per_byte = beam->links->s_per_byte;
    double cost = way->cost;
    for (int i = 0; i < beam->num_edges; i++) {
        const PlacedEdge *edge = &beam->edges[i];
        const int other = way->node[edge->other];
        const double slow =
            edge->wanted_bytes_per_s * s_per_byte[edge->out ? node * n + other : other * n + node];
        cost += edge->weight * (slow > edge->floor ? slow : edge->floor);
    }
    return cost;
}

static bool is_dearer(const Candidate *a, const Candidate *b) {
    return a->cost > b->cost || (a->cost == b->cost && a->tie > b->tie);
}

static void heap_sink(Beam *beam, int at) {
    Candidate *heap = beam->heap, moved = heap[at];
    for (int child; (child = 2 * at + 1) < beam->num_candidates; at = child) {
        if (child + 1 < beam->num_candidates && is_dearer(&heap[child + 1], &heap[child])) child++;
        if (!is_dearer(&heap[child], &moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

// Keeps a candidate if it is among the cheapest.
static void candidate_add(Beam *beam, const Candidate *candidate) {
    Candidate *heap = beam->heap;
    if (beam->num_candidates == beam->max_ways) {
        if (!is_dearer(&heap[0], candidate)) return;
        heap[0] = *candidate;
        heap_sink(beam, 0);
        return;
    }
    int at = beam->num_candidates++;
    for (; at > 0 && is_dearer(candidate, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = *candidate;
}

// Costs are sums in one order, so equal ones are often equal to the last bit.
static void candidates_find(Beam *beam, int block) {
    beam->num_candidates = 0;
    for (int w = 0; w < beam->num_ways; w++) {
        const Way *way = &beam->ways[w];
        for (int node = 0; node < beam->links->num_blocks; node++) {
            if (way->is_used[node]) continue;
            Candidate candidate = {node_cost(beam, way, node), 0, w, node};
            if (beam->num_candidates == beam->max_ways && candidate.cost > beam->heap[0].cost)
                continue;
            const uint32_t counter[RANDOM_WORDS] = {(uint32_t)w, (uint32_t)node, (uint32_t)block,
                                                    2};
            candidate.tie = 1e-6 * random_uniform(beam->seed, counter);
            if (way->fast) candidate.tie += way->fast[node];
            candidate_add(beam, &candidate);
        }
    }
}

// A way with one more node, which is no longer there for others.
static void way_extend(const Beam *beam, const Candidate *candidate, int block, Way *out) {
    const int n = beam->links->num_blocks, node = candidate->node;
    const Way *from = &beam->ways[candidate->way];
    memcpy(out->node, from->node, (size_t)n * sizeof *out->node);
    memcpy(out->is_used, from->is_used, (size_t)n * sizeof *out->is_used);
    for (int i = 0; out->fast && i < n; i++)
        out->fast[i] = from->fast[i] - beam->fast[i * n + node];
    out->node[block] = node;
    out->is_used[node] = true;
    out->cost = candidate->cost;
}

static void block_place(Beam *beam, int block) {
    candidates_find(beam, block);
    for (int i = 0; i < beam->num_candidates; i++)
        way_extend(beam, &beam->heap[i], block, &beam->next[i]);
    Way *old = beam->ways;
    beam->ways = beam->next;
    beam->next = old;
    beam->num_ways = beam->num_candidates;
}

// Of a pair both ways, by how much of the fastest pair's rate they have.
static void fast_find(Beam *beam) {
    const int n = beam->links->num_blocks;
    const double *s_per_byte = beam->links->s_per_byte;
    double least = INFINITY;
    beam->fast = ARENA_ARRAY(beam->arena, n * n, double);
    for (int i = 0; i < n * n; i++)
        if (i / n != i % n) least = fmin(least, s_per_byte[i]);
    for (int i = 0; i < n * n; i++) {
        const int back = i % n * n + i / n;
        if (i / n == i % n) continue;
        beam->fast[i] = least > 0 ? pow(2 * least / (s_per_byte[i] + s_per_byte[back]), FASTNESS)
                                  : s_per_byte[i] == 0;
    }
}

static void beam_start(Beam *beam, const PlacementModel *model) {
    const int n = beam->links->num_blocks;
    if (beam->build == BUILD_IN_ORDER) fast_find(beam);
    beam->max_ways = n > MANY_NODES ? FEW_WAYS : MOST_WAYS;
    beam->ways = ways_new(beam);
    beam->next = ways_new(beam);
    beam->num_ways = 1;
    for (int i = 0; beam->fast && i < n * n; i++) beam->ways[0].fast[i / n] += beam->fast[i];
    beam->heap = ARENA_ARRAY(beam->arena, beam->max_ways, Candidate);
    beam->edges = ARENA_ARRAY(beam->arena, beam->links->num_edges, PlacedEdge);
    weights_find(beam, model);
}

void placement_start(const PlacementLinks *links, const PlacementModel *model, PlacementBuild build,
                     uint64_t seed, int *start) {
    Arena arena = {0};
    const int n = links->num_blocks;
    Beam beam = {.links = links, .build = build, .seed = seed, .arena = &arena};
    beam_start(&beam, model);
    const int *order = build == BUILD_CLOSING ? blocks_order(links, &arena) : NULL;
    bool *is_placed = ARENA_ARRAY(&arena, n, bool);
    for (int i = 0; i < n; i++) {
        const int block = order ? order[i] : i;
        edges_find(&beam, is_placed, block);
        block_place(&beam, block);
        is_placed[block] = true;
    }
    int best = 0;
    for (int i = 1; i < beam.num_ways; i++)
        if (beam.ways[i].cost < beam.ways[best].cost) best = i;
    memcpy(start, beam.ways[best].node, (size_t)n * sizeof *start);
    arena_free(&arena);
}
