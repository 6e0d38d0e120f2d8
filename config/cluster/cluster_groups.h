// config/cluster/cluster_groups.h - a cluster of several groups (CONTRACT.md, `groups` and
// `between`): they become one cluster with sites (config/machine/sites.h): of one pool where they
// are one machine, else of a pool each.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster/cluster.h"

enum { MAX_GROUPS = 64 };

// Joins groups that were read.
//   root    the cluster, for `between` and `num_gpus`
Status groups_join(const JsonNode *root, const Pool *groups, int num_groups, Arena *arena,
                   Cluster *out);

// Whether two pools are of one machine and as large: where they stand makes no difference.
bool pools_are_interchangeable(const Pool *a, const Pool *b);

// Some of the pools of a cluster of several, in another order: each once.
//   order  [num_pools] of the cluster's pools; num_pools >= 1
// Of all pools in another order `placed` is the nodes' (config/cluster/cluster.h); with less of
// them nodes are numbered anew, and one pool is the cluster that it is by itself.
Cluster cluster_with_pools(const Cluster *cluster, const int *order, int num_pools, Arena *arena);

// The number that the scenario has, among its groups, for a pool, which may stand in another place.
int cluster_pool_number(const Cluster *cluster, int pool);

// The order of the pools in which a list of nodes has them one after the other, each whole and in
// the order of its nodes: [num_pools] in the arena. NULL of any other list.
const int *pools_order_of(const Cluster *cluster, const int *nodes, Arena *arena);
