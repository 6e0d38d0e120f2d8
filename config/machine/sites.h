// config/machine/sites.h - nodes that reach some others at another rate than the network of their
// own says. They are groups of machines joined by slow links (a site is a group), or nodes between
// which was measured (a site is a node).
#pragma once

#include "config/machine/rank_span.h"

#include <stdbool.h>
#include <stdint.h>

enum { MAX_SITES = 1024 };

typedef enum { SITE_GROUP, SITE_NODE } SiteKind;

// Traffic that shares the links between sites: of all groups of one shape among some ranks, or
// messages between the ranks of two pipeline stages, both ways.
typedef struct {
    RankSpan ranks;       // whose groups, or who sends
    int64_t first_peer;   // of messages: the first of those at the other end; else -1
    int size, stride;     // of groups
    int ranks_per_domain; // of groups: a ring goes on to the same place in the next domain
    bool all_to_all;      // of groups; else along rings
} SiteTraffic;

// How many times as long as over the GPUs' shares of their NICs some traffic takes.
typedef struct {
    SiteTraffic traffic;
    double slowdown; // >= 1
} KnownSlowdown;

typedef struct {
    SiteKind kind;
    int num_sites; // 2 to MAX_SITES
    int num_nodes;
    const int *site_of_node;   // [num_nodes] rising
    const int *num_nodes_of;   // [num_sites]
    const double *bytes_per_s; // [num_sites][num_sites] from one to another, all traffic between
                               // them together; > 0, but on the diagonal, which means nothing
    double latency_s;          // that a message from one to another takes more
} ClusterSites;

// From one site to another.
static inline double sites_bytes_per_s(const ClusterSites *sites, int from, int to) {
    return sites->bytes_per_s[from * sites->num_sites + to];
}
