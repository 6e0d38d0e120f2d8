// config/cluster_groups.h - a cluster of several groups (CONTRACT.md, `groups` and `between`): they
// become one cluster with sites (config/sites.h), which keeps them apart where their machines
// differ.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster.h"

enum { MAX_GROUPS = 64 };

// Joins groups that were read.
//   root    the cluster, for `between` and `num_gpus`
Status groups_join(const JsonNode *root, const Cluster *groups, int num_groups, Arena *arena,
                   Cluster *out);
