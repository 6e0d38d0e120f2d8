// runtime/routes.h - to which rank, and to which of its experts, each token of this rank goes, and
// which tokens come here.
//
// A rank sends each token once for every expert that it was given, sorted by expert: over ep to the
// ranks that hold a part of the expert. The etp ranks that share experts then gather what each was
// sent, and every one sorts all of it by expert, so that each expert's rows are one piece. Back it
// goes the same way, the parts of the etp ranks added up (Liu et al. 2025, "MoE Parallel Folding",
// arXiv:2504.14960, section 3). No token is dropped; how many come is exchanged before.
#pragma once

#include "runtime/rank.h"

typedef struct {
    int64_t num_arrived; // rows that came over ep
    int64_t num_rows;    // of this rank's experts: with those that its etp group was sent
    int64_t *counts;     // the host's memory, in which these are:
    int64_t *sent;       // [ep] rows to each, and
    int64_t *arrived;    // [ep] from each
    int64_t *gathered;   // [etp] rows that each was sent
    int64_t *rows;       // [experts] of each expert of this rank
    Tensor *from_token;  // int32 [routed] the token of each row that is sent
    Tensor *to_sent;     // int32 [tokens_sp][experts_per_token] where a token's rows are in that
    Tensor *by_expert;   // int32 [num_rows] of each row by expert, where it arrived; NULL: there
    Tensor *by_arrival;  // int32 [num_rows] and back
} Routes;

// chosen: of the device, [tokens_sp][experts_per_token]. All ranks of the ep and etp groups call.
// After a failure, which the backend keeps, *out can be used and freed like any other.
void routes_make(Rank *rank, const Tensor *chosen, Routes *out);

// Gives back what is of the device: the counts stay, for gradients of weights that are made later.
void routes_drop(Rank *rank, Routes *routes);
void routes_free(Rank *rank, Routes *routes); // the rest too; accepts a zeroed one

// Rows of `columns` numbers, wide or act, sorted as they are sent, to the experts; and back. Both
// take the tensor.
typedef struct {
    int64_t columns;
    bool wide;
} RowKind;

Tensor *routes_to_experts(Rank *rank, const Routes *routes, RowKind kind, Tensor **sent);
Tensor *routes_from_experts(Rank *rank, const Routes *routes, RowKind kind, Tensor **rows);
