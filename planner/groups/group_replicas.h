// planner/groups/group_replicas.h - data parallelism across groups of different machines: each
// group trains the whole model by a plan of its own, degrees and micro-batches included, on as many
// of the batch's sequences as it does in the time of the others.
//
// Model:  step = max over groups g of T_g(n_g) + exchange, with the n_g adding up to global_batch.
//         T_g(n) is the step of the group's best plan for n sequences by itself (planner_search),
//         reduction and optimizer included. In the exchange the gradients that each group has
//         reduced are all-reduced over the groups: of B bytes each of G groups sends 2 B / G to
//         every other one, over the link between them (config/machine/sites.h) and through its
//         NICs, and nothing hides it.
// Source: batches by the speed of the machines: Jia et al., "Whale: Efficient Giant Model Training
//         over Heterogeneous GPUs", USENIX ATC 2022, arXiv:2011.09208; all-reduce:
//         Patarasuk and Yuan 2009, as in costmodel/network/collective.h.
// Limits: the batch is cut into at most 64 pieces where its divisors allow
// (planner/groups/batch_split.h
//         has when the split is the best one); the exchange is whole, behind the slowest group; no
//         other process divides gradients by sequences unless told, so no stack starts this.
#pragma once

#include "costmodel/step/estimate.h"
#include "planner/planner.h"

typedef struct {
    int group; // as the scenario numbers it
    const char *gpu;
    int num_gpus;
    int64_t sequences; // of a step's batch
    Plan plan;
    Estimate estimate; // of the group by itself
} GroupReplica;

typedef struct {
    const GroupReplica *groups; // [num_groups]; 0 where some group holds no plan by itself
    int num_groups;
    double exchange_s, step_time_s, tokens_per_s;
    bool stopped_early; // the budget ended a search of these
} ReplicasAnswer;

// A scenario with some of its groups alone. dp, zero_group, stages and placement are no constraints
// there.
//   order  [num_groups] of the cluster's groups
Scenario groups_alone(const Scenario *scenario, const int *order, int num_groups, Arena *arena);

// The exchange of the gradients between all groups of a cluster.
double replicas_exchange_s(const Scenario *scenario);

//   alone_s  [num_pools] of each group alone with the whole batch; INFINITY: nothing fits
Status group_replicas_find(const Scenario *scenario, const PlannerOptions *options,
                           const double *alone_s, Arena *arena, ReplicasAnswer *out);

// "group 0 (64 x h100-sxm-80g) 704 sequences by tp 4 ...; group 1 ...", and how long it takes
// beside the best plan's step.
const char *replicas_text(const ReplicasAnswer *answer, const Estimate *best, Arena *arena);

// The member "replicas" of an answer's "groups". The caller owns the tree.
cJSON *replicas_to_json(const ReplicasAnswer *answer, const Estimate *best);
