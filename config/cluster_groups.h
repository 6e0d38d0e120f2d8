// config/cluster_groups.h - a cluster of several groups (CONTRACT.md, `groups` and `between`):
// alike ones become one cluster with sites (config/sites.h).
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster.h"

enum { MAX_GROUPS = 64 };

// Joins groups that were read.
//   root    the cluster, for `between` and `num_gpus`
//   returns  *out: of all groups; where some are of different machines, the first of them alone,
//   with
//           the number of the first that differs from it in unlike_group
Status groups_join(const JsonNode *root, const Cluster *groups, int num_groups, Arena *arena,
                   Cluster *out);
