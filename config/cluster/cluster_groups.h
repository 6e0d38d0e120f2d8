// config/cluster/cluster_groups.h - a cluster of several groups (CONTRACT.md, `groups` and
// `between`): they become one cluster with sites (config/machine/sites.h), which keeps them apart
// where their machines differ.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster/cluster.h"

enum { MAX_GROUPS = 64 };

// Joins groups that were read.
//   root    the cluster, for `between` and `num_gpus`
Status groups_join(const JsonNode *root, const Cluster *groups, int num_groups, Arena *arena,
                   Cluster *out);

// Whether two groups are of one machine and as large: where they stand makes no difference.
bool groups_are_interchangeable(const Cluster *a, const Cluster *b);

// Some of the groups of a cluster of different machines, in another order: each once.
//   order  [num_groups] of the cluster's groups; num_groups >= 1
// Of all groups in another order `placed` is the nodes' (config/cluster/cluster.h); with less of
// them nodes are numbered anew, and one group is the cluster that it is by itself.
Cluster cluster_with_groups(const Cluster *cluster, const int *order, int num_groups, Arena *arena);

// The number that the scenario has for a group, which may stand in another place.
int cluster_group_number(const Cluster *cluster, int group);

// The order of the groups in which a list of nodes has them one after the other, each whole and in
// the order of its nodes: [cluster_num_groups] in the arena. NULL of any other list.
const int *groups_order_of(const Cluster *cluster, const int *nodes, Arena *arena);
