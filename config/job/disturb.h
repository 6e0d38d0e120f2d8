// config/job/disturb.h - the entries of a scenario's `disturb`: what is slow, broken or busy.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster/cluster.h"

#include <stdint.h>

typedef enum {
    DISTURB_SLOW_GPU,
    DISTURB_JITTER,
    DISTURB_LINK,
    DISTURB_FAIL_NIC,
    DISTURB_FLAP,
    DISTURB_BACKGROUND,
    NUM_DISTURB_KINDS
} DisturbKind;

typedef enum {
    LINK_NIC,
    LINK_NVLINK, // a GPU's port, of whatever kind
    LINK_LEAF,
    LINK_SPINE,
    LINK_GROUP, // an end of BACKGROUND alone, as the next
    LINK_NODE,
    NUM_LINK_KINDS
} LinkKind;

// A link by its name: nic:NODE.INDEX, nvlink:GPU (also by what its port is, as in pcie:GPU:
// link_family), leaf:INDEX, spine:INDEX; or an end of links
// between sites: group:INDEX, node:INDEX.
typedef struct {
    LinkKind kind;
    int index; // of the node, GPU, leaf, spine or group
    int nic;   // of the node
} LinkName;

typedef struct {
    DisturbKind kind;
    int gpu;                 // SLOW_GPU
    double factor;           // SLOW_GPU: times as long, >= 1
    double jitter_frac;      // JITTER: standard deviation over mean
    int64_t seed;            // JITTER, FLAP
    int ordinal;             // among the entries of its kind, from 0: draws are known by it
    LinkName link;           // LINK, FAIL_NIC, FLAP; BACKGROUND: where it comes from
    LinkName to;             // BACKGROUND
    double bandwidth_factor; // LINK: what is left
    double period_s;         // FLAP
    double down_frac;        // FLAP: of the period
    double bytes_per_s;      // BACKGROUND
} Disturb;

// The key that names the kind: "slow_gpu", "jitter_frac", ...
extern const char *const DISTURB_NAMES[NUM_DISTURB_KINDS];

// Reads the list and checks it against the cluster.
//   returns  *out [*num]; NULL and 0 where it is absent
Status disturb_read(const JsonNode *node, const Cluster *cluster, Arena *arena, const Disturb **out,
                    int *num);
