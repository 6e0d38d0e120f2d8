// config/cluster_matrix.h - the file of a cluster's `bandwidth_matrix`, checked.
//
// Format: one line a node (from), one number a node (to) in it, separated by commas: bytes per
//         second, one direction. Lines that begin with '#' are comments; the diagonal must be
//         there but means nothing.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

// Checks that value names a file (relative to the document) with num_nodes x num_nodes numbers.
Status bandwidth_matrix_check(const JsonNode *value, int num_nodes, Arena *arena);
