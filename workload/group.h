// workload/group.h - which ranks talk to each other, by the strides of the rank order.
//
// Ranks are numbered as Megatron-LM does for the order tp-cp-ep-dp-pp: tp is the fastest, then cp,
// then dp, then pp. Expert groups split the same tp x cp x dp ranks of a stage anew: etp is the
// fastest, then ep, then expert data parallel (parallel folding, Liu et al. 2025,
// arXiv:2504.14960, section 3). A group is `size` ranks, `stride` apart.
#pragma once

#include "plan/plan.h"

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
    GROUP_PP,
    NUM_GROUPS
} GroupKind;

extern const char *const GROUP_NAMES[NUM_GROUPS];

typedef struct {
    int size;   // ranks, >= 1
    int stride; // distance between neighbours in rank numbers, >= 1
} Group;

// Neighbouring ranks.
typedef struct {
    int64_t first, num;
} RankSpan;

// The group of one kind that holds rank 0; all groups of the kind have its shape.
Group plan_group(const Plan *plan, GroupKind kind);
