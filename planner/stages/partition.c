#include "planner/stages/partition.h"

#include <math.h>
#include <stdbool.h>

// Two costs closer than this are the same: sums of the same seconds in another order.
static const double SAME_FRAC = 1e-12;

typedef struct {
    const PartitionCosts *costs;
    int num_chunks;
    const double *prefix_s; // [num_layers + 1]
} Chain;

static Chain chain_build(const PartitionCosts *costs, int num_chunks, Arena *arena) {
    double *prefix = ARENA_ARRAY(arena, costs->num_layers + 1, double);
    for (int i = 0; i < costs->num_layers; i++) prefix[i + 1] = prefix[i] + costs->layer_s[i];
    return (Chain){.costs = costs, .num_chunks = num_chunks, .prefix_s = prefix};
}

// Cost of chunk c holding layers [from, to).
static double chunk_cost(const Chain *chain, int c, int from, int to) {
    double cost = chain->prefix_s[to] - chain->prefix_s[from];
    if (c == 0) cost += chain->costs->first_s;
    if (c == chain->num_chunks - 1) cost += chain->costs->last_s;
    return cost;
}

// The least possible largest chunk. best[l] is the least largest chunk of the first c chunks
// holding the first l layers. Over the cut j, best[j] grows and the last chunk's cost falls, so
// the optimum lies where they cross: bisection.
static double least_largest(const Chain *chain, Arena *arena) {
    int num_layers = chain->costs->num_layers;
    double *best = ARENA_ARRAY(arena, num_layers + 1, double);
    double *next = ARENA_ARRAY(arena, num_layers + 1, double);
    for (int l = 0; l <= num_layers; l++) best[l] = chunk_cost(chain, 0, 0, l);
    for (int c = 1; c < chain->num_chunks; c++) {
        for (int l = 0; l <= num_layers; l++) {
            int low = 0, high = l; // first j with best[j] >= cost of [j, l); j = l always is
            while (low < high) {
                int j = (low + high) / 2;
                if (best[j] >= chunk_cost(chain, c, j, l))
                    high = j;
                else
                    low = j + 1;
            }
            next[l] = fmax(best[low], chunk_cost(chain, c, low, l));
            if (low > 0) next[l] = fmin(next[l], chunk_cost(chain, c, low - 1, l));
        }
        double *swap = best;
        best = next;
        next = swap;
    }
    return best[num_layers];
}

// Among the splits without a chunk above `limit`, the one with the least sum of squares: the
// evenest. cut[c * (num_layers + 1) + l] is the first layer of chunk c that ends before layer l.
static void evenest(const Chain *chain, double limit, Arena *arena, int *out) {
    int num_layers = chain->costs->num_layers, width = num_layers + 1;
    double *best = ARENA_ARRAY(arena, width, double), *next = ARENA_ARRAY(arena, width, double);
    int *cut = ARENA_ARRAY(arena, (size_t)chain->num_chunks * (size_t)width, int);
    for (int l = 0; l <= num_layers; l++) {
        double cost = chunk_cost(chain, 0, 0, l);
        best[l] = cost <= limit ? cost * cost : INFINITY;
    }
    for (int c = 1; c < chain->num_chunks; c++) {
        for (int l = 0; l <= num_layers; l++) {
            next[l] = INFINITY;
            for (int j = l; j >= 0; j--) {
                double cost = chunk_cost(chain, c, j, l);
                if (cost > limit) break;
                double sum = best[j] + cost * cost;
                if (sum >= next[l] * (1 - SAME_FRAC)) continue;
                next[l] = sum;
                cut[c * width + l] = j;
            }
        }
        double *swap = best;
        best = next;
        next = swap;
    }
    for (int c = chain->num_chunks - 1, end = num_layers; c >= 0; c--) {
        out[c] = end - cut[c * width + end];
        end = cut[c * width + end];
    }
}

double partition_chunks(const PartitionCosts *costs, int num_chunks, Arena *arena, int *out) {
    Chain chain = chain_build(costs, num_chunks, arena);
    double largest = least_largest(&chain, arena);
    evenest(&chain, largest * (1 + SAME_FRAC), arena, out);
    return largest;
}

double partition_cost(const PartitionCosts *costs, int pp, int vpp, const int *layers) {
    double largest = 0;
    for (int rank = 0; rank < pp; rank++) {
        double load = 0;
        for (int c = 0, layer = 0; c < pp * vpp; c++) {
            for (int i = 0; i < layers[c]; i++, layer++)
                if (c % pp == rank) load += costs->layer_s[layer];
            if (c % pp != rank) continue;
            if (c == 0) load += costs->first_s;
            if (c == pp * vpp - 1) load += costs->last_s;
        }
        largest = fmax(largest, load);
    }
    return largest;
}

static bool equal_layers(const PartitionCosts *costs) {
    for (int i = 1; i < costs->num_layers; i++)
        if (fabs(costs->layer_s[i] - costs->layer_s[0]) > SAME_FRAC * costs->layer_s[0])
            return false;
    return true;
}

// With equal layers only the number of layers of each rank matters for its load. Giving layer
// after layer to the rank it loads least minimises the largest load: exchanging any two layers of
// the result cannot lower it.
static void rank_counts(const PartitionCosts *costs, int pp, int *counts) {
    for (int rank = 0; rank < pp; rank++) counts[rank] = 0;
    for (int i = 0; i < costs->num_layers; i++) {
        int least = 0;
        double least_load = INFINITY;
        for (int rank = 0; rank < pp; rank++) {
            double load = (counts[rank] + 1) * costs->layer_s[0];
            if (rank == 0) load += costs->first_s;
            if (rank == pp - 1) load += costs->last_s;
            if (load >= least_load * (1 - SAME_FRAC)) continue;
            least = rank;
            least_load = load;
        }
        counts[least]++;
    }
}

double partition_interleaved(const PartitionCosts *costs, int pp, int vpp, Arena *arena, int *out) {
    if (vpp == 1 || costs->num_layers == 0 || !equal_layers(costs)) {
        partition_chunks(costs, pp * vpp, arena, out);
        return partition_cost(costs, pp, vpp, out);
    }
    int *counts = ARENA_ARRAY(arena, pp, int);
    rank_counts(costs, pp, counts);
    for (int rank = 0; rank < pp; rank++) {
        // The chunks beside the embedding and the head are the shorter ones.
        int low = counts[rank] / vpp, longer = counts[rank] % vpp;
        for (int v = 0; v < vpp; v++) {
            bool late = rank == 0 ? v >= vpp - longer : v < longer;
            out[v * pp + rank] = low + late;
        }
    }
    return partition_cost(costs, pp, vpp, out);
}
