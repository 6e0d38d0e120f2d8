// config/cluster/cluster_matrix.h - the file of a cluster's `bandwidth_matrix`.
//
// Format: one line a node (from), one number a node (to) in it, separated by commas: bytes per
//         second, one direction, as a NIC's are (all NICs of the pair together). Lines that begin
//         with '#' are comments; the diagonal must be there but means nothing.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/machine/sites.h"

// Reads the num_nodes x num_nodes numbers of the file that value names, relative to the document.
//   returns  *out NULL where there is one node
// Refuses nodes that do not reach each other: all nodes of a job do.
Status bandwidth_matrix_read(const JsonNode *value, int num_nodes, Arena *arena,
                             const ClusterSites **out);
