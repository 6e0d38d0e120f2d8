// tests/planner/placement_case.h - clusters whose links between nodes differ, made up from a seed.
#pragma once

#include "base/random.h"
#include "config/job/scenario.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CASE_MAX_NODES = 256 };

typedef enum {
    MATRIX_RACKS,      // planted: stages are racks, or one of four; fast are the links inside, and
                       // between them those that one placement uses
    MATRIX_NEEDLE,     // planted: only the links that one placement uses are fast
    MATRIX_LOG_NORMAL, // each pair about the nominal rate, as measured clusters are
} MatrixKind;

typedef struct {
    ClusterSites sites;
    int site_of_node[CASE_MAX_NODES], ones[CASE_MAX_NODES], planted[CASE_MAX_NODES];
    double bytes_per_s[CASE_MAX_NODES * CASE_MAX_NODES];
} MatrixCase;

static inline uint32_t case_draw(uint64_t seed, int i, int k, uint32_t num) {
    const uint32_t counter[RANDOM_WORDS] = {(uint32_t)i, (uint32_t)k, 0, 7};
    uint32_t words[RANDOM_WORDS];
    random_words(seed, counter, words);
    return words[0] % num;
}

// Whether a plan of stages of so many nodes goes from one block to another.
static inline bool case_uses(int from, int to, int num_nodes, int stage) {
    const bool ring = from / stage == to / stage && (from % stage + 1) % stage == to % stage;
    const int apart = (to / stage - from / stage + num_nodes / stage) % (num_nodes / stage);
    const bool pipe = from % stage == to % stage && (apart == 1 || apart == num_nodes / stage - 1);
    return ring || pipe;
}

// The rate of a pair of nodes by the blocks that they are planted on, of `nominal`.
static inline double case_rate(MatrixKind kind, uint64_t seed, int from, int to, int num_nodes,
                               int stage, double nominal) {
    const uint32_t counter[RANDOM_WORDS] = {(uint32_t)from, (uint32_t)to, 1, 7};
    const double u = random_uniform(seed, counter);
    if (kind == MATRIX_LOG_NORMAL)
        return nominal * fmin(1, 0.8 * exp(0.15 * random_normal(seed, counter)));
    const int rack = stage < num_nodes ? stage : 4;
    if (kind == MATRIX_RACKS && from / rack == to / rack) return nominal;
    return case_uses(from, to, num_nodes, stage) ? nominal : nominal * (0.3 + 0.5 * u);
}

// Fills a case for num_nodes nodes and gives the cluster its matrix. planted[block] is the node
// that the planted placement puts there.
static inline void matrix_case(MatrixCase *c, MatrixKind kind, uint64_t seed, int stage,
                               Cluster *cluster) {
    const int n = cluster->num_nodes;
    const double nominal = cluster->pools[0].nics_per_node * cluster->pools[0].nic_bytes_per_s;
    for (int i = 0; i < n; i++) {
        c->site_of_node[i] = c->planted[i] = i;
        c->ones[i] = 1;
    }
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)case_draw(seed, i, 0, (uint32_t)i + 1), node = c->planted[i];
        c->planted[i] = c->planted[k];
        c->planted[k] = node;
    }
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            c->bytes_per_s[c->planted[from] * n + c->planted[to]] =
                case_rate(kind, seed, from, to, n, stage, nominal);
    c->sites = (ClusterSites){.kind = SITE_NODE,
                              .num_sites = n,
                              .num_nodes = n,
                              .site_of_node = c->site_of_node,
                              .num_nodes_of = c->ones,
                              .bytes_per_s = c->bytes_per_s};
    cluster->network.sites = &c->sites;
}
