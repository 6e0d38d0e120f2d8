// workload/pass/group.h - which ranks talk to each other, by the strides of the rank order.
//
// Within a stage tp is the fastest, then cp, then dp. Expert groups split the same tp x cp x dp
// ranks of a stage anew: etp is the fastest, then ep, then expert data parallel (parallel folding,
// Liu et al. 2025, arXiv:2504.14960, section 3). Which ranks a stage has is up to the order
// (plan/rank_place.h): where stages alternate, what goes from block to block of a stage passes over
// those of the others. A group is `size` ranks, `stride` apart.
#pragma once

#include "config/machine/rank_span.h"
#include "plan/rank_place.h"

#include <stdint.h>

typedef enum {
    GROUP_TP,
    GROUP_CP,
    GROUP_DP,      // dp x cp: ranks that hold the same dense weights
    GROUP_ZERO,    // the part of GROUP_DP that shares one set of shards
    GROUP_REPLICA, // ranks of GROUP_DP that hold the same shard
    GROUP_EP,
    GROUP_ETP,
    GROUP_EDP,      // ranks that hold the same expert weights
    GROUP_EZERO,    // the part of GROUP_EDP that shares one set of expert shards
    GROUP_EREPLICA, // ranks of GROUP_EDP that hold the same expert shard
    GROUP_LAYOUT, // neighbours among which activations change from one layer's layout to another's
    GROUP_PP,
    NUM_GROUPS
} GroupKind;

// Layers with a sharding of their own (plan/layer_plans.h) have groups of their own: a kind plus
// NUM_GROUPS x sharding, and GROUP_LAYOUT plus NUM_GROUPS x (1 + place of its span). Such numbers
// stand wherever a GroupKind does; they are below plan_num_group_kinds. Of those below it that are
// nothing the group is one rank.

extern const char *const GROUP_NAMES[NUM_GROUPS];

typedef struct {
    int size;   // ranks, >= 1
    int stride; // distance between neighbours in rank numbers, >= 1
} Group;

// The ranks of a stage.
RankSpan plan_stage_span(const Plan *plan, int stage);

int plan_num_group_kinds(const Plan *plan);

// What a kind is of all layers: below NUM_GROUPS.
static inline GroupKind group_base_kind(GroupKind kind) {
    return (GroupKind)((int)kind % NUM_GROUPS);
}

static inline const char *group_name(GroupKind kind) {
    return GROUP_NAMES[group_base_kind(kind)];
}

// The kind of a sharding's groups. Those that are like the plan's own, or another sharding's before
// it, have the number of these.
GroupKind sharding_group_kind(const Plan *plan, int sharding, GroupKind kind);

// The kind of groups of `span` ranks, one of plan_layout_spans.
GroupKind layout_group_kind(const Plan *plan, int span);

// The group of one kind that holds rank 0; all groups of the kind have its shape.
Group plan_group(const Plan *plan, GroupKind kind);

// The group of one kind by lanes of a stage (plan/rank_place.h); not of GROUP_PP, which is of one
// lane.
Group plan_lane_group(const Plan *plan, GroupKind kind);

// Of parameters that a rank holds, those that ranks of a zero group could share: 0 of a kind whose
// group is one rank.
double plan_sharded_parameters(const Plan *plan, double dense, double expert);
