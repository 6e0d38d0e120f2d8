#include "planner/placement/placement_bound.h"

#include <math.h>
#include <string.h>

// Nodes that are looked at: one may be worst at sending, another at receiving.
enum { NUM_WORST = 4 };

// The nodes by how slow their best link is, there or back, the worst first.
static void worst_find(const PlacementLinks *links, int *worst, int num_worst) {
    const int n = links->num_blocks;
    double worst_s[NUM_WORST];
    int num = 0;
    for (int node = 0; node < n; node++) {
        double out_s = INFINITY, in_s = INFINITY;
        for (int other = 0; other < n; other++) {
            if (other == node) continue;
            out_s = fmin(out_s, links->s_per_byte[node * n + other]);
            in_s = fmin(in_s, links->s_per_byte[other * n + node]);
        }
        const double node_s = fmax(out_s, in_s);
        int place = num;
        while (place > 0 && node_s > worst_s[place - 1]) place--;
        if (place == num_worst) continue;
        if (num < num_worst) num++;
        for (int i = num - 1; i > place; i--) {
            worst[i] = worst[i - 1];
            worst_s[i] = worst_s[i - 1];
        }
        worst[place] = node;
        worst_s[place] = node_s;
    }
}

// What the traffics at a block are at least with a node there.
static void slow_at(const PlacementLinks *links, const double *least, int block, int node,
                    double *slow) {
    memcpy(slow, least, (size_t)links->num_traffics * sizeof *slow);
    for (int i = links->first_of_block[block]; i < links->first_of_block[block + 1]; i++) {
        const int traffic = links->edges[links->edges_of_block[i]].traffic;
        slow[traffic] = fmax(slow[traffic], placement_least_at(links, traffic, block, node));
    }
}

// Seconds of the step with a node at the block where it does least harm.
static double node_bound_s(const PlacementPricer *pricer, const double *least, int node,
                           double enough_s, Arena *arena) {
    const PlacementLinks *links = pricer->links;
    const size_t size = (size_t)links->num_traffics * sizeof(double);
    double *slow = arena_alloc(arena, size), *before = arena_alloc(arena, size);
    double bound_s = INFINITY;
    for (int block = 0; block < links->num_blocks && bound_s > enough_s; block++) {
        slow_at(links, least, block, node, slow);
        if (block > 0 && memcmp(slow, before, size) == 0) continue; // as at the block before
        memcpy(before, slow, size);
        bound_s = fmin(bound_s, placement_step_s(pricer, slow));
    }
    return bound_s;
}

double placement_bound_s(const PlacementPricer *pricer, double *least) {
    const PlacementLinks *links = pricer->links;
    for (int i = 0; i < links->num_traffics; i++) least[i] = links->traffics[i].least_slowdown;
    double bound_s = placement_step_s(pricer, least);
    if (!links->is_matrix) return bound_s;
    int worst[NUM_WORST];
    const int num_worst = links->num_blocks < NUM_WORST ? links->num_blocks : NUM_WORST;
    worst_find(links, worst, num_worst);
    Arena arena = {0};
    for (int i = 0; i < num_worst; i++)
        bound_s = fmax(bound_s, node_bound_s(pricer, least, worst[i], bound_s, &arena));
    arena_free(&arena);
    return bound_s;
}
